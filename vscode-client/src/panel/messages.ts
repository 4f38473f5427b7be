// Owns the messages between the extension and the panel's page. Holds no behaviour; imported by both sides as types.
import type { CandidateMap, Plots, Row } from '../protocol';

export type Tab = 'ledger' | 'map' | 'plots';
export type ScopeKind = 'all' | 'file' | 'kernel';

/** A row without its card, which is fetched when it is looked at: a hundred thousand rows must fit into the page. */
export type PanelRow = Omit<Row, 'detail_markdown'>;

export type ToPage =
  | { type: 'rows'; reset: boolean; rows: PanelRow[]; total: number; complete: boolean; place: string }
  | { type: 'map'; map: CandidateMap }
  | { type: 'plots'; plots: Plots }
  | { type: 'link'; running: boolean; words: string }
  | { type: 'scope'; kind: ScopeKind; label: string }
  | { type: 'show'; tab: Tab }
  | { type: 'detail'; seq: number; markdown: string }
  | { type: 'comparison'; title: string; markdown: string }
  | { type: 'said'; words: string };

export type FromPage =
  | { type: 'ready'; tab: Tab; scope: ScopeKind }
  | { type: 'tab'; tab: Tab }
  | { type: 'scope'; kind: ScopeKind }
  | { type: 'detail'; seq: number }
  | { type: 'open'; sha: string }
  | { type: 'restore'; sha: string; uri: string }
  | { type: 'pin'; seq: number }
  | { type: 'compare'; a: string; b: string }
  | { type: 'copy'; seqs: number[] }
  | { type: 'painted'; sinceStartMs: number; rows: number };
