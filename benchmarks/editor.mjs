// Measures the VS Code client in the real workbench and writes one JSON file: activation, first paint of the panel with 10,000 rows,
// how long a new row takes to the screen, and typing latency with the extension on and off, interleaved. Run by editor.sh.
import * as fs from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import { fileURLToPath } from 'node:url';
import { Driver, eventually } from '../tests/e2e/driver.mjs';
import { launchBrowser, openWindow, startServer } from '../tests/e2e/workbench.mjs';
import { bigFile, measureTyping } from './editor_typing.mjs';

const repository = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '..');
const options = { out: path.join(repository, 'benchmarks', 'results', 'editor.json'), quick: process.argv.includes('--quick') };
const at = process.argv.indexOf('--out');
if (at > 0) { options.out = path.resolve(process.argv[at + 1]); }

const root = fs.mkdtempSync(path.join(os.tmpdir(), 'odyssey-bench-'));
const scripted = { 'odyssey.serverPath': path.join(repository, 'tests', 'e2e', 'support', 'odyssey-scripted') };
const vsix = process.env.ODYSSEY_VSIX;

export const quantile = (values, q) => [...values].sort((a, b) => a - b)[Math.min(values.length - 1, Math.floor(q * values.length))];
const summary = (values) => ({ n: values.length, median_ms: round(quantile(values, 0.5)), p95_ms: round(quantile(values, 0.95)), most_ms: round(Math.max(...values)) });
const round = (value) => Math.round(value * 10) / 10;

function folderWith(name, files, settings = {}) {
  const folder = path.join(root, name);
  fs.mkdirSync(path.join(folder, '.vscode'), { recursive: true });
  fs.writeFileSync(path.join(folder, '.vscode', 'settings.json'), JSON.stringify(settings));
  for (const [file, text] of Object.entries(files)) { fs.writeFileSync(path.join(folder, file), text); }
  return folder;
}
const sample = fs.readFileSync(path.join(repository, 'tests/e2e/workspaces/scripted/softmax.py'), 'utf8');

/** The workbench's own account: loading the bundle and activate(), as "Developer: Show Running Extensions" shows it. */
async function activation(driver) {
  await driver.command('Developer: Show Running Extensions');
  const entry = driver.page.locator('.runtime-extensions-editor .monaco-list-row', { hasText: 'Odyssey' });
  const words = await entry.locator('.activation-time').first().innerText();
  await driver.page.keyboard.press('Escape');
  await driver.page.locator('.runtime-extensions-editor').waitFor({ state: 'hidden' });
  return Number(/(\d+)\s*ms/.exec(words)?.[1]);
}

/** From the start of the page inside the webview to the frame that shows the first rows. Each time a new page. */
async function firstPaint(driver, times) {
  const found = [];
  for (let turn = 0; turn < times; turn++) {
    await driver.command('Odyssey: Open the Panel Beside');
    const page = await driver.panel('beside');
    const body = page.locator('body[data-first-paint-ms]');
    await body.waitFor();
    found.push(Number(await body.getAttribute('data-first-paint-ms')));
    await driver.command('View: Close Editor');
  }
  return found;
}

/** From the append in the server (its own clock, written into the row) to the frame that shows the row. Both clocks are this machine's. */
async function newRow(driver, times) {
  const page = await driver.ledger();
  await eventually(async () => { if (!/^10,0\d\d measurements/.test(await page.locator('.counts').innerText())) { throw new Error('rows are still being read'); } return true; }, 60_000);
  await page.locator('.grid').evaluate((grid) => {
    globalThis.seen = [];
    let newest = Number(grid.querySelector('.row')?.dataset.seq ?? 0);
    new MutationObserver(() => {
      const seq = Math.max(...[...grid.querySelectorAll('.row')].map((row) => Number(row.dataset.seq)));
      if (seq > newest) { newest = seq; requestAnimationFrame(() => globalThis.seen.push([seq, Date.now()])); }
    }).observe(grid, { childList: true, subtree: true });
  });
  const found = [];
  for (let turn = 0; turn < times; turn++) {
    await driver.command('Odyssey: Evaluate the Kernel at the Cursor');
    const [seq, shown] = await eventually(async () => {
      const all = await page.locator('.grid').evaluate(() => globalThis.seen);
      if (all.length <= turn) { throw new Error('no new row yet'); }
      return all[turn];
    });
    const appended = Number(new RegExp(`^${seq} ([\\d.]+)$`, 'm').exec(fs.readFileSync(path.join(root, 'appends.log'), 'utf8'))?.[1]);
    found.push(shown - appended);
  }
  return found;
}

