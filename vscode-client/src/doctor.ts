// Owns showing the doctor's report. Its words are the server's; without a server it says what the client knows.
import * as vscode from 'vscode';
import type { Connection } from './connection';
import { showReport, type Texts } from './texts';

/** The report as text, whatever form the server gives it. */
export function reportText(answer: unknown): string {
  if (typeof answer === 'string') { return answer; }
  const fields = answer as { markdown?: unknown; text?: unknown } | null;
  for (const words of [fields?.text, fields?.markdown]) { if (typeof words === 'string') { return words; } }
  return JSON.stringify(answer, null, 2) ?? '';
}

export async function showDoctor(connection: Connection, texts: Texts): Promise<void> {
  if (connection.link !== 'running') {
    const lines = ['# Odyssey doctor', '', connection.failure ?? 'The server is not running.', '', `Trusted folder: ${vscode.workspace.isTrusted ? 'yes' : 'no'}`];
    await showReport(texts, 'odyssey doctor', lines.join('\n'));
    return;
  }
  const report = reportText(await connection.execute('odyssey.doctor', {}));
  connection.log.info(report);
  if (report) { await showReport(texts, 'odyssey doctor', report); }
}
