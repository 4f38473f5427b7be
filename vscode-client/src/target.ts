// Owns which kernel a command is about when it was not told: the one whose lens stands above the cursor. Never parses source text.
import * as vscode from 'vscode';

export interface Target { uri: string; kernel: string }

interface Place { line: number; target: Target }

/** Pure: the last place at or above `line`, else the first below. */
export function nearest(places: Place[], line: number): Target | null {
  const above = places.filter((place) => place.line <= line).sort((a, b) => b.line - a.line)[0];
  const below = [...places].sort((a, b) => a.line - b.line)[0];
  return (above ?? below)?.target ?? null;
}

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
