// Owns the ledger's columns: their words, how they sort, which are shown at which width. Pure.
import type { PanelRow } from '../panel/messages';

export interface Column {
  id: string;
  title: string;
  /** Least width in pixels; the column may grow. */
  width: number;
  /** The words of a cell, as the server finished them. */
  text(row: PanelRow): string;
  /** What the column sorts by; null sorts last in both directions. */
  key(row: PanelRow): number | string | null;
  numeric?: boolean;
  /** Order in which columns appear as the page gets wider; the first ones are always there. */
  rank: number;
}

export const COLUMNS: Column[] = [
  { id: 'verdict', title: 'Verdict', width: 100, text: (r) => r.verdict_words, key: (r) => r.verdict_words, rank: 1 },
  { id: 'speedup', title: 'Speedup', width: 98, text: (r) => r.speedup_words, key: (r) => r.speedup, numeric: true, rank: 2 },
  { id: 'device', title: 'Device', width: 86, text: (r) => r.device_words, key: (r) => r.device_us, numeric: true, rank: 3 },
  { id: 'interval', title: 'Interval', width: 112, text: (r) => r.interval_words, key: (r) => r.device_us, numeric: true, rank: 6 },
  { id: 'kernel', title: 'Kernel', width: 120, text: (r) => r.kernel, key: (r) => r.kernel, rank: 5 },
  { id: 'time', title: 'Time', width: 158, text: (r) => r.at_words, key: (r) => r.seq, rank: 4 },
  { id: 'regime', title: 'Regime', width: 108, text: (r) => r.regime ?? '', key: (r) => r.regime, rank: 7 },
  { id: 'card', title: 'Card', width: 104, text: (r) => r.card ?? '', key: (r) => r.card, rank: 8 },
  { id: 'cause', title: 'Cause', width: 68, text: (r) => r.cause, key: (r) => r.cause, rank: 9 },
  { id: 'sha', title: 'Text', width: 74, text: (r) => r.sha_short, key: (r) => r.sha, rank: 10 },
  { id: 'author', title: 'Author', width: 68, text: (r) => r.author, key: (r) => r.author, rank: 11 },
  { id: 'opponent', title: 'Against', width: 96, text: (r) => r.opponent ?? '', key: (r) => r.opponent, rank: 12 },
  { id: 'mode', title: 'Mode', width: 72, text: (r) => r.mode, key: (r) => r.mode, rank: 13 },
  { id: 'file', title: 'File', width: 130, text: (r) => r.file, key: (r) => r.file, rank: 14 },
  { id: 'reason', title: 'Reason', width: 110, text: (r) => r.reason ?? r.buried ?? '', key: (r) => r.reason ?? r.buried, rank: 15 },
];

const byId = new Map(COLUMNS.map((column) => [column.id, column]));

export function column(id: string): Column | undefined { return byId.get(id); }

/**
 * The chosen columns, or as many as fit: the important ones first, in the order of the table. Where nothing was timed (no GPU),
 * the columns of times make room for others.
 */
export function shownColumns(chosen: string[] | null, widthPx: number, timed = true): Column[] {
  if (chosen) {
    const kept = COLUMNS.filter((one) => chosen.includes(one.id));
    if (kept.length > 0) { return kept; }
  }
  let left = widthPx;
  const fitting = new Set<string>();
  for (const one of COLUMNS.filter((each) => timed || !each.numeric).sort((a, b) => a.rank - b.rank)) {
    left -= one.width;
    if (left < 0 && fitting.size > 0) { break; }
    fitting.add(one.id);
  }
  return COLUMNS.filter((one) => fitting.has(one.id));
}
