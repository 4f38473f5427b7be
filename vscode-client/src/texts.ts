// Owns the read-only documents that the extension shows: recorded texts, proposals, comparisons, reports. Never writes a file.
import * as path from 'node:path';
import * as vscode from 'vscode';

export const SCHEME = 'odyssey';

/** The texts of open read-only documents, by their address. Forgotten when the document is closed. */
export class Texts implements vscode.TextDocumentContentProvider, vscode.Disposable {
  private readonly texts = new Map<string, string>();
  private readonly changes = new vscode.EventEmitter<vscode.Uri>();
  readonly onDidChange = this.changes.event;
  private readonly registration: vscode.Disposable;

  constructor() {
    this.registration = vscode.Disposable.from(
      vscode.workspace.registerTextDocumentContentProvider(SCHEME, this),
      vscode.workspace.onDidCloseTextDocument((document) => this.texts.delete(document.uri.toString())),
    );
  }

  provideTextDocumentContent(uri: vscode.Uri): string {
    return this.texts.get(uri.toString()) ?? 'This text is no longer held. Open it again from the ledger.';
  }

  /** Address of a document that holds `text` and is named like `file`, with a note (a sha, a word) that keeps addresses apart. */
  put(text: string, file: string, note: string): vscode.Uri {
    const parsed = path.posix.parse(file.replaceAll('\\', '/'));
    const name = `${parsed.name} (${note.replaceAll('/', '-')})${parsed.ext}`;
    const uri = vscode.Uri.from({ scheme: SCHEME, path: path.posix.join('/', parsed.dir, name) });
    const before = this.texts.get(uri.toString());
    this.texts.set(uri.toString(), text);
    // An editor keeps a document for a while after its tab was closed: it must not show the text of the last time.
    if (before !== text) { this.changes.fire(uri); }
    return uri;
  }

  dispose(): void { this.registration.dispose(); this.changes.dispose(); }
}

export async function showText(uri: vscode.Uri, preview = true): Promise<void> {
  const document = await vscode.workspace.openTextDocument(uri);
  await vscode.window.showTextDocument(document, { preview, preserveFocus: false });
}

/** A report, as plain text: its words may come from anywhere. */
export async function showReport(texts: Texts, name: string, text: string): Promise<void> {
  await showText(texts.put(text, `${name}.txt`, 'report'));
}
