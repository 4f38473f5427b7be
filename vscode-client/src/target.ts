// Owns which kernel a command is about when it was not told: the one whose lens stands above the cursor. Never parses source text.
import * as vscode from 'vscode';
import { nearest, type Place, type Target } from './nearest';

export type { Target };


export function isTarget(value: unknown): value is Target {
  const found = value as Partial<Target> | null;
  return typeof found?.uri === 'string' && typeof found.kernel === 'string';
}

/** The kernel at the cursor of the active editor, by the server's own lenses; null when there is none. */
export async function kernelAtCursor(): Promise<Target | null> {
  const editor = vscode.window.activeTextEditor;
  if (!editor) { return null; }
  const lenses = await vscode.commands.executeCommand<vscode.CodeLens[] | undefined>('vscode.executeCodeLensProvider', editor.document.uri, 500);
  const places: Place[] = [];
  for (const lens of lenses ?? []) {
    const argument: unknown = lens.command?.arguments?.[0];
    if (lens.command?.command.startsWith('odyssey.') && isTarget(argument)) {
      places.push({ line: lens.range.start.line, target: { uri: argument.uri, kernel: argument.kernel } });
    }
  }
  return nearest(places, editor.selection.active.line);
}
