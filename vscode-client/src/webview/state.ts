// Owns what the page remembers over a reload of the window, and the channel to the extension.
import type { FromPage, ScopeKind, Tab } from '../panel/messages';
import type { Filter, Sort } from './store';

export interface Remembered {
  tab: Tab;
  scope: ScopeKind;
  sort: Sort;
  filter: Filter;
  /** null: as many columns as fit. */
  columns: string[] | null;
  /** Seq of the active row. */
  active: number | null;
  scrollTop: number;
  detailOpen: boolean;
}

interface HostApi { postMessage(message: FromPage): void; getState(): unknown; setState(state: unknown): void }
declare function acquireVsCodeApi(): HostApi;

const host = acquireVsCodeApi();

const INITIAL: Remembered = {
  tab: 'ledger', scope: 'all', sort: { id: 'time', down: true }, filter: { words: '', verdict: 'any' },
  columns: null, active: null, scrollTop: 0, detailOpen: true,
};

export const state: Remembered = { ...INITIAL, ...(host.getState() as Partial<Remembered> | undefined) };

export function remember(change: Partial<Remembered>): void {
  Object.assign(state, change);
  host.setState(state);
}

export function send(message: FromPage): void { host.postMessage(message); }
