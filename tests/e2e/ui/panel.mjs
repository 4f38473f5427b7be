// Steps in the panel: live table, sort, filter, columns, evidence, compare, restore, map, plots, the tab beside the editor, a reload.
import assert from 'node:assert/strict';
import { eventually } from '../driver.mjs';
import { findings } from './axe.mjs';
import { state } from './line.mjs';
import { results, shot, step } from './session.mjs';

const cells = (rows, column) => rows.locator(`[role=gridcell]:nth-child(${column})`).allInnerTexts();

step('the ledger lists every measurement, the newest first, and is live', async () => {
  const d = state.driver;
  const page = await d.ledger();
  await eventually(async () => assert.match(await page.locator('.row').first().innerText(), /right 5\/5/));
  await d.focusEditor();
  await d.goTo(22);
  await d.page.keyboard.press('End');
  await d.page.keyboard.type(' and again');
  await d.save(state.file, /and again/);
  await eventually(async () => assert.match(await page.locator('.counts').innerText(), /^45 measurements/));
  await shot(d, 'ledger-dark');
});

step('a press on a column sorts by it, a second press the other way', async () => {
  const page = await state.driver.ledger();
  const head = page.locator('[data-column=speedup]');
  await head.locator('button').click();
  await eventually(async () => assert.equal(await head.getAttribute('aria-sort'), 'descending'));
  const falling = (await cells(page.locator('.row'), 2)).map(parseFloat).filter(Number.isFinite);
  assert.deepEqual(falling, [...falling].sort((a, b) => b - a));
  await head.locator('button').click();
  await eventually(async () => assert.equal(await head.getAttribute('aria-sort'), 'ascending'));
  const rising = (await cells(page.locator('.row'), 2)).map(parseFloat).filter(Number.isFinite);
  assert.deepEqual(rising, [...rising].sort((a, b) => a - b));
  await page.locator('[data-column=speedup] button').click();
});

step('words and verdicts filter the table', async () => {
  const page = await state.driver.ledger();
  await page.locator('vscode-textfield input').fill('wrong');
  await eventually(async () => assert.match(await page.locator('.counts').innerText(), /^\d+ of 45 measurements/));
  const shown = await cells(page.locator('.row'), 1);
  assert.ok(shown.length > 0 && shown.every((words) => words.includes('wrong')), String(shown));
  await page.locator('vscode-textfield input').fill('');
  await eventually(async () => assert.match(await page.locator('.counts').innerText(), /^45 measurements/));
});

step('the table is worked by keys alone, and shows the evidence of a row', async () => {
  const d = state.driver;
  const page = await d.ledger();
  await page.locator('.grid').focus();
  await d.page.keyboard.press('Home');
  await d.page.keyboard.press('ArrowDown');
  await page.locator('.row.active').waitFor();
  assert.equal(await page.locator('.grid').getAttribute('aria-activedescendant'), await page.locator('.row.active').getAttribute('id'));
  await page.locator('.card table').waitFor();
  assert.equal(await page.locator('.card img, .card a').count(), 0, 'markup in the words must stay text');
});

step('Enter opens the recorded text, read-only', async () => {
  const d = state.driver;
  const page = await d.ledger();
  await page.locator('.grid').focus();
  await d.page.keyboard.press('Enter');
  await d.page.locator('.tab.active', { hasText: /softmax \([0-9a-f]{7}\)\.py/ }).waitFor();
  await d.command('View: Close Editor');
});

step('two chosen rows are compared as a diff with their numbers', async () => {
  const d = state.driver;
  const page = await d.ledger();
  await page.locator('.row').nth(0).click();
  await page.locator('.row').nth(2).click({ modifiers: ['Control'] });
  await page.locator('[data-action=compare]').click();
  await d.page.locator('.tab.active', { hasText: 'against' }).waitFor();
  await page.locator('.card h3', { hasText: 'against' }).waitFor();
  await d.command('View: Close Editor');
});

step('a row is pinned as baseline and copied as Markdown', async () => {
  const d = state.driver;
  const page = await d.ledger();
  await page.locator('.row.correct:not(.foreign)').first().click();
  await page.locator('[data-action=pin]').click();
  await page.locator('.said', { hasText: 'is the baseline now' }).waitFor();
  await page.locator('[data-action=copy]').click();
  await page.locator('.said', { hasText: 'Copied one measurement' }).waitFor();
});

step('restore brings a recorded text back as an unsaved edit', async () => {
  const d = state.driver;
  const page = await d.ledger();
  await page.locator('vscode-textfield input').fill('wrong');
  await page.locator('.row.incorrect').first().click();
  await page.locator('[data-action=restore]').click();
  await d.tab('softmax.py').and(d.page.locator('.dirty')).waitFor();
  await page.locator('vscode-textfield input').fill('');
  await d.focusEditor();
  await d.page.keyboard.press('Control+z');
  await d.line('def softmax_kernel').waitFor();
  await d.tab('softmax.py').and(d.page.locator(':not(.dirty)')).waitFor();
});

step('the map shows candidates as lanes, dead branches with their reason', async () => {
  const d = state.driver;
  const page = await d.panelTab('map');
  await page.locator('.map .row').first().waitFor();
  const dead = page.locator('.map .row.buried').first();
  await dead.waitFor();
  assert.match(await dead.innerText(), /†/);
  assert.ok(await page.locator('.lanes .edge').count() > 10);
  await dead.hover();
  await page.locator('.hovercard:not([hidden])').waitFor();
  await d.page.screenshot({ path: `${results}/map-hover-dark.png` });
});

step('a click on a node opens its diff against the text it came from', async () => {
  const d = state.driver;
  const page = await d.panelTab('map');
  await page.locator('.map .row').first().click();
  await d.page.locator('.tab.active', { hasText: 'against' }).waitFor();
  await shot(d, 'map-dark');
  await d.command('View: Close Editor');
});

step('roofline and history are drawn from the server\'s points', async () => {
  const d = state.driver;
  const page = await d.panelTab('plots');
  await page.locator('svg[aria-label^="Roofline"]').waitFor();
  await page.locator('svg[aria-label^="History"]').waitFor();
  assert.equal(await page.locator('.roof').count(), 2);
  assert.ok(await page.locator('.dot').count() > 40);
  await shot(d, 'roofline-dark');
});

step('the panel opens beside the editor with more columns, and both survive a reload', async () => {
  const d = state.driver;
  await d.panelTab('ledger');
  await d.command('Odyssey: Open the Panel Beside');
  const beside = await d.panel('beside');
  await beside.locator('.row').first().waitFor();
  await beside.locator('[data-column=device] button').click();
  await beside.locator('[data-column=device][aria-sort=descending]').waitFor();
  await beside.locator('.row').first().click();
  await beside.locator('.card table').waitFor();
  await shot(d, 'beside-dark');
  assert.deepEqual(await findings(beside), []);
  await d.reload();
  const again = await d.panel('beside');
  await again.locator('[data-column=device][aria-sort=descending]').waitFor();
  await again.locator('.row').first().waitFor();
  await d.command('View: Close All Editors');
  await d.openFile('softmax.py');
});
