// Owns the extension's commands: what each one needs, and sending it. A lens passes its kernel; the palette takes the cursor's.
import * as vscode from 'vscode';
import { NotRunning, type Connection } from './connection';
import { showDoctor } from './doctor';
import { openExample } from './example';
import { freshMeasurement } from './latest';
import type { Panel } from './panel/panel';
import type { Proposals } from './proposals';
import type { ServerCommand } from './protocol';
import { chooseInterpreter } from './python';
import type { Searches } from './searches';
import { statusMenu } from './status';
import { isTarget, kernelAtCursor, type Target } from './target';
import type { Texts } from './texts';

export interface Parts {
  context: vscode.ExtensionContext;
  connection: Connection;
  panel: Panel;
  proposals: Proposals;
  searches: Searches;
  texts: Texts;
}

type Handler = (argument: unknown) => Promise<unknown> | Promise<void> | void;

export function registerCommands(parts: Parts): vscode.Disposable {
  const { connection, panel, proposals, texts, context } = parts;
  const table: Record<string, Handler> = {
    'odyssey.evaluate': (a) => onKernel(a, (t) => connection.execute('odyssey.evaluate', t)),
    'odyssey.evaluateThorough': (a) => onKernel(a, (t) => connection.execute('odyssey.evaluateThorough', t)),
    'odyssey.pickShape': (a) => onKernel(a, (t) => connection.execute('odyssey.pickShape', t)),
    'odyssey.propose': (a) => onKernel(a, (t) => propose(parts, t)),
    'odyssey.history': (a) => onKernel(a, (t) => panel.show('ledger', { uri: t.uri, kernel: t.kernel })),
    'odyssey.stop': (a) => connection.execute('odyssey.stop', object(a)),
    'odyssey.accept': (a) => proposals.accept(a instanceof vscode.Uri ? a : undefined),
    'odyssey.reject': (a) => proposals.reject(a instanceof vscode.Uri ? a : undefined),
    'odyssey.pinBaseline': (a) => pinBaseline(connection, a),
    'odyssey.restore': (a) => connection.execute('odyssey.restore', object(a)),
    'odyssey.restartWorkers': () => connection.execute('odyssey.restartWorkers', {}),
    'odyssey.doctor': () => showDoctor(connection, texts),
    'odyssey.openPanel': () => panel.openBeside(),
    'odyssey.showLedger': () => panel.show('ledger'),
    'odyssey.showMap': () => panel.show('map'),
    'odyssey.showPlots': () => panel.show('plots'),
    'odyssey.refresh': () => panel.reload(),
    'odyssey.openExample': () => openExample(context),
    'odyssey.selectInterpreter': () => chooseInterpreter(),
    'odyssey.setModelKey': () => setModelKey(context, connection),
    'odyssey.restartServer': () => connection.restart(),
    'odyssey.showLog': () => connection.log.show(),
    'odyssey.statusMenu': () => statusMenu(),
  };
  const registered = Object.entries(table).map(([id, handler]) => vscode.commands.registerCommand(id, (argument: unknown) => fence(connection, handler, argument)));
  return vscode.Disposable.from(...registered);
}

/** The commands' fence: a refusal or a fault becomes one message; nothing is thrown at the person. */
async function fence(connection: Connection, handler: Handler, argument: unknown): Promise<unknown> {
  try {
    return await handler(argument);
  } catch (error) {
    if (error instanceof NotRunning) {
      const choice = await vscode.window.showWarningMessage(connection.failure ? `Odyssey: ${connection.failure}` : 'Odyssey: the server is not running.', 'Start', 'Show Log');
      if (choice === 'Start') { await connection.start(); }
      if (choice === 'Show Log') { connection.log.show(); }
      return undefined;
    }
    const words = error instanceof Error ? error.message : String(error);
    connection.log.warn(words);
    void vscode.window.showErrorMessage(`Odyssey: ${words}`);
    return undefined;
  }
}

function object(argument: unknown): object {
  return argument && typeof argument === 'object' && !(argument instanceof vscode.Uri) ? argument : {};
}

async function onKernel(argument: unknown, send: (target: Target) => Promise<unknown>): Promise<unknown> {
  const target = isTarget(argument) ? argument : await kernelAtCursor();
  if (!target) {
    void vscode.window.showInformationMessage('Odyssey: there is no kernel here. Place the cursor in a file with a Triton or CUDA kernel.');
    return undefined;
  }
  return send(target);
}

async function propose({ connection, searches }: Parts, { uri, kernel }: Target): Promise<void> {
  searches.follow(kernel, await connection.execute('odyssey.propose', { uri, kernel }));
}

async function pinBaseline(connection: Connection, argument: unknown): Promise<void> {
  const given = object(argument) as { seq?: unknown };
  if (typeof given.seq === 'number') { await connection.execute('odyssey.pinBaseline' satisfies ServerCommand, { seq: given.seq }); return; }
  await onKernel(argument, async (target) => {
    const row = await freshMeasurement(connection, target);
    if (!row) { void vscode.window.showInformationMessage('Odyssey: this kernel was not measured yet.'); return; }
    await connection.execute('odyssey.pinBaseline', { seq: row.seq });
  });
}

async function setModelKey(context: vscode.ExtensionContext, connection: Connection): Promise<void> {
  const key = await vscode.window.showInputBox({
    title: "The model's key", prompt: 'Kept in the secret storage of the editor. Leave empty to forget it.', password: true, ignoreFocusOut: true,
  });
  if (key === undefined) { return; }
  if (key) { await context.secrets.store('odyssey.modelKey', key); } else { await context.secrets.delete('odyssey.modelKey'); }
  await connection.keyChanged();
}
