// Owns the marks in the gutter beside judged kernels, as the server sends them. Shape tells the verdict, not only colour.
import * as vscode from 'vscode';
import type { Connection } from './connection';
import type { Mark, Marks } from './protocol';

type Kind = 'right' | 'wrong' | 'unknown' | 'stale';

/** Pure: which mark stands for a verdict. */
export function markKind(mark: Mark): Kind {
  if (mark.stale) { return 'stale'; }
  switch (mark.verdict) {
    case 'correct': return 'right';
    case 'incorrect': case 'compile_error': return 'wrong';
    case 'error': return 'unknown';
  }
}

export function showMarks(extension: vscode.Uri, connection: Connection): vscode.Disposable {
  const kinds: Kind[] = ['right', 'wrong', 'unknown', 'stale'];
  const types = new Map(kinds.map((kind) => [kind, vscode.window.createTextEditorDecorationType({
    gutterIconPath: vscode.Uri.joinPath(extension, 'media', `mark-${kind}.svg`),
    gutterIconSize: 'contain',
    ...(kind === 'right' || kind === 'wrong' ? { overviewRulerColor: new vscode.ThemeColor(`odyssey.${kind}`), overviewRulerLane: vscode.OverviewRulerLane.Left } : {}),
  })]));
  const known = new Map<string, Marks>();
  const draw = (editor: vscode.TextEditor): void => {
    const marks = enabled() ? known.get(editor.document.uri.toString())?.marks ?? [] : [];
    for (const [kind, type] of types) {
      editor.setDecorations(type, marks.filter((mark) => markKind(mark) === kind && mark.line < editor.document.lineCount)
        .map((mark) => editor.document.lineAt(mark.line).range));
    }
  };
  const drawAll = (): void => vscode.window.visibleTextEditors.forEach(draw);
  return vscode.Disposable.from(
    ...types.values(),
    connection.onMarks((marks) => {
      const uri = vscode.Uri.parse(marks.uri).toString();
      known.set(uri, marks);
      if (marks.marks.some((mark) => !mark.stale)) { void vscode.commands.executeCommand('setContext', 'odyssey.hasVerdict', true); }
      vscode.window.visibleTextEditors.filter((editor) => editor.document.uri.toString() === uri).forEach(draw);
    }),
    connection.onLink((link) => { if (link !== 'running') { known.clear(); drawAll(); } }),
    vscode.window.onDidChangeVisibleTextEditors(drawAll),
    vscode.workspace.onDidChangeConfiguration((change) => { if (change.affectsConfiguration('odyssey.gutterMarks')) { drawAll(); } }),
    vscode.workspace.onDidCloseTextDocument((document) => known.delete(document.uri.toString())),
  );
}

function enabled(): boolean {
  return vscode.workspace.getConfiguration('odyssey').get('gutterMarks', true);
}
