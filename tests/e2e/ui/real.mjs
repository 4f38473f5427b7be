// Steps with the real server, found on the PATH, judging on this machine: on one without a GPU by Triton's interpreter.
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import * as path from 'node:path';
import { animate } from '../apng.mjs';
import { eventually } from '../driver.mjs';
import { allWell, close, open, repository, results, root, setSettings, shot, step } from './session.mjs';

const LINES = { mask: 14, offsets: 13, store: 17 };
const PICTURES = ['line-dark', 'line-light', 'card-dark', 'card-light', 'panel-dark', 'panel-light', 'edit-save-verdict'];
const SETTINGS = { 'odyssey.python': path.join(repository, '.venv', 'bin', 'python') };
const STORE = '    tl.store(out_ptr + offsets, x + y, mask=mask)';
/** A first verdict pays for starting torch and triton. */
const FIRST_MS = 75_000;
let d;
let file;

step('real: a newcomer gets from an empty window to the first verdict in two steps', async () => {
  const newcomer = await open('empty');
  await newcomer.command('Odyssey: Open an Example Kernel');
  await newcomer.tab('softmax.py').waitFor();
  await newcomer.lens('Evaluate').first().waitFor();
  await newcomer.page.keyboard.press('Control+s');
  await newcomer.mark('right', FIRST_MS).waitFor();
  await close('empty');
});

step('real: the server is found on the PATH and judges the first save', async () => {
  const folder = path.join(root, 'real');
  fs.mkdirSync(folder);
  for (const name of ['vector_add.py', 'softmax.py']) { fs.cpSync(path.join(repository, 'examples', name), path.join(folder, name)); }
  setSettings(folder, SETTINGS);
  file = path.join(folder, 'vector_add.py');
  d = await open('real', folder);
  await d.trustDialog('Yes, I trust');
  await d.openFile('vector_add.py');
  await d.lens('Evaluate').first().waitFor();
  await d.page.keyboard.press('Control+s');
  await d.hint('right 5/5').first().waitFor({ timeout: FIRST_MS });
  await d.mark('right').waitFor();
  await shot(d, 'real-verdict-dark');
});

step('real: the card on hover names cases, error, versions and the card', async () => {
  await d.line('def add_kernel').locator('span', { hasText: 'add_kernel' }).last().hover();
  const card = d.hover('add_kernel').first();
  await card.waitFor();
  const words = await card.innerText();
  for (const part of [/right/, /torch \d/, /triton \d/]) { assert.match(words, part); }
  await d.page.screenshot({ path: path.join(results, 'real-hover-dark.png') });
  await d.page.keyboard.press('Escape');
});

step('real: a wrong kernel is said to be wrong, and where', async () => {
  await d.replaceLine(LINES.store, STORE.replace('x + y', 'x - y'));
  await d.hint(/older/).first().waitFor();
  await d.save(file, /x - y/);
  await d.hint(/wrong|incorrect|error/).first().waitFor({ timeout: FIRST_MS });
  await d.mark('wrong').waitFor();
  await eventually(async () => assert.ok(await d.squiggle('error').count() > 0));
  await shot(d, 'real-wrong-dark');
});

step('real: a mistake is underlined while typing, before any save', async () => {
  await d.replaceLine(LINES.offsets, '    offsets = pid * BLOCK_SIZE + tl.arange(0, 96)');
  await eventually(async () => assert.match(await d.page.locator('[id="status.problems"]').getAttribute('aria-label'), /Errors: [1-9]/));
  await d.command('Problems: Focus on Problems View');
  await d.page.locator('.markers-panel .monaco-list-row', { hasText: /power of (two|2)/ }).first().waitFor();
  await d.command('View: Hide Panel');
});

step('real: the ledger restores the text that was right', async () => {
  await d.openFile('vector_add.py');
  const page = await d.ledger();
  await page.locator('.row.correct').first().click();
  await page.locator('.card table').waitFor();
  await shot(d, 'real-ledger-dark');
  await page.locator('[data-action=restore]').click();
  await d.line('x + y, mask=mask').waitFor();
  await d.focusEditor();
  await d.save(file, /x \+ y, mask/);
  await d.hint('right 5/5').first().waitFor({ timeout: FIRST_MS });
});

