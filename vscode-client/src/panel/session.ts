// Owns one page of the panel, in the side bar or beside the editor: its scope, its feed, and the answers to what it asks.
import * as vscode from 'vscode';
import { NotRunning, type Connection } from '../connection';
import type { LedgerRows, Scope } from '../protocol';
import { kernelAtCursor, type Target } from '../target';
import type { Actions } from './actions';
import { Feed } from './feed';
import type { FromPage, ScopeKind, Tab, ToPage } from './messages';

/** The page says when it has drawn its first rows; older ones are read after that, or after so long. */
const PAINT_LIMIT_MS = 1000;

/** A file, or one kernel in it. */
interface Place { uri: string; kernel?: string }

/** Map and plots are asked for again at most this often while rows come in. */
const REDRAW_MS = 250;

export class Session implements vscode.Disposable {
  private readonly feed: Feed;
  private tab: Tab = 'ledger';
  private kind: ScopeKind = 'all';
  private target: Place | null = null;
  private ready = false;
  private later: NodeJS.Timeout | null = null;
  /** What a command wants shown before the page is ready. */
  private wanted: { tab?: Tab; target?: Target } = {};
  private readonly subscriptions: vscode.Disposable;
  /** The newest rows, asked for and sent while the page is still loading. */
  private ahead: Promise<LedgerRows | null> | undefined;
  private painted: () => void = () => undefined;
  private readonly drawn = new Promise<void>((done) => { this.painted = done; });

  /** `remembered` is what the page itself kept over a reload, if anything. */
  constructor(private readonly webview: vscode.Webview, private readonly connection: Connection, private readonly actions: Actions, remembered: unknown) {
    this.feed = new Feed(connection, { rows: (batch) => this.post({ type: 'rows', ...batch }) });
    const { scope } = (remembered ?? {}) as { scope?: ScopeKind };
    if (connection.link === 'running' && (scope ?? 'all') === 'all') { this.ahead = this.feed.begin(); }
    this.subscriptions = vscode.Disposable.from(
      webview.onDidReceiveMessage((message: FromPage) => void this.guard(() => this.hear(message))),
      connection.onLedgerAppended(() => void this.guard(() => this.appended())),
      connection.onLink(() => void this.guard(() => this.linkChanged())),
      vscode.window.onDidChangeActiveTextEditor(() => void this.guard(() => this.follow())),
    );
  }

  show(tab: Tab, target?: Target): void {
    if (!this.ready) { this.wanted = { tab, ...(target ? { target } : {}) }; return; }
    this.tab = tab;
    this.post({ type: 'show', tab });
    if (target) { this.target = target; this.kind = 'kernel'; }
    void this.guard(() => this.reload());
  }

  reload(): Promise<void> {
    if (!this.ready) { return Promise.resolve(); }
    this.post({ type: 'scope', kind: this.kind, label: this.scopeLabel() });
    if (this.connection.link !== 'running') { return Promise.resolve(); }
    const ahead = this.kind === 'all' ? this.ahead : undefined;
    this.ahead = undefined;
    setTimeout(this.painted, PAINT_LIMIT_MS);
    return this.guard(() => Promise.all([this.feed.load(this.scope(), ahead, this.drawn), this.redraw()]));
  }

  private scope(): Scope {
    if (this.kind === 'all' || !this.target) { return {}; }
    const { uri, kernel } = this.target;
    return this.kind === 'kernel' && kernel ? { uri, kernel } : { uri };
  }

  private scopeLabel(): string {
    if (this.kind === 'all' || !this.target) { return 'all kernels of this workspace'; }
    const file = vscode.workspace.asRelativePath(vscode.Uri.parse(this.target.uri));
    return this.kind === 'kernel' && this.target.kernel ? `${this.target.kernel} in ${file}` : file;
  }

  private async hear(message: FromPage): Promise<void> {
    switch (message.type) {
      case 'ready':
        this.ready = true;
        this.tab = this.wanted.tab ?? message.tab;
        this.kind = this.wanted.target ? 'kernel' : message.scope;
        this.target = this.wanted.target ?? (this.kind === 'all' ? null : await currentTarget());
        if (this.wanted.tab) { this.post({ type: 'show', tab: this.wanted.tab }); }
        this.wanted = {};
        this.sayLink();
        await this.reload();
        break;
      case 'tab': this.tab = message.tab; await this.redraw(); break;
      case 'scope':
        this.kind = message.kind;
        if (message.kind !== 'all') { this.target = await currentTarget() ?? this.target; }
        await this.reload();
        break;
      case 'detail': {
        const row = await this.actions.row(message.seq);
        if (row) { this.post({ type: 'detail', seq: row.seq, markdown: row.detail_markdown }); }
        break;
      }
      case 'open': await this.actions.open(message.sha); break;
      case 'restore': await this.actions.restore(message.sha, message.uri); break;
      case 'pin': this.say(await this.actions.pin(message.seq)); break;
      case 'compare': this.post({ type: 'comparison', ...await this.actions.compare(message.a, message.b) }); break;
      case 'copy': this.say(await this.actions.copy(message.seqs)); break;
      case 'painted':
        this.painted();
        this.connection.log.debug(`panel: ${message.rows} rows, first paint after ${Math.round(message.sinceStartMs)} ms`);
        break;
    }
  }

  private async appended(): Promise<void> {
    if (!this.ready) { return; }
    await this.feed.appended();
    this.later ??= setTimeout(() => { this.later = null; void this.guard(() => this.redraw()); }, REDRAW_MS);
  }

  /** The kernel's scope follows the editor; the workspace's does not move. */
  private async follow(): Promise<void> {
    if (!this.ready || this.kind === 'all') { return; }
    const next = await currentTarget();
    if (!next || (next.uri === this.target?.uri && next.kernel === this.target.kernel)) { return; }
    this.target = next;
    await this.reload();
  }

  private async linkChanged(): Promise<void> {
    if (!this.ready) { return; }
    this.sayLink();
    if (this.connection.link === 'running') { await this.reload(); }
  }

  private sayLink(): void {
    const words = { running: '', starting: 'The server is starting.', stopped: 'The server is stopped.', failed: this.connection.failure ?? 'The server did not start.' };
    this.post({ type: 'link', running: this.connection.link === 'running', words: words[this.connection.link] });
  }

  private async redraw(): Promise<void> {
    if (this.connection.link !== 'running') { return; }
    if (this.tab === 'map') { this.post({ type: 'map', map: await this.connection.map(this.scope()) }); }
    if (this.tab === 'plots') { this.post({ type: 'plots', plots: await this.connection.plots(this.scope()) }); }
  }

  private say(words: string): void { this.post({ type: 'said', words }); }
  private post(message: ToPage): void { void this.webview.postMessage(message); }

  /** The page's fence: what goes wrong is said on the page; a server that is away is said by its own line. */
  private async guard(work: () => Promise<unknown>): Promise<void> {
    try { await work(); } catch (error) {
      if (error instanceof NotRunning) { return; }
      const words = error instanceof Error ? error.message : String(error);
      this.connection.log.warn(`panel: ${words}`);
      this.say(words);
    }
  }

  dispose(): void {
    if (this.later) { clearTimeout(this.later); }
    this.subscriptions.dispose();
  }
}

async function currentTarget(): Promise<Place | null> {
  const document = vscode.window.activeTextEditor?.document;
  if (!document || document.uri.scheme !== 'file') { return null; }
  return await kernelAtCursor() ?? { uri: document.uri.toString() };
}
