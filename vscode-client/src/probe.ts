// Owns what the client finds out about programs on this machine: where they are, what they answer. Starts only short-lived processes.
import { execFile } from 'node:child_process';
import { access, constants, readdir, stat } from 'node:fs/promises';
import * as path from 'node:path';

export interface Answer { code: number; out: string; err: string }

/** Run a program to its end. Never rejects: a program that cannot start is code -1 with the reason in `err`. */
export function ask(program: string, args: string[], timeoutMs = 20_000): Promise<Answer> {
  return new Promise((done) => {
    execFile(program, args, { timeout: timeoutMs, encoding: 'utf8', windowsHide: true }, (error, out, err) => {
      if (!error) { done({ code: 0, out, err }); return; }
      done({ code: typeof error.code === 'number' ? error.code : -1, out, err: err || error.message });
    });
  });
}

export async function isExecutable(file: string): Promise<boolean> {
  try {
    await access(file, constants.X_OK);
    return (await stat(file)).isFile();
  } catch {
    return false;
  }
}

/** Absolute path of a program on `searchPath`, or null. The workspace is never searched: relative PATH entries are passed over. */
export async function which(name: string, searchPath: string, platform: string = process.platform): Promise<string | null> {
  const suffixes = platform === 'win32' ? ['.exe', '.cmd'] : [''];
  for (const folder of searchPath.split(path.delimiter)) {
    if (!path.isAbsolute(folder)) { continue; }
    for (const suffix of suffixes) {
      const file = path.join(folder, name + suffix);
      if (await isExecutable(file)) { return file; }
    }
  }
  return null;
}

/** The one wheel in a folder, or null. */
export async function wheelIn(folder: string): Promise<string | null> {
  try {
    const wheels = (await readdir(folder)).filter((name) => name.endsWith('.whl')).sort();
    const last = wheels.at(-1);
    return last ? path.join(folder, last) : null;
  } catch {
    return null;
  }
}
