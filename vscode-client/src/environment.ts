// Owns the private environment: a virtual environment in the extension's own storage, made once per version from the wheel
// inside the extension. Never touches the person's own environments.
import { spawn } from 'node:child_process';
import { mkdir, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import * as path from 'node:path';
import { ask, isExecutable } from './probe';

/** Why the environment could not be made, in words for a person, with what would help. */
export class CannotMake extends Error {
  constructor(message: string, readonly remedy: string) { super(message); }
}

export interface Hooks {
  /** One line about what happens now. */
  say(line: string): void;
  /** Aborted when the person cancels. */
  signal: AbortSignal;
}

const bin = process.platform === 'win32' ? 'Scripts' : 'bin';
const exe = process.platform === 'win32' ? '.exe' : '';
const DAY_MS = 24 * 3600 * 1000;

/** The small file that names the finished environment of a version, and the wheel that it was made from. */
function pointerFile(storage: string, version: string): string {
  return path.join(storage, `server-${version}.json`);
}

interface Pointer { folder: string; wheel: string }

/** The finished environment's program, or null when there is none yet, or when it was made from another wheel. */
export async function readyProgram(storage: string, version: string, wheel: string | null): Promise<string | null> {
  try {
    const pointer = JSON.parse(await readFile(pointerFile(storage, version), 'utf8')) as Pointer;
    if (wheel && pointer.wheel !== await wheelKey(wheel)) { return null; }
    const program = path.join(pointer.folder, bin, `odyssey${exe}`);
    return (await isExecutable(program)) ? program : null;
  } catch {
    return null;
  }
}

/** A wheel by name and size: a development build has the same name as the one before. */
async function wheelKey(wheel: string): Promise<string> {
  return `${path.basename(wheel)} ${(await stat(wheel)).size}`;
}

/** First program of `candidates` that is a Python of 3.10 or newer with venv. Throws CannotMake. */
export async function findBase(candidates: string[]): Promise<string> {
  let seen = '';
  let withoutVenv = '';
  for (const candidate of candidates) {
    const answer = await ask(candidate, ['-c', 'import sys; print("%d.%d" % sys.version_info[:2]); import venv, ensurepip']);
    const version = answer.out.trim();
    if (!version) { continue; }
    const [major = 0, minor = 0] = version.split('.').map(Number);
    if (major !== 3 || minor < 10) { seen = `${candidate} is Python ${version}`; continue; }
    if (answer.code !== 0) { withoutVenv = candidate; continue; }
    return candidate;
  }
  if (withoutVenv) {
    throw new CannotMake(`${withoutVenv} cannot make virtual environments: its venv module is not complete.`,
      'On Debian or Ubuntu install python3-venv, then start the server again.');
  }
  throw new CannotMake(
    seen ? `The server needs Python 3.10 or newer; ${seen}.` : 'No Python was found on this machine.',
    'Install Python 3.10 or newer, or set odyssey.serverPath to an installed odyssey.');
}

/**
 * Make the environment and return its program. Each attempt has a folder of its own, and the pointer is put in place at the end:
 * two windows that start together, or one that is closed in between, leave nothing half-made behind a name that is used.
 */
export async function makeEnvironment(storage: string, version: string, wheel: string, base: string, hooks: Hooks): Promise<string> {
  await mkdir(storage, { recursive: true });
  await forgetOld(storage);
  const folder = path.join(storage, `server-${version}-${Date.now().toString(36)}-${process.pid}`);
  try {
    hooks.say(`making a virtual environment with ${base}`);
    await step(base, ['-m', 'venv', folder], hooks);
    hooks.say('installing the server (about 20 MB, once)');
    const python = path.join(folder, bin, `python${exe}`);
    await step(python, ['-m', 'pip', 'install', '--disable-pip-version-check', '--no-input', '--quiet', wheel], hooks);
    const program = path.join(folder, bin, `odyssey${exe}`);
    hooks.say('starting it once');
    await step(program, ['--version'], hooks);
    const draft = `${pointerFile(storage, version)}.${process.pid}`;
    await writeFile(draft, JSON.stringify({ folder, wheel: await wheelKey(wheel) } satisfies Pointer));
    await rename(draft, pointerFile(storage, version));
    return program;
  } catch (error) {
    await removeQuietly(folder);
    throw error;
  }
}

/** Folders that no pointer names, once they are a day old: another window may be filling a younger one. */
async function forgetOld(storage: string): Promise<void> {
  const names = await readdir(storage);
  const pointers = names.filter((name) => /^server-.*\.json$/.test(name));
  const used = await Promise.all(pointers.map(async (name) => (JSON.parse(await readFile(path.join(storage, name), 'utf8')) as Pointer).folder));
  for (const name of names.filter((one) => /^server-[^/]*-[a-z0-9]+-\d+$/.test(one))) {
    const folder = path.join(storage, name);
    const age = Date.now() - (await stat(folder)).mtimeMs;
    if (!used.includes(folder) && age > DAY_MS) { await removeQuietly(folder); }
  }
}

/** What cannot be removed now is removed by a later start. */
async function removeQuietly(folder: string): Promise<void> {
  await rm(folder, { recursive: true, force: true, maxRetries: 3 }).catch(() => undefined);
}

/** Run one step, its output to the log. Throws CannotMake with the last line that the program wrote. */
function step(program: string, args: string[], hooks: Hooks): Promise<void> {
  return new Promise((done, fail) => {
    const child = spawn(program, args, { signal: hooks.signal, stdio: ['ignore', 'pipe', 'pipe'], windowsHide: true });
    let tail = '';
    const hear = (chunk: Buffer): void => {
      const text = chunk.toString('utf8');
      tail = (tail + text).slice(-4000);
      for (const line of text.split('\n')) { if (line.trim()) { hooks.say(line.trimEnd()); } }
    };
    child.stdout.on('data', hear);
    child.stderr.on('data', hear);
    child.on('error', (error) => {
      if (hooks.signal.aborted) { fail(new CannotMake('The set-up was cancelled.', 'Start the server again to go on.')); return; }
      fail(new CannotMake(`${program} could not be started: ${error.message}.`, 'Set odyssey.serverPath to an installed odyssey.'));
    });
    child.on('close', (code) => {
      if (code === 0) { done(); return; }
      fail(new CannotMake(failureWords(program, args, code, tail), remedyFor(tail)));
    });
  });
}

export function failureWords(program: string, args: string[], code: number | null, tail: string): string {
  const last = tail.trim().split('\n').filter((line) => line.trim()).at(-1) ?? 'it wrote nothing';
  return `"${[path.basename(program), ...args.slice(0, 3)].join(' ')}" ended with ${code ?? 'a signal'}: ${last}`;
}

/** What a person can do about a failed installation. Decides by pip's words because pip has no codes for its causes. */
export function remedyFor(tail: string): string {
  if (/No matching distribution|Temporary failure|Connection|resolve|timed out|Network/i.test(tail)) {
    return 'The packages could not be fetched. Give this machine access to a package index (pip settings are used), or install odyssey-lsp by hand and set odyssey.serverPath.';
  }
  if (/No space left/i.test(tail)) { return 'Free some disk space (about 60 MB) and start the server again.'; }
  return 'The log holds the whole output. You can also install odyssey-lsp by hand and set odyssey.serverPath.';
}
