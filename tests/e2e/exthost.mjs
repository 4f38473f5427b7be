// The counterpart of @vscode/test-electron: runs host/index.cjs inside the real extension host of the workbench.
import * as fs from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import { fileURLToPath } from 'node:url';
import { launchBrowser, openWindow, startServer } from './workbench.mjs';

const here = path.dirname(fileURLToPath(import.meta.url));
const root = fs.mkdtempSync(path.join(os.tmpdir(), 'odyssey-host-'));
const folder = path.join(root, 'workspace');
const LIMIT_MS = 150_000;
/** What the workbench itself writes into the same console. */
const NOISE = /^(Ignoring fetching|Creating a socket|Resolv|\[|Updating additional|Timed out waiting for authentication)/;

fs.cpSync(path.join(here, 'workspaces', 'scripted'), folder, { recursive: true });
fs.mkdirSync(path.join(folder, '.vscode'));
fs.writeFileSync(path.join(folder, '.vscode', 'settings.json'), JSON.stringify({ 'odyssey.serverPath': path.join(here, 'support', 'odyssey-scripted') }));
fs.cpSync(path.join(here, 'support', 'python-stub'), path.join(root, 'extensions', 'ms-python.python-0.0.1'), { recursive: true });
const server = await startServer({ root, smokeDriver: true });
const browser = await launchBrowser();
const { page, exit } = await openWindow(server, {
  browser, folder, dev: path.resolve(here, '../../vscode-client'), tests: path.join(here, 'host', 'index.cjs'),
  onLog: (type, args) => { if (!NOISE.test(String(args[0]))) { console.log(...args); } },
});
const code = await Promise.race([exit, new Promise((ok) => setTimeout(() => ok('timeout'), LIMIT_MS))]);
if (code !== 0) {
  await page.screenshot({ path: path.join(root, 'failure.png') });
  for (const file of server.logs(/remoteexthost|Odyssey\.log/)) { console.log(`== ${file}\n${fs.readFileSync(file, 'utf8').slice(-4000)}`); }
}
await browser.close();
await server.stop();
if (code === 0) { fs.rmSync(root, { recursive: true, force: true }); } else { console.log(`host tests ended with ${code}; see ${root}`); }
process.exit(code === 0 ? 0 : 1);
