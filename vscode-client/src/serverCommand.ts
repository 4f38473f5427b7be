// Owns the decision which server program is started, as a pure function of settings and facts. Never touches a disk or an editor.

export interface Facts {
  /** Setting odyssey.serverPath, trimmed; '' when not set. */
  setting: string;
  /** Whether the path in the setting is an executable file. */
  settingRuns: boolean;
  /** `odyssey` found on PATH and what `odyssey --version` printed; null when there is none. */
  onPath: { path: string; versionText: string } | null;
  /** Program inside the private environment when that is complete for this version; null when it must be made. */
  privateProgram: string | null;
  /** This extension's version. */
  version: string;
  /** Wheel inside the extension; null in a development checkout without one. */
  wheel: string | null;
}

export type Decision =
  | { kind: 'run'; command: string; args: string[]; origin: 'setting' | 'path' | 'private'; note: string | null }
  | { kind: 'make'; wheel: string; note: string | null }
  | { kind: 'cannot'; message: string; remedy: string };

export const ARGS = ['lsp', '--stdio'];

/** First three-part version in a program's answer, or null. */
export function parseVersion(text: string): [number, number, number] | null {
  const found = /(\d+)\.(\d+)\.(\d+)/.exec(text);
  return found ? [Number(found[1]), Number(found[2]), Number(found[3])] : null;
}

/** The protocol may change with the minor version, never with the patch. */
export function versionsMatch(answer: string, wanted: string): boolean {
  const a = parseVersion(answer);
  const b = parseVersion(wanted);
  return a !== null && b !== null && a[0] === b[0] && a[1] === b[1];
}

/** Setting, then `odyssey` on the PATH of a matching version, then the private environment. */
export function decide(facts: Facts): Decision {
  if (facts.setting) {
    if (facts.settingRuns) { return { kind: 'run', command: facts.setting, args: ARGS, origin: 'setting', note: null }; }
    return {
      kind: 'cannot',
      message: `The setting odyssey.serverPath names ${facts.setting}, which is not a program that can be run.`,
      remedy: 'Correct the setting, or clear it so that the extension finds or makes a server itself.',
    };
  }
  let note: string | null = null;
  if (facts.onPath) {
    if (versionsMatch(facts.onPath.versionText, facts.version)) {
      return { kind: 'run', command: facts.onPath.path, args: ARGS, origin: 'path', note: null };
    }
    const answer = facts.onPath.versionText.trim().split('\n')[0] || 'no version';
    note = `${facts.onPath.path} answers "${answer}", this extension needs ${facts.version}; it is passed over.`;
  }
  if (facts.privateProgram) { return { kind: 'run', command: facts.privateProgram, args: ARGS, origin: 'private', note }; }
  if (facts.wheel) { return { kind: 'make', wheel: facts.wheel, note }; }
  return {
    kind: 'cannot',
    message: note ?? 'There is no odyssey on the PATH, and this build of the extension carries no server.',
    remedy: 'Install it (pipx install odyssey-lsp) or set odyssey.serverPath.',
  };
}

/** Programs to try as the base of the private environment, the best guess first. */
export function basePythons(userPython: string | null, platform: string): string[] {
  const names = platform === 'win32'
    ? ['py', 'python']
    : ['python3.13', 'python3.12', 'python3.11', 'python3.10', 'python3', 'python'];
  return userPython ? [...names, userPython] : names;
}
