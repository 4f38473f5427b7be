// Owns the rows that the page holds, and which of them are shown in which order. Pure: no elements, no messages.
import type { PanelRow } from '../panel/messages';
import type { Verdict } from '../protocol';
import { column } from './columns';

export interface Sort { id: string; down: boolean }
export interface Filter { words: string; verdict: Verdict | 'any' }

/** Newest first: the order in which rows arrive. */
export const NEWEST: Sort = { id: 'time', down: true };

export class Store {
  /** All rows, by rising seq. */
  private rows: PanelRow[] = [];
  private readonly seqs = new Set<number>();
  private readonly haystacks = new WeakMap<PanelRow, string>();
  /** The rows that pass the filter, in the order of the sort. */
  view: PanelRow[] = [];
  sort: Sort = NEWEST;
  filter: Filter = { words: '', verdict: 'any' };

  get size(): number { return this.rows.length; }
  /** Whether any row was timed; true until rows are there. */
  timed = true;

  clear(): void {
    this.rows = [];
    this.seqs.clear();
    this.view = [];
    this.timed = true;
  }

  /** Take rows in; a seq that is there already is passed over. Returns how many were put above the first shown row. */
  add(rows: PanelRow[]): number {
    const fresh = rows.filter((row) => !this.seqs.has(row.seq)).sort((a, b) => a.seq - b.seq);
    if (fresh.length === 0) { return 0; }
    for (const row of fresh) { this.seqs.add(row.seq); }
    this.timed = (this.timed && this.rows.length > 0) || fresh.some((row) => row.device_us !== null);
    const newest = this.rows.at(-1)?.seq ?? -1;
    const oldest = this.rows[0]?.seq ?? Infinity;
    if (fresh[0]!.seq > newest) { this.rows = this.rows.concat(fresh); }
    else if (fresh.at(-1)!.seq < oldest) { this.rows = fresh.concat(this.rows); }
    else { this.rows = this.rows.concat(fresh).sort((a, b) => a.seq - b.seq); }
    if (this.sort.id !== 'time') { this.refresh(); return 0; }
    // The usual order needs no sorting of all rows for one new one.
    const passing = fresh.filter((row) => this.passes(row));
    if (fresh[0]!.seq > newest) {
      this.view = this.sort.down ? passing.reverse().concat(this.view) : this.view.concat(passing);
      return this.sort.down ? passing.length : 0;
    }
    if (fresh.at(-1)!.seq < oldest) {
      this.view = this.sort.down ? this.view.concat(passing.reverse()) : passing.concat(this.view);
      return this.sort.down ? 0 : passing.length;
    }
    this.refresh();
    return 0;
  }

  setSort(sort: Sort): void { this.sort = sort; this.refresh(); }
  setFilter(filter: Filter): void { this.filter = filter; this.refresh(); }

  bySeq(seq: number): PanelRow | undefined { return this.rows.find((row) => row.seq === seq); }

  private refresh(): void {
    const passing = this.rows.filter((row) => this.passes(row));
    const key = column(this.sort.id)?.key;
    this.view = key ? sortRows(passing, key, this.sort.down) : passing;
  }

  private passes(row: PanelRow): boolean {
    if (this.filter.verdict !== 'any' && row.verdict !== this.filter.verdict) { return false; }
    const words = this.filter.words.toLowerCase().split(/\s+/).filter(Boolean);
    return words.every((word) => this.haystack(row).includes(word));
  }

  private haystack(row: PanelRow): string {
    let text = this.haystacks.get(row);
    if (text === undefined) {
      text = [row.kernel, row.file, row.verdict_words, row.reason, row.speedup_words, row.opponent, row.device_words, row.regime, row.card,
        row.cause, row.author, row.sha, row.mode, row.buried, row.at_words].filter(Boolean).join(' ').toLowerCase();
      this.haystacks.set(row, text);
    }
    return text;
  }
}

/** Rows by a key; what has no key stands last in both directions; equal keys by newest first. */
export function sortRows(rows: PanelRow[], key: (row: PanelRow) => number | string | null, down: boolean): PanelRow[] {
  const keyed = rows.map((row) => ({ row, key: key(row) }));
  const sign = down ? -1 : 1;
  keyed.sort((a, b) => {
    if (a.key === b.key) { return b.row.seq - a.row.seq; }
    if (a.key === null) { return 1; }
    if (b.key === null) { return -1; }
    return (a.key < b.key ? -1 : 1) * sign;
  });
  return keyed.map((entry) => entry.row);
}
