// Owns the connection to the server: start, stop, restart, typed requests, and the events that others listen to.
// Never shows views and never interprets a measurement.
import * as vscode from 'vscode';
import { CannotMake } from './environment';
import type { Client } from './client';
import { findServer } from './launcher';
import { activeInterpreter } from './python';
import type {
  Candidate, CandidateMap, Comparison, LedgerRows, LedgerRowsParams, Marks, Plots, ProposalReady, Scope, ServerCommand, Status,
} from './protocol';
import { METHODS } from './protocol';

export type Link = 'stopped' | 'starting' | 'running' | 'failed';

/** One event of a progress that the server reports. */
export interface WorkDone { token: string; value: { kind: 'begin' | 'report' | 'end'; message?: string; percentage?: number } }

/** Thrown by requests while no server runs. */
export class NotRunning extends Error {
  constructor() { super('The Odyssey server is not running.'); }
}

export class Connection implements vscode.Disposable {
  private client: Client | null = null;
  private starting: Promise<void> | null = null;
  /** Ends a start that is under way, e.g. one that still installs the server. */
  private giveUp = new AbortController();
  private readonly linkEvents = new vscode.EventEmitter<Link>();
  private readonly statusEvents = new vscode.EventEmitter<Status>();
  private readonly ledgerEvents = new vscode.EventEmitter<number>();
  private readonly proposalEvents = new vscode.EventEmitter<ProposalReady>();
  private readonly marksEvents = new vscode.EventEmitter<Marks>();
  private readonly workDoneEvents = new vscode.EventEmitter<WorkDone>();
  readonly onLink = this.linkEvents.event;
  readonly onStatus = this.statusEvents.event;
  readonly onLedgerAppended = this.ledgerEvents.event;
  readonly onProposal = this.proposalEvents.event;
  readonly onMarks = this.marksEvents.event;
  readonly onWorkDone = this.workDoneEvents.event;
  link: Link = 'stopped';
  /** Why the last start failed, in words. */
  failure: string | null = null;

  constructor(private readonly context: vscode.ExtensionContext, readonly log: vscode.LogOutputChannel) {}

  /** Start once; a second call waits for the first. Never rejects: what went wrong is shown and kept in `failure`. */
  start(): Promise<void> {
    this.starting ??= this.begin().finally(() => { this.starting = null; });
    return this.starting;
  }

  async restart(): Promise<void> {
    this.giveUp.abort();
    await this.starting;
    await this.stop();
    await this.start();
  }

  async stop(): Promise<void> {
    const client = this.client;
    this.client = null;
    // A server that does not answer shutdown in two seconds is ended by the client library.
    await client?.stop(2000).catch((error: unknown) => this.log.warn(`stop: ${String(error)}`));
    this.setLink('stopped');
  }

  private async begin(): Promise<void> {
    if (this.link === 'running') { return; }
    this.failure = null;
    this.setLink('starting');
    const { signal } = this.giveUp = new AbortController();
    try {
      const launch = await findServer(this.context, this.log, signal);
      // Loaded here and not at the top: the client library costs most of the activation time.
      const { createClient } = await import('./client');
      this.client = createClient(launch, this.log, {
        interpreter: await activeInterpreter(),
        listeners: {
          status: (status) => this.statusEvents.fire(status),
          ledger: (seq) => this.ledgerEvents.fire(seq),
          proposal: (proposal) => this.proposalEvents.fire(proposal),
          marks: (marks) => this.marksEvents.fire(marks),
          workDone: (event) => this.workDoneEvents.fire(event),
          running: (running) => { this.setLink(running ? 'running' : 'starting'); if (running) { void this.keyChanged(); } },
          lost: (why) => this.fail(why, 'The log holds what it wrote last.'),
        },
      });
      await this.client.start();
      this.setLink('running');
    } catch (error) {
      this.client = null;
      if (signal.aborted) { this.setLink('stopped'); return; }
      if (error instanceof CannotMake) { this.fail(error.message, error.remedy); } else {
        this.fail(`The server did not start: ${error instanceof Error ? error.message : String(error)}`, 'The log holds what it wrote.');
      }
    }
  }

  private setLink(link: Link): void {
    if (this.link === link) { return; }
    this.link = link;
    this.linkEvents.fire(link);
  }

  private fail(message: string, remedy: string): void {
    this.failure = message;
    this.log.error(`${message} ${remedy}`);
    this.setLink('failed');
    void vscode.window.showErrorMessage(`Odyssey: ${message} ${remedy}`, 'Try Again', 'Show Log', 'Open Settings').then((choice) => {
      if (choice === 'Try Again') { void this.start(); }
      if (choice === 'Show Log') { this.log.show(); }
      if (choice === 'Open Settings') { void vscode.commands.executeCommand('workbench.action.openSettings', 'odyssey.serverPath'); }
    });
  }

  private request<T>(method: string, params: object): Promise<T> {
    if (!this.client || this.link !== 'running') { return Promise.reject(new NotRunning()); }
    return this.client.sendRequest<T>(method, params);
  }

  ledgerRows(params: LedgerRowsParams): Promise<LedgerRows> { return this.request(METHODS.ledgerRows, params); }
  candidate(sha: string): Promise<Candidate> { return this.request(METHODS.candidate, { sha }); }
  map(scope: Scope): Promise<CandidateMap> { return this.request(METHODS.map, scope); }
  plots(scope: Scope): Promise<Plots> { return this.request(METHODS.plots, scope); }
  compare(a: string, b: string): Promise<Comparison> { return this.request(METHODS.compare, { a, b }); }
  pin(seq: number): Promise<{ ok: boolean }> { return this.request(METHODS.pin, { seq }); }
  execute(command: ServerCommand, argument: object): Promise<unknown> {
    return this.request('workspace/executeCommand', { command, arguments: [argument] });
  }

  /** Tell the server that the folder is trusted now; only then is the folder's interpreter looked for. */
  async trust(): Promise<void> {
    await this.tell(METHODS.trust, { trusted: true });
    await this.interpreterChanged();
  }

  async interpreterChanged(): Promise<void> {
    await this.tell(METHODS.editorPython, { path: await activeInterpreter() });
  }

  /** Give the model's key to the server, which keeps it in memory only. */
  async keyChanged(): Promise<void> {
    await this.tell(METHODS.key, { key: await this.context.secrets.get('odyssey.modelKey') ?? null });
  }

  private async tell(method: string, params: object): Promise<void> {
    if (this.client && this.link === 'running') { await this.client.sendNotification(method, params); }
  }

  dispose(): void {
    const emitters = [this.linkEvents, this.statusEvents, this.ledgerEvents, this.proposalEvents, this.marksEvents, this.workDoneEvents];
    for (const emitter of emitters) { emitter.dispose(); }
  }
}
