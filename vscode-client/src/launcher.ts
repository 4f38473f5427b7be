// Owns finding or making the server program, with progress. Decisions are serverCommand's; this file gathers facts and shows.
import * as path from 'node:path';
import * as vscode from 'vscode';
import { CannotMake, findBase, makeEnvironment, readyProgram } from './environment';
import { ask, isExecutable, wheelIn, which } from './probe';
import { activeInterpreter } from './python';
import { ARGS, basePythons, decide, type Facts } from './serverCommand';

export interface Launch { command: string; args: string[] }

/** The server to start. Throws CannotMake with words and remedy for the person. */
export async function findServer(context: vscode.ExtensionContext, log: vscode.LogOutputChannel, stop: AbortSignal): Promise<Launch> {
  const facts = await gatherFacts(context);
  const decision = decide(facts);
  if (decision.kind === 'cannot') { throw new CannotMake(decision.message, decision.remedy); }
  if (decision.note) { log.warn(decision.note); }
  if (decision.kind === 'run') {
    log.info(`server: ${decision.command} (${decision.origin})`);
    return { command: decision.command, args: decision.args };
  }
  const program = await makeWithProgress(context.globalStorageUri.fsPath, facts.version, decision.wheel, log, stop);
  return { command: program, args: ARGS };
}

async function gatherFacts(context: vscode.ExtensionContext): Promise<Facts> {
  const version = String((context.extension.packageJSON as { version: unknown }).version);
  const setting = expandHome(vscode.workspace.getConfiguration('odyssey').get<string>('serverPath', '').trim());
  const wheel = await wheelIn(path.join(context.extensionPath, 'server'));
  // A setting that is set decides alone: then nothing else is looked for or started.
  const found = setting ? null : await which('odyssey', process.env['PATH'] ?? '');
  const answer = found ? await ask(found, ['--version']) : null;
  return {
    setting,
    settingRuns: setting !== '' && await isExecutable(setting),
    onPath: found && answer ? { path: found, versionText: answer.out } : null,
    privateProgram: setting ? null : await readyProgram(context.globalStorageUri.fsPath, version, wheel),
    version,
    wheel,
  };
}

function expandHome(text: string): string {
  return text.startsWith('~/') ? path.join(process.env['HOME'] ?? '', text.slice(2)) : text;
}

async function makeWithProgress(storage: string, version: string, wheel: string, log: vscode.LogOutputChannel, stop: AbortSignal): Promise<string> {
  const options = { location: vscode.ProgressLocation.Notification, title: 'Odyssey: preparing the server (once)', cancellable: true };
  return vscode.window.withProgress(options, async (progress, token) => {
    const abort = new AbortController();
    token.onCancellationRequested(() => abort.abort());
    stop.addEventListener('abort', () => abort.abort());
    const say = (line: string): void => { log.info(`setup: ${line}`); progress.report({ message: line.slice(0, 90) }); };
    say('looking for Python');
    // The user's interpreter is asked last: only as the base of a separate environment, never changed.
    const base = await findBase(basePythons(await activeInterpreter(), process.platform));
    return makeEnvironment(storage, version, wheel, base, { say, signal: abort.signal });
  });
}