step('real: the map holds what was tried, and the plots say what is missing or show it', async () => {
  const map = await d.panelTab('map');
  await eventually(async () => assert.ok(await map.locator('.map .row').count() >= 2));
  await shot(d, 'real-map-dark');
  const plots = await d.panelTab('plots');
  await plots.locator('.plots .note, .plots .hint, svg[aria-label^="Roofline"]').first().waitFor();
});

/** The region of the editor below its tabs, without the side bar. */
const EDITOR = { x: 48, y: 36, width: 1232, height: 420 };

step('real: edit, save, verdict, as a short animation', async () => {
  await d.command('View: Toggle Primary Side Bar Visibility');
  await d.focusEditor();
  await d.goTo(LINES.store, STORE.indexOf('+ y') + 1);
  const frames = [];
  const frame = async (ms) => { frames.push({ png: await d.page.screenshot({ clip: EDITOR, animations: 'disabled' }), ms }); };
  const type = async (text) => { await d.page.keyboard.press('Shift+ArrowRight'); await d.page.keyboard.type(text); await d.hint('older').first().waitFor(); await frame(900); };
  await frame(1200);
  await type('*');
  await d.save(file, /x \* y/);
  await d.hint('wrong').first().waitFor({ timeout: FIRST_MS });
  await d.mark('wrong').waitFor();
  await frame(2600);
  await d.goTo(LINES.store, STORE.indexOf('+ y') + 1);
  await type('+');
  await d.save(file, /x \+ y/);
  await d.hint('right 5/5').first().waitFor({ timeout: FIRST_MS });
  await d.mark('right').waitFor();
  await frame(2600);
  const animation = animate(frames);
  fs.writeFileSync(path.join(results, 'edit-save-verdict.png'), animation);
  assert.ok(animation.length < 300_000, `${animation.length} bytes`);
  await d.command('View: Toggle Primary Side Bar Visibility');
});

step('real: pictures of the line, the card and the panel, in dark and light', async () => {
  await d.openFile('softmax.py');
  await d.save();
  await d.hint('right 5/5').first().waitFor({ timeout: FIRST_MS });
  await d.openFile('vector_add.py');
  for (const [name, label, kind] of [['light', 'Light Modern', 'vscode-light'], ['dark', 'Dark Modern', 'vscode-dark']]) {
    setSettings(path.dirname(file), { ...SETTINGS, 'workbench.colorTheme': label });
    const page = await d.panelTab('ledger');
    await page.locator(`body.${kind}`).waitFor();
    await page.locator('.row.correct').first().click();
    await page.locator('.card table').waitFor();
    await shot(d, `panel-${name}`);
    await d.command('View: Toggle Primary Side Bar Visibility');
    await d.focusEditor();
    await d.goTo(12);
    await shot(d, `line-${name}`, { clip: EDITOR });
    await d.line('def add_kernel').locator('span', { hasText: 'add_kernel' }).last().hover();
    await d.hover('torch').first().waitFor();
    await d.page.screenshot({ path: path.join(results, `card-${name}.png`), clip: EDITOR, animations: 'disabled' });
    await d.page.keyboard.press('Escape');
    await d.command('View: Toggle Primary Side Bar Visibility');
  }
});

step('real: without a GPU a proposal says why it cannot be made', async (t) => {
  if (fs.existsSync('/dev/nvidiactl')) { t.diagnostic('this machine has a GPU: the search itself is tested by tests/lsp'); return; }
  await d.openFile('vector_add.py');
  await d.goTo(12);
  await d.command('Odyssey: Propose an Optimization');
  await d.toast(/GPU|card/).first().waitFor();
  await d.command('Notifications: Clear All Notifications');
});

step('real: the doctor names what is there and what is missing', async () => {
  await d.command('Odyssey: Run the Doctor');
  await d.page.locator('.tab.active', { hasText: 'odyssey doctor' }).waitFor({ timeout: FIRST_MS });
  await d.line(/torch/).first().waitFor();
  await d.command('View: Close Editor');
  await close('real');
  keepPictures();
});

/** With ODYSSEY_UPDATE_IMAGES=1 the pictures of the README are replaced by those of this run. */
function keepPictures() {
  if (!process.env.ODYSSEY_UPDATE_IMAGES || !allWell()) { return; }
  const images = path.join(repository, 'docs', 'images');
  fs.mkdirSync(images, { recursive: true });
  for (const name of PICTURES) { fs.copyFileSync(path.join(results, `${name}.png`), path.join(images, `${name}.png`)); }
}