/** A hundred thousand rows: until all are there, one press on a column, one word in the filter, and the frames while it is scrolled. */
async function manyRows() {
  const server = await startServer({ root: path.join(root, 'many'), vsix, env: { ODYSSEY_SCRIPTED_ROWS: '100000' } });
  try {
    const { page: window } = await openWindow(server, { browser, folder: folderWith('many-rows', { 'softmax.py': sample }, scripted) });
    const driver = new Driver(window);
    await driver.openFile('softmax.py');
    await driver.lens('Evaluate').waitFor();
    const began = performance.now();
    await driver.command('Odyssey: Show the Ledger');
    const page = await driver.panel();
    await eventually(async () => { if (!(await page.locator('.counts').innerText()).startsWith('100,000 measurements ·')) { throw new Error('rows are still being read'); } return true; }, 120_000);
    const all_rows_ms = round(performance.now() - began);
    const frames = await page.locator('.grid').evaluate(async (grid) => {
      const frame = () => new Promise((ok) => requestAnimationFrame(ok));
      const timed = async (work) => { const from = performance.now(); work(); await frame(); await frame(); return performance.now() - from; };
      const sort_ms = await timed(() => grid.querySelector('[data-column=device] button').click());
      const found = [];
      let last = await frame();
      for (let turn = 0; turn < 180; turn++) {
        grid.scrollTop += turn % 60 === 59 ? 400_000 : 240;
        const now = await frame();
        found.push(now - last);
        last = now;
      }
      return { sort_ms, found };
    });
    const filter = await page.locator('vscode-textfield').evaluate(async (field) => {
      const from = performance.now();
      field.value = 'wrong softmax';
      field.dispatchEvent(new Event('input'));
      while (!/ of 100,000/.test(document.querySelector('.counts').textContent)) { await new Promise((ok) => requestAnimationFrame(ok)); }
      return performance.now() - from;
    });
    return { all_rows_ms, sort_ms: round(frames.sort_ms), filter_ms: round(filter), scroll_frame: summary(frames.found) };
  } finally {
    await server.stop();
  }
}

const browser = await launchBrowser();
const env = { ODYSSEY_SCRIPTED_ROWS: '10000', ODYSSEY_SCRIPTED_APPENDS: path.join(root, 'appends.log') };
const withExtension = await startServer({ root: path.join(root, 'on'), vsix, env, onPath: path.join(repository, '.venv', 'bin') });
const without = await startServer({ root: path.join(root, 'off') });
const result = { what: 'VS Code client in the real workbench (code-server, headless Chromium)', at: new Date().toISOString(), machine: machine(), bars: {} };
try {
  const { page, context } = await openWindow(withExtension, { browser, folder: folderWith('panel', { 'softmax.py': sample }, scripted), viewport: { width: 1280, height: 1400 } });
  const driver = new Driver(page);
  await driver.openFile('softmax.py');
  await driver.lens('Evaluate').waitFor();
  result.activation_ms = await activation(driver);
  result.panel_first_paint_10k_rows = summary(await firstPaint(driver, options.quick ? 3 : 12));
  await driver.openFile('softmax.py');
  result.new_row_visible = summary(await newRow(driver, options.quick ? 3 : 20));
  await context.close();
  result.panel_100k_rows = await manyRows();
  result.typing = await measureTyping({ browser, withExtension, without, folderWith, text: bigFile(), blocks: options.quick ? 2 : 20, summary });
} finally {
  await browser.close();
  await withExtension.stop();
  await without.stop();
}
result.bars = {
  'activation under 150 ms': result.activation_ms < 150,
  'first paint under 300 ms': result.panel_first_paint_10k_rows.median_ms < 300,
  'new row within 100 ms': result.new_row_visible.median_ms < 100,
  'scrolling 100,000 rows at 30 frames a second or more': result.panel_100k_rows.scroll_frame.p95_ms <= 34,
  'typing p95 within 2 ms': result.typing.p95_difference_ms <= 2,
};
fs.mkdirSync(path.dirname(options.out), { recursive: true });
fs.writeFileSync(options.out, `${JSON.stringify(result, null, 2)}\n`);
fs.rmSync(root, { recursive: true, force: true, maxRetries: 3 });
console.log(JSON.stringify(result, null, 2));

function machine() {
  return { cores: os.cpus().length, cpu: os.cpus()[0].model, node: process.version, load_1_min: round(os.loadavg()[0]) };
}
