// Owns the suite's one workbench, its windows and its record: ordered steps, screenshots, and what is printed when one fails.
import { after, before, test } from 'node:test';
import * as fs from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import { fileURLToPath } from 'node:url';
import { Driver } from '../driver.mjs';
import { launchBrowser, openWindow, startServer } from '../workbench.mjs';

export const here = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
export const repository = path.resolve(here, '../..');
export const results = process.env.ODYSSEY_E2E_OUT ?? path.join(repository, 'test-results', 'ui');
export const root = fs.mkdtempSync(path.join(os.tmpdir(), 'odyssey-ui-'));
const scripted = path.join(here, 'support', 'odyssey-scripted');
const STEP_MS = 90_000;

let server;
let browser;
let failed = false;
/** Open windows by name. */
const windows = new Map();

before(async () => {
  fs.rmSync(results, { recursive: true, force: true });
  fs.mkdirSync(results, { recursive: true });
  browser = await launchBrowser();
  // The real server is found on the PATH, as a person's would be; SCRIPTED names the other one by setting.
  server = await startServer({ root, vsix: process.env.ODYSSEY_VSIX, trust: true, onPath: path.join(repository, '.venv', 'bin') });
});

after(async () => {
  if (failed) { report(); }
  await browser?.close();
  await server?.stop();
  if (!failed) { fs.rmSync(root, { recursive: true, force: true }); }
  console.log(`screenshots: ${path.relative(process.cwd(), results)}`);
});

/** Tails of the logs that tell why a step failed. */
function report() {
  const files = [...server.logs(/Odyssey\.log$|remoteexthost\.log$/), path.join(root, 'console.log')];
  for (const file of files.filter((one) => fs.existsSync(one))) {
    const lines = fs.readFileSync(file, 'utf8').split('\n').filter((line) => !line.includes('_doActivateExtension'));
    console.log(`===== ${path.relative(root, file)}\n${lines.slice(-30).join('\n').slice(-6000)}`);
  }
}

/** One ordered step. After a failure the later steps still run: most of them stand alone. */
export function step(name, body) {
  test(name, { timeout: STEP_MS }, async (t) => {
    try { await body(t); } catch (error) {
      failed = true;
      for (const [key, { page }] of windows) { await page.screenshot({ path: path.join(results, `failed-${name.replace(/\W+/g, '-').slice(0, 40)}-${key}.png`) }).catch(() => {}); }
      throw error;
    }
  });
}

/** A copy of a workspace of tests/e2e/workspaces or of the examples, with settings of its own. */
export function makeFolder(name, from, settings = {}) {
  const folder = path.join(root, name);
  fs.cpSync(from, folder, { recursive: true, filter: (file) => !/__pycache__|\.odyssey/.test(file) });
  setSettings(folder, settings);
  return folder;
}

/** Settings of the folder; the workbench sees them at once. */
export function setSettings(folder, settings) {
  fs.mkdirSync(path.join(folder, '.vscode'), { recursive: true });
  fs.writeFileSync(path.join(folder, '.vscode', 'settings.json'), JSON.stringify(settings, null, 2));
}

export const SCRIPTED = { 'odyssey.serverPath': scripted };

export async function open(name, folder, file) {
  const { page, context } = await openWindow(server, { browser, folder, ...(file ? { file: path.join(folder, file) } : {}) });
  const driver = new Driver(page);
  windows.set(name, { page, context });
  return driver;
}

export async function close(name) {
  await windows.get(name)?.context.close();
  windows.delete(name);
}

/** The page when nothing moves any more, into the results folder. */
export async function shot(driver, name, options = {}) {
  await driver.page.mouse.move(640, 790);
  await driver.page.evaluate(() => new Promise((ok) => requestAnimationFrame(() => requestAnimationFrame(ok))));
  await driver.page.screenshot({ path: path.join(results, `${name}.png`), animations: 'disabled', ...options });
}

/** Whether every step so far went well. */
export const allWell = () => !failed;
