// Steps on the line: open a folder, see the verdict appear after a save, its card, its age, a mistake and its quick fix.
import assert from 'node:assert/strict';
import * as path from 'node:path';
import { eventually } from '../driver.mjs';
import { here, makeFolder, open, results, SCRIPTED, shot, step } from './session.mjs';

export const state = { driver: null, folder: '', file: '' };

step('a new folder asks for trust, and opens with the extension running', async () => {
  state.folder = makeFolder('kernels', path.join(here, 'workspaces', 'scripted'), SCRIPTED);
  state.file = path.join(state.folder, 'softmax.py');
  const d = state.driver = await open('main', state.folder);
  await d.trustDialog('Yes, I trust');
  await d.openFile('softmax.py');
  await d.statusText('idle').waitFor();
});

step('lenses stand above the kernel before anything was judged', async () => {
  await state.driver.lens('Evaluate').waitFor();
  assert.equal(await state.driver.page.locator('.codelens-decoration').count(), 1);
});

step('a save brings the verdict to the end of the line', async () => {
  const d = state.driver;
  await d.focusEditor();
  const before = await d.line('offsets < columns').boundingBox();
  await d.save();
  await d.hint('right 5/5').waitFor();
  const after = await d.line('offsets < columns').boundingBox();
  assert.equal(after.y, before.y, 'the text below must not move when the verdict appears');
  assert.match(await d.hint('right 5/5').innerText(), /2\.31x/);
});

step('the gutter shows a mark whose shape tells the verdict', async () => {
  await state.driver.mark('right').waitFor();
  await shot(state.driver, 'verdict-dark');
});

step('hovering the kernel shows its card', async () => {
  const d = state.driver;
  await d.line('def softmax_kernel').locator('span', { hasText: 'softmax_kernel' }).last().hover();
  await d.hover('Scripted Card').waitFor();
  // The card's words came from a ledger: markup in them is text.
  assert.equal(await d.hover('Scripted Card').locator('img').count(), 0);
  await d.page.screenshot({ path: path.join(results, 'hover-dark.png') });
  await d.page.keyboard.press('Escape');
});

step('typing turns the verdict grey, as of an older text', async () => {
  const d = state.driver;
  await d.replaceLine(22, '# scripted: incorrect');
  await d.hint('older text').waitFor();
  await d.mark('stale').waitFor();
});

step('a wrong kernel is said to be wrong, and has no speed', async () => {
  const d = state.driver;
  await d.save(state.file, /scripted: incorrect/);
  await d.hint('wrong 2/5').waitFor();
  assert.doesNotMatch(await d.hint('wrong 2/5').innerText(), /x\b.*us/);
  await d.mark('wrong').waitFor();
});

step('a mistake is underlined while typing and listed under Problems', async () => {
  const d = state.driver;
  await d.replaceLine(9, '    offsets = tl.arange(0, 96)');
  await d.squiggle('error').first().waitFor();
  await d.problems('Errors: 1').waitFor();
});

step('the quick fix repairs it', async () => {
  const d = state.driver;
  await d.goTo(9, 29);
  const fix = await d.quickFix('Use 128, the next power of two');
  await shot(d, 'quickfix-dark');
  await fix.click();
  await d.line('arange(0, 128)').waitFor();
  await d.squiggle('error').first().waitFor({ state: 'detached' });
  await d.replaceLine(22, '# scripted: correct');
  await d.save(state.file, /arange\(0, 128\)[^]*scripted: correct/);
  await d.hint('right 5/5').waitFor();
});

step('the status bar opens a menu of actions', async () => {
  const d = state.driver;
  await d.statusText('idle').click();
  await d.page.locator('.quick-input-list .monaco-list-row', { hasText: 'Run the doctor' }).click();
  await d.page.locator('.tab.active', { hasText: 'odyssey doctor' }).waitFor();
  await d.line('GPU: none').waitFor();
  await d.command('View: Close Editor');
});

step('the keyboard evaluates the kernel at the cursor', async () => {
  const d = state.driver;
  await d.focusEditor();
  await d.goTo(12);
  await d.page.keyboard.press('Control+Alt+o');
  await d.page.keyboard.press('e');
  await d.statusText('judging').waitFor();
  await d.statusText('idle').waitFor();
  const page = await d.ledger();
  await eventually(async () => assert.match(await page.locator('.counts').innerText(), /^44 measurements/));
});
