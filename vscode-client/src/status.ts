// Owns the status bar item and its menu. Cleared when the server stops; what it says is statusModel's.
import * as vscode from 'vscode';
import type { Connection } from './connection';
import type { Status } from './protocol';
import { statusItem } from './statusModel';

export function showStatus(connection: Connection): vscode.Disposable {
  const item = vscode.window.createStatusBarItem('odyssey.status', vscode.StatusBarAlignment.Right, 90);
  item.name = 'Odyssey';
  item.command = 'odyssey.statusMenu';
  let status: Status | null = null;
  const draw = (): void => {
    const { link, failure } = connection;
    const shown = statusItem({ link, status, failure, trusted: vscode.workspace.isTrusted });
    item.text = shown.text;
    const tooltip = new vscode.MarkdownString();
    shown.tooltip.forEach((line, index) => { tooltip.appendText(index ? `\n\n${line}` : line); });
    item.tooltip = tooltip;
    item.accessibilityInformation = { label: shown.spoken, role: 'button' };
    item.backgroundColor = shown.level === 'error' ? new vscode.ThemeColor('statusBarItem.errorBackground') : undefined;
  };
  draw();
  item.show();
  return vscode.Disposable.from(
    item,
    connection.onStatus((next) => { status = next; draw(); }),
    connection.onLink((link) => { if (link !== 'running') { status = null; } draw(); }),
    vscode.workspace.onDidGrantWorkspaceTrust(draw),
  );
}

interface Choice extends vscode.QuickPickItem { command: string }

export async function statusMenu(): Promise<void> {
  const choices: Choice[] = [
    { label: '$(table) Show the ledger', command: 'odyssey.showLedger' },
    { label: '$(git-commit) Show the map of candidates', command: 'odyssey.showMap' },
    { label: '$(graph) Show roofline and history', command: 'odyssey.showPlots' },
    { label: '$(pulse) Run the doctor', description: 'what is missing, and what would supply it', command: 'odyssey.doctor' },
    { label: '$(debug-stop) Stop what is running', command: 'odyssey.stop' },
    { label: '$(refresh) Restart the workers', command: 'odyssey.restartWorkers' },
    { label: '$(debug-restart) Restart the server', command: 'odyssey.restartServer' },
    { label: '$(symbol-method) Choose the Python that runs the kernels', command: 'odyssey.selectInterpreter' },
    { label: '$(output) Show the log', command: 'odyssey.showLog' },
  ];
  const choice = await vscode.window.showQuickPick(choices, { title: 'Odyssey', placeHolder: 'What to do' });
  if (choice) { await vscode.commands.executeCommand(choice.command); }
}
