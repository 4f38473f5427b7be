// Owns activation: wires the parts, nothing else. Returns before the server runs, so that it adds little to the editor's start.
import * as vscode from 'vscode';
import { registerCommands } from './commands';
import { Connection } from './connection';
import { showMarks } from './marks';
import { Actions } from './panel/actions';
import { Panel } from './panel/panel';
import { Proposals } from './proposals';
import { watchInterpreter } from './python';
import { Searches } from './searches';
import { showStatus } from './status';
import { Texts } from './texts';

/** For tests: the connection, and how long activation took. */
export interface Api { connection: Connection; activationMs: number }

let connection: Connection | null = null;

export function activate(context: vscode.ExtensionContext): Api {
  const began = performance.now();
  const log = vscode.window.createOutputChannel('Odyssey', { log: true });
  connection = new Connection(context, log);
  const texts = new Texts();
  const actions = new Actions(connection, texts);
  const panel = new Panel(context.extensionUri, connection, actions);
  const proposals = new Proposals(connection, texts);
  const searches = new Searches(connection);
  context.subscriptions.push(
    log, connection, texts, panel, proposals, searches,
    showStatus(connection),
    showMarks(context.extensionUri, connection),
    registerCommands({ context, connection, panel, proposals, searches, texts }),
    ...followSettings(connection),
    ...followEditor(),
  );
  void begin(connection, context);
  const activationMs = performance.now() - began;
  log.info(`activated in ${activationMs.toFixed(1)} ms`);
  return { connection, activationMs };
}

export async function deactivate(): Promise<void> {
  await connection?.stop();
}

async function begin(link: Connection, context: vscode.ExtensionContext): Promise<void> {
  await link.start();
  context.subscriptions.push(await watchInterpreter(() => void link.interpreterChanged()));
}

function followSettings(link: Connection): vscode.Disposable[] {
  return [
    vscode.workspace.onDidChangeConfiguration((change) => {
      if (change.affectsConfiguration('odyssey.serverPath')) { void link.restart(); }
    }),
    vscode.workspace.onDidGrantWorkspaceTrust(() => void link.trust()),
  ];
}

/** `odyssey.kernelFile` decides where keys and menu entries are offered. */
function followEditor(): vscode.Disposable[] {
  const tell = (editor: vscode.TextEditor | undefined): void => {
    const document = editor?.document;
    const kernels = document?.uri.scheme === 'file' && (document.languageId === 'python' || /\.cuh?$/.test(document.uri.path));
    void vscode.commands.executeCommand('setContext', 'odyssey.kernelFile', kernels === true);
  };
  tell(vscode.window.activeTextEditor);
  return [vscode.window.onDidChangeActiveTextEditor(tell)];
}
