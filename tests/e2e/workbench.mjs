// Starts a real VS Code (code-server) with the packaged extension, and opens windows of it in headless Chromium.
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import * as fs from 'node:fs';
import * as net from 'node:net';
import * as path from 'node:path';
import { chromium } from 'playwright-core';

const { CODE_SERVER, CODE_SERVER_NODE: NODE24, CHROMIUM } = process.env;

/** A quiet workbench: no welcome page, no tips, no AI, no updates, and nothing that is saved by itself. */
export const SETTINGS = {
  'workbench.startupEditor': 'none', 'workbench.tips.enabled': false, 'workbench.welcomePage.walkthroughs.openOnInstall': false,
  'workbench.secondarySideBar.defaultVisibility': 'hidden', 'workbench.enableExperiments': false, 'telemetry.telemetryLevel': 'off',
  'update.mode': 'none', 'extensions.autoCheckUpdates': false, 'extensions.autoUpdate': 'off', 'extensions.ignoreRecommendations': true,
  'chat.disableAIFeatures': true, 'chat.commandCenter.enabled': false, 'git.enabled': false, 'files.autoSave': 'off',
  'editor.inlayHints.enabled': 'on', 'editor.codeLens': true, 'editor.minimap.enabled': false, 'editor.cursorBlinking': 'solid',
  'window.menuBarVisibility': 'compact', 'window.restoreWindows': 'none', 'workbench.colorTheme': 'Dark Modern',
  'security.workspace.trust.startupPrompt': 'always', 'security.workspace.trust.banner': 'never', 'editor.fontFamily': 'DejaVu Sans Mono',
};

const freePort = () => new Promise((ok) => {
  const probe = net.createServer().listen(0, '127.0.0.1', () => { const { port } = probe.address(); probe.close(() => ok(port)); });
});

/** `trust: false` starts without workspace trust, so that no folder asks. `env` is laid over the environment, `onPath` goes in front of the PATH. */
export async function startServer({ root, vsix, settings = {}, smokeDriver = false, trust = false, env = {}, onPath = '', port: wanted = 0 }) {
  const dirs = { user: path.join(root, 'user-data'), ext: path.join(root, 'extensions'), home: path.join(root, 'home') };
  for (const dir of [path.join(dirs.user, 'User'), dirs.ext, dirs.home]) { fs.mkdirSync(dir, { recursive: true }); }
  fs.writeFileSync(path.join(dirs.user, 'User', 'settings.json'), JSON.stringify({ 'security.workspace.trust.enabled': trust, ...SETTINGS, ...settings }, null, 2));
  // The extension host takes its environment from a login shell, so the PATH has to come from there.
  if (onPath) { for (const name of ['.profile', '.bash_profile', '.zprofile']) { fs.writeFileSync(path.join(dirs.home, name), `export PATH="${onPath}:$PATH"\n`); } }
  const environment = {
    ...process.env, EXTENSIONS_GALLERY: '{}', HOME: dirs.home, XDG_CONFIG_HOME: path.join(dirs.home, '.config'),
    XDG_DATA_HOME: path.join(dirs.home, '.local'), XDG_STATE_HOME: path.join(dirs.home, '.state'), XDG_CACHE_HOME: path.join(dirs.home, '.cache'),
    PATH: `${path.dirname(NODE24)}:${process.env.PATH}`, ...env,
  };
  const common = [CODE_SERVER, '--user-data-dir', dirs.user, '--extensions-dir', dirs.ext, '--disable-telemetry', '--disable-update-check'];
  if (vsix) {
    const install = spawnSync(NODE24, [...common, '--install-extension', vsix, '--force'], { env: environment, encoding: 'utf8' });
    if (install.status !== 0) { throw new Error(`install-extension failed: ${install.stdout}${install.stderr}`); }
  }
  const port = wanted || await freePort();
  const log = path.join(root, 'code-server.log');
  const process_ = spawn(NODE24, [...common, '--bind-addr', `127.0.0.1:${port}`, '--auth', 'none', '--disable-getting-started-override', '--ignore-last-opened',
    ...(trust ? [] : ['--disable-workspace-trust']), ...(smokeDriver ? ['--vscode-option', 'enable-smoke-test-driver'] : [])],
  { env: environment, stdio: ['ignore', fs.openSync(log, 'a'), fs.openSync(log, 'a')] });
  // A suite that dies half-way leaves no workbench behind.
  process.once('exit', () => process_.kill('SIGKILL'));
  const url = `http://127.0.0.1:${port}`;
  for (let tries = 0; ; tries++) {
    if (await fetch(`${url}/healthz`).then((answer) => answer.ok, () => false)) { break; }
    if (process_.exitCode !== null || tries > 300) { throw new Error(`code-server did not start: ${fs.readFileSync(log, 'utf8')}`); }
    await new Promise((ok) => setTimeout(ok, 100));
  }
  return {
    url, port, dirs, root, pid: process_.pid,
    async stop() {
      if (process_.exitCode !== null) { return; }
      process_.kill('SIGTERM');
      await Promise.race([once(process_, 'exit'), new Promise((ok) => setTimeout(ok, 5000))]);
      if (process_.exitCode === null) { process_.kill('SIGKILL'); }
    },
    /** Log files whose path matches, the newest session last. */
    logs(pattern) { return walk(path.join(dirs.user, 'logs')).filter((file) => pattern.test(file)).sort(); },
  };
}

function walk(dir) {
  if (!fs.existsSync(dir)) { return []; }
  return fs.readdirSync(dir, { withFileTypes: true }).flatMap((entry) => entry.isDirectory() ? walk(path.join(dir, entry.name)) : [path.join(dir, entry.name)]);
}

export function launchBrowser() {
  return chromium.launch({ executablePath: CHROMIUM, headless: true, args: [
    '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync',
    '--font-render-hinting=none', '--disable-background-timer-throttling', '--disable-backgrounding-occluded-windows', '--disable-renderer-backgrounding',
  ] });
}

/** One window of the workbench. `dev` and `tests` start the extension-host tests; then `exit` resolves with their code. */
export async function openWindow(server, { browser, folder, file, dev, tests, onLog, viewport = { width: 1280, height: 800 } }) {
  const context = await browser.newContext({ viewport });
  const page = await context.newPage();
  page.setDefaultTimeout(30_000);
  const remote = (where) => `vscode-remote://127.0.0.1:${server.port}${where}`;
  const payload = [];
  if (file) { payload.push(['openFile', remote(file)]); }
  if (dev) { payload.push(['extensionDevelopmentPath', remote(dev)]); }
  let exit;
  if (tests) {
    payload.push(['extensionTestsPath', remote(tests)], ['skipWelcome', 'true']);
    await page.exposeFunction('codeAutomationLog', onLog ?? ((type, args) => console.log(...args)));
    exit = new Promise((ok) => { void page.exposeFunction('codeAutomationExit', ok); });
  }
  const query = new URLSearchParams(folder ? { folder } : { ew: 'true' });
  if (payload.length) { query.set('payload', JSON.stringify(payload)); }
  const console_ = path.join(server.root, 'console.log');
  page.on('console', (message) => fs.appendFileSync(console_, `[${message.type()}] ${message.text()}\n`));
  page.on('pageerror', (error) => fs.appendFileSync(console_, `[pageerror] ${error.stack}\n`));
  await page.goto(`${server.url}/?${query}`);
  await page.locator('.monaco-workbench').waitFor({ timeout: 60_000 });
  return { page, context, exit };
}
