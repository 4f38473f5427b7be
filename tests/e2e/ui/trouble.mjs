// Steps of trouble: a server that is killed, a folder without trust, a server that is not there, a first start that cannot be set up.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import * as fs from 'node:fs';
import * as path from 'node:path';
import { eventually } from '../driver.mjs';
import { state } from './line.mjs';
import { close, here, makeFolder, open, root, shot, step } from './session.mjs';

/** Process ids of servers started from this suite's support folder under this suite's own workbench. */
function serverPids() {
  const table = execFileSync('ps', ['-eo', 'pid=,ppid=,args='], { encoding: 'utf8' }).trim().split('\n')
    .map((line) => /^\s*(\d+)\s+(\d+)\s+(.*)$/.exec(line)).filter(Boolean).map(([, pid, parent, args]) => ({ pid: Number(pid), parent: Number(parent), args }));
  const byPid = new Map(table.map((one) => [one.pid, one]));
  const mine = (one) => { for (let up = one; up; up = byPid.get(up.parent)) { if (up.pid === process.pid) { return true; } } return false; };
  return table.filter((one) => one.args.includes('scripted_server.py') && mine(one)).map((one) => one.pid);
}

step('a server that is killed comes back by itself, and the panel with it', async () => {
  const d = state.driver;
  const page = await d.ledger();
  const before = serverPids();
  assert.equal(before.length, 1, String(before));
  process.kill(before[0], 'SIGKILL');
  await eventually(() => { const now = serverPids(); return now.length === 1 && now[0] !== before[0]; });
  await d.statusText('idle').waitFor();
  await page.locator('.link').waitFor({ state: 'hidden' });
  await d.focusEditor();
  await d.save();
  await d.hint('right 5/5').waitFor();
});

step('a folder without trust gets text analysis, and nothing in it is run', async () => {
  const folder = makeFolder('stranger', path.join(here, 'workspaces', 'scripted'), { 'odyssey.serverPath': path.join(root, 'stranger', 'evil') });
  fs.writeFileSync(path.join(folder, 'evil'), `#!/bin/sh\ntouch ${path.join(root, 'ran')}\n`, { mode: 0o755 });
  const d = await open('stranger', folder);
  await d.trustDialog("No, I don't trust");
  await d.openFile('softmax.py');
  await d.statusText('not trusted').waitFor();
  await d.lens('Evaluate').waitFor();
  await d.replaceLine(9, '    offsets = tl.arange(0, 96)');
  await eventually(async () => assert.match(await d.page.locator('[id="status.problems"]').getAttribute('aria-label'), /Errors: [1-9]/));
  await d.save(path.join(folder, 'softmax.py'), /arange\(0, 96\)/);
  await shot(d, 'untrusted-dark');
  assert.equal(await d.hint(/right|wrong/).count(), 0);
  assert.ok(!fs.existsSync(path.join(root, 'ran')), "a stranger's server path must not be started");
  assert.ok(!fs.existsSync(path.join(folder, '.odyssey')), 'nothing was judged, so nothing was recorded');
  await close('stranger');
});

step('a server that is not there is said in one message, with what to do', async () => {
  const folder = makeFolder('nowhere', path.join(here, 'workspaces', 'scripted'), { 'odyssey.serverPath': path.join(root, 'no-such-odyssey') });
  const d = await open('nowhere', folder, 'softmax.py');
  await d.trustDialog('Yes, I trust');
  await d.toast('is not a program that can be run').waitFor();
  await d.statusText('Odyssey').first().waitFor();
  await d.command('Odyssey: Show the Ledger');
  await (await d.panel()).locator('.link', { hasText: 'is not a program' }).waitFor();
  await shot(d, 'no-server-dark');
  await close('nowhere');
});
