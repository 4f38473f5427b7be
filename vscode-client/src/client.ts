// Owns the LanguageClient: its options, its middleware, what happens when the server dies. Loaded only when a server is started.
import * as vscode from 'vscode';
import {
  CloseAction, ErrorAction, LanguageClient, State,
  type DynamicFeature, type LanguageClientOptions, type StaticFeature,
} from 'vscode-languageclient/node';
import type { WorkDone } from './connection';
import type { Launch } from './launcher';
import { METHODS, type LedgerAppended, type Marks, type ProposalReady, type Status } from './protocol';

export interface Listeners {
  status(status: Status): void;
  ledger(seq: number): void;
  proposal(proposal: ProposalReady): void;
  marks(marks: Marks): void;
  workDone(event: WorkDone): void;
  running(running: boolean): void;
  lost(why: string): void;
}

export interface ClientFacts { interpreter: string | null; listeners: Listeners }

/** So many ends within three minutes, and the server is not started again by itself. */
const MOST_RESTARTS = 4;
const RESTART_WINDOW_MS = 3 * 60_000;

export class Client extends LanguageClient {
  /** Commands are registered once by the extension itself, so that they exist before and after the server runs. */
  override registerFeature(feature: StaticFeature | DynamicFeature<unknown>): void {
    const registration = 'registrationType' in feature ? feature.registrationType.method : '';
    if (registration === 'workspace/executeCommand') { return; }
    super.registerFeature(feature);
  }
}

export function createClient(launch: Launch, log: vscode.LogOutputChannel, facts: ClientFacts): Client {
  const options: LanguageClientOptions = {
    documentSelector: [
      { scheme: 'file', language: 'python' },
      { scheme: 'file', pattern: '**/*.{cu,cuh}' },
    ],
    outputChannel: log,
    initializationOptions: () => ({
      trusted: vscode.workspace.isTrusted,
      odyssey: vscode.workspace.getConfiguration('odyssey'),
      editorPython: facts.interpreter,
      proposals: true, // shown as a diff of our own
    }),
    markdown: { isTrusted: false, supportHtml: false },
    synchronize: { configurationSection: 'odyssey' },
    stdioOptions: {
      stdout: () => undefined, // carries the protocol
      stderr: (stream) => { stream.on('data', (chunk: Buffer) => relay(chunk, log)); },
    },
    errorHandler: new Restarts(log, facts.listeners),
    middleware: {
      handleWorkDoneProgress: (token, value, next) => {
        facts.listeners.workDone({ token: String(token), value });
        next(token, value);
      },
    },
  };
  const client = new Client('odyssey', 'Odyssey', { command: launch.command, args: launch.args }, options);
  const { listeners } = facts;
  client.onNotification(METHODS.status, (status: Status) => listeners.status(status));
  client.onNotification(METHODS.ledgerAppended, (appended: LedgerAppended) => listeners.ledger(appended.seq));
  client.onNotification(METHODS.proposalReady, (proposal: ProposalReady) => listeners.proposal(proposal));
  client.onNotification(METHODS.marks, (marks: Marks) => listeners.marks(marks));
  client.onDidChangeState(({ newState }) => {
    if (newState === State.Running) { listeners.running(true); }
    if (newState === State.Starting) { listeners.running(false); }
  });
  return client;
}

/** The server's own log levels stand in its lines; without one a line is information. */
function relay(chunk: Buffer, log: vscode.LogOutputChannel): void {
  for (const line of chunk.toString('utf8').split('\n')) {
    if (!line.trim()) { continue; }
    if (/\b(ERROR|CRITICAL)\b/.test(line)) { log.error(line); } else if (/\bWARNING\b/.test(line)) { log.warn(line); } else { log.info(line); }
  }
}

class Restarts {
  private readonly ends: number[] = [];
  constructor(private readonly log: vscode.LogOutputChannel, private readonly listeners: Listeners) {}

  error(error: Error): { action: ErrorAction; handled: boolean } {
    this.log.error(`connection: ${error.message}`);
    return { action: ErrorAction.Continue, handled: true };
  }

  closed(): { action: CloseAction; handled: boolean } {
    const now = Date.now();
    this.ends.push(now);
    while ((this.ends[0] ?? now) < now - RESTART_WINDOW_MS) { this.ends.shift(); }
    if (this.ends.length <= MOST_RESTARTS) {
      this.log.warn('the server ended; it is started again');
      return { action: CloseAction.Restart, handled: true };
    }
    this.listeners.lost(`The server ended ${this.ends.length} times within three minutes.`);
    return { action: CloseAction.DoNotRestart, handled: true };
  }
}
