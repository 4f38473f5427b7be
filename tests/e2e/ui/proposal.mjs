// Steps of a proposal: progress with cancel, the diff with the verdict in its title, reject with a reason, accept, the map afterwards.
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { eventually } from '../driver.mjs';
import { state } from './line.mjs';
import { shot, step } from './session.mjs';

const TITLE = '1.41x faster, right 5/5';

async function propose(d) {
  await d.openFile('softmax.py');
  await d.page.keyboard.press('Control+Home');
  await d.lens('Propose').click();
}

step('a search shows what it does, and is cancelled by its button', async () => {
  const d = state.driver;
  await propose(d);
  await d.toast('looking for a faster softmax_kernel').waitFor();
  await d.toast('num_warps 4 -> ').first().waitFor();
  await d.toast('looking for a faster').locator('.monaco-button', { hasText: 'Cancel' }).click();
  await d.toast('looking for a faster').waitFor({ state: 'detached' });
  assert.equal(await d.page.locator('.tab', { hasText: TITLE }).count(), 0);
});

step('a proposal arrives as a diff with the verdict in its title', async () => {
  const d = state.driver;
  await propose(d);
  await d.page.locator('.tab.active', { hasText: TITLE }).waitFor();
  await d.page.locator('.monaco-diff-editor .view-line', { hasText: 'num_warps=8' }).first().waitFor();
  await d.page.locator('.monaco-diff-editor .view-line', { hasText: 'num_warps=4' }).first().waitFor();
  await d.page.locator('.editor-actions a[aria-label*="Accept the Proposal"]').waitFor();
  await shot(d, 'proposal-dark');
});

step('a rejected proposal keeps its reason on the map, and changes nothing', async () => {
  const d = state.driver;
  await d.page.locator('.editor-actions a[aria-label*="Reject the Proposal"]').first().click();
  await d.answerBox('too many warps for this row length');
  await d.page.locator('.tab', { hasText: TITLE }).waitFor({ state: 'detached' });
  assert.match(fs.readFileSync(state.file, 'utf8'), /num_warps=4/);
  const page = await d.panelTab('map');
  await page.locator('.map .row.buried', { hasText: 'too many warps' }).first().waitFor();
});

step('an accepted proposal becomes an edit that is judged like any other', async () => {
  const d = state.driver;
  await propose(d);
  await d.page.locator('.tab.active', { hasText: TITLE }).waitFor();
  await d.page.locator('.editor-actions a[aria-label*="Accept the Proposal"]').first().click();
  await d.page.locator('.tab', { hasText: TITLE }).waitFor({ state: 'detached' });
  await d.line('num_warps=8').waitFor();
  await d.focusEditor();
  await d.save(state.file, /num_warps=8/);
  await d.hint('3.27x').waitFor();
});

step('a proposal for a text that moved on is refused and changes nothing', async () => {
  const d = state.driver;
  await d.goTo(18);
  await d.page.keyboard.press('Control+z');
  await d.line('num_warps=4').waitFor();
  await propose(d);
  await d.page.locator('.tab.active', { hasText: TITLE }).waitFor();
  await d.tab('softmax.py').click();
  await d.goTo(22);
  await d.page.keyboard.press('End');
  await d.page.keyboard.type(' later');
  await d.command('Odyssey: Accept the Proposal');
  await d.toast('the text changed since').waitFor();
  await eventually(async () => assert.equal(await d.line('num_warps=4').count(), 1));
  await d.command('Notifications: Clear All Notifications');
  await d.save(state.file, /later/);
});
