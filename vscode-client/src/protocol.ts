// Owns the names and shapes of Odyssey's own messages: the mirror of server/lsp/ext.py. Holds no behaviour.
// Every sentence in these messages was finished by the server; numbers are there for sorting and for placing points only.

export const METHODS = {
  status: 'odyssey/status',
  ledgerAppended: 'odyssey/ledgerAppended',
  proposalReady: 'odyssey/proposalReady',
  marks: 'odyssey/marks',
  trust: 'odyssey/trust',
  editorPython: 'odyssey/editorPython',
  key: 'odyssey/key',
  ledgerRows: 'odyssey/ledgerRows',
  candidate: 'odyssey/candidate',
  map: 'odyssey/map',
  plots: 'odyssey/plots',
  compare: 'odyssey/compare',
  pin: 'odyssey/pin',
} as const;

export type Verdict = 'correct' | 'incorrect' | 'compile_error' | 'error';

/** A missing piece of the environment, and what would supply it. */
export interface Missing { what: string; message: string; remedy: string }

export interface Status {
  state: 'starting' | 'idle' | 'busy' | 'degraded';
  text: string;
  card: string | null;
  detail: string;
  grey_reason: string | null;
  missing: Missing[];
}

export interface LedgerAppended { seq: number }

export interface ProposalReady {
  proposal_id: string;
  uri: string;
  kernel: string;
  title: string;
  base_sha: string;
  candidate_sha: string;
  version: number | null;
  new_text: string;
  seq: number;
  change: string;
}

/** A mark in the gutter beside a judged kernel. `stale`: the text moved on since. */
export interface Mark { line: number; verdict: Verdict; stale: boolean; label: string }
export interface Marks { uri: string; version: number | null; marks: Mark[] }

export interface Trust { trusted: boolean }

/** The interpreter that is chosen in the editor. */
export interface EditorPython { path: string | null }

/** The model's key out of the editor's secret storage; without one it is forgotten. */
export interface Key { key: string | null }

/** Which measurements: all of them, one file's, or one kernel's. */
export interface Scope { uri?: string; kernel?: string }

export interface LedgerRowsParams extends Scope { after?: number; before?: number; limit?: number }

export interface Row {
  seq: number;
  at: string;
  at_words: string;
  file: string;
  uri: string;
  kernel: string;
  verdict: Verdict;
  verdict_words: string;
  reason: string | null;
  speedup: number | null;
  speedup_words: string;
  opponent: string | null;
  device_us: number | null;
  device_words: string;
  interval_words: string;
  regime: string | null;
  card: string | null;
  foreign: boolean;
  cause: string;
  author: string;
  sha: string;
  sha_short: string;
  parents: string[];
  mode: string;
  buried: string | null;
  detail_markdown: string;
}

export interface LedgerRows { rows: Row[]; last_seq: number; total: number; places: { ledger: string } }

export interface Candidate { text: string; path: string }

export interface MapNode {
  sha: string;
  seq: number;
  lane: number;
  row: number;
  parents: string[];
  author: string;
  verdict: Verdict;
  label: string;
  hover_markdown: string;
  buried: string | null;
  best: boolean;
  at_words: string;
}
export interface MapEdge { from: string; to: string; kind: string }
export interface CandidateMap { nodes: MapNode[]; edges: MapEdge[] }

export type Point = [number, number];
export interface Ceiling { label: string; points: [Point, Point] }
export interface RooflinePoint { seq: number; x: number; y: number; label: string; verdict: Verdict }
export interface Roofline {
  card: string;
  axes: { x_label: string; y_label: string };
  ceilings: Ceiling[];
  points: RooflinePoint[];
}
export interface HistoryPoint { seq: number; at: string; y: number; label: string; verdict: Verdict }
export interface Plots { roofline: Roofline | null; history: { points: HistoryPoint[]; y_label: string }; note: string | null }

export interface Comparison { diff_title: string; a_text: string; b_text: string; table_markdown: string }

/** Commands that the server executes; each takes one object. */
export const SERVER_COMMANDS = [
  'odyssey.evaluate', 'odyssey.evaluateThorough', 'odyssey.history', 'odyssey.propose', 'odyssey.stop', 'odyssey.accept',
  'odyssey.reject', 'odyssey.pinBaseline', 'odyssey.pickShape', 'odyssey.restore', 'odyssey.restartWorkers', 'odyssey.doctor',
] as const;
export type ServerCommand = (typeof SERVER_COMMANDS)[number];
