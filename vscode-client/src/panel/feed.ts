// Owns reading the ledger for one page: newest rows first, older ones behind, then each new row as it is appended.
// Never keeps rows and never looks into them.
import type { LedgerRows, LedgerRowsParams, Row, Scope } from '../protocol';
import type { PanelRow } from './messages';

export interface FeedSource { ledgerRows(params: LedgerRowsParams): Promise<LedgerRows> }
export interface FeedSink { rows(batch: { reset: boolean; rows: PanelRow[]; total: number; complete: boolean; place: string }): void }

const FIRST_PAGE = 100;
const NEXT_PAGE = 2000;
/** Beyond this the page says how many rows it leaves out. */
const MOST_ROWS = 200_000;

export function withoutCard(row: Row): PanelRow {
  const { detail_markdown: _, ...rest } = row;
  return rest;
}

export class Feed {
  private lastSeq = 0;
  private total = 0;
  private place = '';
  private scope: Scope = {};
  /** Counts reloads: an answer that belongs to an earlier one is dropped. */
  private turn = 0;
  private catching: Promise<void> | null = null;
  private again = false;

  constructor(private readonly source: FeedSource, private readonly sink: FeedSink) {}

  /**
   * Read everything of `scope`, the newest page first. `ahead` is that page when `begin` sent it already. Before the older pages
   * are read `drawn` is awaited: nothing may compete with the first paint.
   */
  async load(scope: Scope, ahead?: Promise<LedgerRows | null>, drawn?: Promise<void>): Promise<void> {
    const turn = ++this.turn;
    this.scope = scope;
    const sent = await ahead;
    const first = sent ?? await this.source.ledgerRows({ ...scope, limit: FIRST_PAGE });
    if (turn !== this.turn) { return; }
    this.lastSeq = Math.max(first.last_seq, ...first.rows.map((row) => row.seq));
    this.total = first.total;
    this.place = first.places.ledger;
    let complete = isAll(first);
    if (!sent) { this.send(true, first.rows, complete); }
    let held = first.rows.length;
    let oldest = Math.min(...first.rows.map((row) => row.seq));
    await drawn;
    while (!complete) {
      const page = await this.source.ledgerRows({ ...scope, before: oldest, limit: NEXT_PAGE });
      if (turn !== this.turn) { return; }
      held += page.rows.length;
      complete = page.rows.length === 0 || held >= page.total || held >= MOST_ROWS;
      oldest = Math.min(oldest, ...page.rows.map((row) => row.seq));
      this.send(false, page.rows, complete);
    }
  }

  /** The newest rows of the workspace, sent before the page asks: they lie there when its script starts. Null when there is no answer. */
  async begin(): Promise<LedgerRows | null> {
    try {
      const first = await this.source.ledgerRows({ limit: FIRST_PAGE });
      this.total = first.total;
      this.place = first.places.ledger;
      this.send(true, first.rows, isAll(first));
      return first;
    } catch {
      return null; // load() asks again and says what is wrong
    }
  }

  /** Rows were appended: fetch what is newer than what the page has. Calls that come meanwhile are folded into one more round. */
  appended(): Promise<void> {
    if (this.catching) { this.again = true; return this.catching; }
    this.catching = this.catchUp().finally(() => { this.catching = null; });
    return this.catching;
  }

  private async catchUp(): Promise<void> {
    const turn = this.turn;
    do {
      this.again = false;
      const page = await this.source.ledgerRows({ ...this.scope, after: this.lastSeq, limit: NEXT_PAGE });
      if (turn !== this.turn) { return; }
      // A full page may not be all: go on from its last row. Otherwise everything up to the ledger's last seq was seen.
      const full = page.rows.length >= NEXT_PAGE;
      this.lastSeq = Math.max(this.lastSeq, ...(full ? page.rows.map((row) => row.seq) : [page.last_seq]));
      this.again ||= full;
      this.total = page.total;
      if (page.rows.length > 0) { this.send(false, page.rows, true); }
    } while (this.again);
  }

  private send(reset: boolean, rows: Row[], complete: boolean): void {
    this.sink.rows({ reset, rows: rows.map(withoutCard), total: this.total, complete, place: this.place });
  }
}

function isAll(page: LedgerRows): boolean { return page.rows.length === 0 || page.rows.length >= page.total; }
