// Owns "open an example": a writable copy of a bundled kernel, ready to save. Never writes into the person's folders.
import * as path from 'node:path';
import * as vscode from 'vscode';

const FIRST = 'softmax.py';

export async function openExample(context: vscode.ExtensionContext): Promise<void> {
  const bundled = vscode.Uri.joinPath(context.extensionUri, 'examples');
  const names = (await vscode.workspace.fs.readDirectory(bundled)).filter(([, kind]) => kind === vscode.FileType.File).map(([name]) => name);
  const target = vscode.Uri.joinPath(context.globalStorageUri, 'examples');
  await vscode.workspace.fs.createDirectory(target);
  for (const name of names) {
    const file = vscode.Uri.joinPath(target, name);
    // A copy that the person has changed already is theirs.
    if (!(await exists(file))) { await vscode.workspace.fs.copy(vscode.Uri.joinPath(bundled, name), file); }
  }
  const first = names.includes(FIRST) ? FIRST : names.find((name) => path.extname(name) === '.py');
  if (!first) { throw new Error('This build of the extension carries no examples.'); }
  const document = await vscode.workspace.openTextDocument(vscode.Uri.joinPath(target, first));
  await vscode.window.showTextDocument(document, { preview: false });
}

async function exists(file: vscode.Uri): Promise<boolean> {
  try { await vscode.workspace.fs.stat(file); return true; } catch { return false; }
}
