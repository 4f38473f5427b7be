import assert from 'node:assert/strict';
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import * as path from 'node:path';
import { after, test } from 'node:test';
import { CannotMake, findBase, makeEnvironment, readyProgram, remedyFor } from '../src/environment';
import { ask, which } from '../src/probe';

const folders: string[] = [];
async function folder(): Promise<string> {
  const made = await mkdtemp(path.join(tmpdir(), 'odyssey-env-'));
  folders.push(made);
  return made;
}
after(async () => { for (const one of folders) { await rm(one, { recursive: true, force: true }); } });
const quiet = (): { say(line: string): void; signal: AbortSignal; lines: string[] } => {
  const lines: string[] = [];
  return { say: (line) => { lines.push(line); }, signal: new AbortController().signal, lines };
};

test('no Python, or only an old one, is said with a remedy', async () => {
  await assert.rejects(findBase(['/no/such/python']), (error: CannotMake) => /No Python was found/.test(error.message) && error.remedy.includes('3.10'));
  const old = path.join(await folder(), 'python');
  await writeFile(old, '#!/bin/sh\necho 3.8\n', { mode: 0o755 });
  await assert.rejects(findBase([old]), (error: CannotMake) => /is Python 3\.8/.test(error.message));
});

test('a Python without venv is said with the package that supplies it', async () => {
  const bare = path.join(await folder(), 'python');
  await writeFile(bare, '#!/bin/sh\necho 3.11\necho "No module named ensurepip" >&2\nexit 1\n', { mode: 0o755 });
  await assert.rejects(findBase([bare]), (error: CannotMake) => error.remedy.includes('python3-venv'));
});

test('an environment that cannot be filled leaves nothing behind and names the cause', { skip: process.platform === 'win32' }, async () => {
  const storage = await folder();
  const wheel = path.join(storage, 'odyssey_lsp-0.1.0-py3-none-any.whl');
  await writeFile(wheel, 'this is no wheel');
  const base = await findBase(['python3']);
  await assert.rejects(makeEnvironment(storage, '0.1.0', wheel, base, quiet()), (error: CannotMake) => /pip install|-m pip/.test(error.message));
  assert.deepEqual((await readdir(storage)).filter((name) => name.startsWith('server-')), []);
  assert.equal(await readyProgram(storage, '0.1.0', wheel), null);
});

test('a finished environment is found again, and not for another wheel', { skip: process.platform === 'win32' }, async () => {
  const storage = await folder();
  // A wheel by hand, with one console script and no dependency: nothing is fetched.
  const wheel = path.join(storage, 'odyssey_lsp-0.1.0-py3-none-any.whl');
  const made = await ask('python3', ['-c', WHEEL, wheel]);
  assert.equal(made.code, 0, made.err);
  const program = await makeEnvironment(storage, '0.1.0', wheel, await findBase(['python3']), quiet());
  assert.equal((await ask(program, ['--version'])).out.trim(), 'odyssey 0.1.0');
  assert.equal(await readyProgram(storage, '0.1.0', wheel), program);
  assert.equal(await readyProgram(storage, '0.1.1', wheel), null);
  await writeFile(wheel, 'another build of the same version');
  assert.equal(await readyProgram(storage, '0.1.0', wheel), null);
});

const WHEEL = `
import sys, zipfile
with zipfile.ZipFile(sys.argv[1], "w") as z:
    z.writestr("odyssey_stub.py", "def main():\\n    print('odyssey 0.1.0')\\n")
    d = "odyssey_lsp-0.1.0.dist-info/"
    z.writestr(d + "METADATA", "Metadata-Version: 2.1\\nName: odyssey-lsp\\nVersion: 0.1.0\\n")
    z.writestr(d + "WHEEL", "Wheel-Version: 1.0\\nGenerator: test\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
    z.writestr(d + "entry_points.txt", "[console_scripts]\\nodyssey = odyssey_stub:main\\n")
    z.writestr(d + "RECORD", "")
`;

test('remedies of pip', () => {
  assert.match(remedyFor('ERROR: No matching distribution found for pygls'), /could not be fetched/);
  assert.match(remedyFor('OSError: [Errno 28] No space left on device'), /disk space/);
});

test('which passes over relative folders of the PATH: a workspace must not supply the server', async () => {
  const place = await folder();
  await writeFile(path.join(place, 'odyssey'), '#!/bin/sh\n', { mode: 0o755 });
  const relative = path.relative(process.cwd(), place);
  assert.equal(await which('odyssey', `${relative}${path.delimiter}.`, 'linux'), null);
  assert.equal(await which('odyssey', place, 'linux'), path.join(place, 'odyssey'));
});
