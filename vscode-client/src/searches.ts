// Owns the notification of a running search for a proposal: what it does now, and its cancel button. A judged save shows none:
// that is told by the status bar alone.
import * as vscode from 'vscode';
import type { Connection, WorkDone } from './connection';

/** Searches that ended before their run id was known here; no more than these are remembered. */
const REMEMBERED = 50;

export class Searches implements vscode.Disposable {
  private readonly ended: string[] = [];
  private readonly running = new Map<string, (value: WorkDone['value']) => void>();
  private readonly subscription: vscode.Disposable;

  constructor(private readonly connection: Connection) {
    this.subscription = vscode.Disposable.from(
      connection.onWorkDone(({ token, value }) => {
        if (value.kind === 'end') { this.ended.push(token); this.ended.splice(0, this.ended.length - REMEMBERED); }
        this.running.get(token)?.(value);
      }),
      connection.onLink((link) => { if (link !== 'running') { for (const hear of this.running.values()) { hear({ kind: 'end' }); } } }),
    );
  }

  /** Show the search until it ends. `answer` is what the server said to odyssey.propose. */
  follow(kernel: string, answer: unknown): void {
    const run = (answer as { run_id?: unknown } | null)?.run_id;
    if (typeof run !== 'string' || this.ended.includes(run)) { return; }
    const options = { location: vscode.ProgressLocation.Notification, title: `Odyssey: looking for a faster ${kernel}`, cancellable: true };
    void vscode.window.withProgress(options, (progress, cancelled) => new Promise<void>((done) => {
      let told = 0;
      this.running.set(run, (value) => {
        if (value.kind === 'end') { this.running.delete(run); done(); return; }
        const share = value.percentage ?? told;
        progress.report({ ...(value.message ? { message: value.message } : {}), increment: Math.max(0, share - told) });
        told = Math.max(told, share);
      });
      cancelled.onCancellationRequested(() => { void this.connection.execute('odyssey.stop', { run_id: run }).catch(() => done()); });
    }));
  }

  dispose(): void { this.subscription.dispose(); }
}
