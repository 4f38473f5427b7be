// Owns what a row's actions do in the editor: open, restore, pin, compare, copy. Numbers and sentences come from the server.
import * as vscode from 'vscode';
import type { Connection } from '../connection';
import type { Row } from '../protocol';
import type { Texts } from '../texts';
import { showText } from '../texts';

export class Actions {
  constructor(private readonly connection: Connection, private readonly texts: Texts) {}

  /** One row with its card, or null when it is not there. */
  async row(seq: number): Promise<Row | null> {
    const { rows } = await this.connection.ledgerRows({ after: seq - 1, before: seq + 1, limit: 1 });
    return rows[0] ?? null;
  }

  async open(sha: string): Promise<void> {
    const { text, path } = await this.connection.candidate(sha);
    await showText(this.texts.put(text, path, sha.slice(0, 7)));
  }

  /** Bring a recorded text back as an edit of its file; the person saves it or not. */
  async restore(sha: string, uri: string): Promise<void> {
    const file = vscode.Uri.parse(uri);
    await vscode.window.showTextDocument(file, { preview: false });
    await this.connection.execute('odyssey.restore', { sha, uri });
  }

  async pin(seq: number): Promise<string> {
    const { ok } = await this.connection.pin(seq);
    return ok ? `Measurement ${seq} is the baseline now.` : `Measurement ${seq} cannot be a baseline.`;
  }

  /** Show two recorded texts as a diff; returns the server's table of their numbers. */
  async compare(a: string, b: string): Promise<{ title: string; markdown: string }> {
    const found = await this.connection.compare(a, b);
    const { path } = await this.connection.candidate(b);
    const left = this.texts.put(found.a_text, path, a.slice(0, 7));
    const right = this.texts.put(found.b_text, path, `${b.slice(0, 7)}${a === b ? ' again' : ''}`);
    await vscode.commands.executeCommand('vscode.diff', left, right, found.diff_title, { preview: true });
    return { title: found.diff_title, markdown: found.table_markdown };
  }

  async copy(seqs: number[]): Promise<string> {
    const cards: string[] = [];
    for (const seq of seqs) {
      const row = await this.row(seq);
      if (row) { cards.push(row.detail_markdown); }
    }
    await vscode.env.clipboard.writeText(cards.join('\n\n'));
    return cards.length === 1 ? 'Copied one measurement as Markdown.' : `Copied ${cards.length} measurements as Markdown.`;
  }
}
