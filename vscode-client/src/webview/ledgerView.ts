// Owns the ledger's table: a grid with virtual rows, sorting by its heads, selection by mouse and keys. Numbers come as words.
import type { PanelRow } from '../panel/messages';
import { shownColumns, type Column } from './columns';
import { GLYPHS, h } from './dom';
import { remember, send, state } from './state';
import type { Store } from './store';
import { VirtualRows } from './virtualRows';

const ROW_PX = 24;
const HEAD_PX = 26;

export class LedgerView {
  readonly element = h('div', { class: 'grid', role: 'grid', tabindex: 0, 'aria-label': 'Measurements', 'aria-multiselectable': 'true' });
  private readonly head = h('div', { class: 'head', role: 'row', 'aria-rowindex': 1 });
  private readonly body = h('div', { class: 'body', role: 'rowgroup' });
  private readonly rows: VirtualRows;
  private columns: Column[] = [];
  private widthPx = 0;
  private active = -1;
  readonly selected = new Set<number>();

  constructor(private readonly store: Store, private readonly selectionChanged: () => void) {
    this.element.append(h('div', { role: 'rowgroup', class: 'headgroup' }, this.head), this.body);
    this.rows = new VirtualRows({
      scroller: this.element, body: this.body, rowHeightPx: ROW_PX, headPx: HEAD_PX,
      count: () => this.store.view.length,
      draw: (index) => this.drawRow(index),
      drawn: (first, end) => this.pointAtActive(first, end),
    });
    this.element.addEventListener('keydown', (event) => this.key(event));
    this.element.addEventListener('scroll', () => { remember({ scrollTop: this.element.scrollTop }); }, { passive: true });
    new ResizeObserver(([entry]) => { if (entry) { this.resized(entry.contentRect.width); } }).observe(this.element);
  }

  get activeRow(): PanelRow | undefined { return this.store.view[this.active]; }

  /** The selected rows, or the active one. */
  get chosen(): PanelRow[] {
    const rows = this.store.view.filter((row) => this.selected.has(row.seq));
    return rows.length > 0 ? rows : this.activeRow ? [this.activeRow] : [];
  }

  refresh(addedAbove = 0): void {
    const seq = state.active;
    this.active = seq === null ? -1 : this.store.view.findIndex((row) => row.seq === seq);
    this.element.setAttribute('aria-rowcount', String(this.store.view.length + 1));
    this.rows.refresh(addedAbove);
  }

  restoreScroll(): void { this.element.scrollTop = state.scrollTop; }

  /** Lay the columns out again: after a choice of columns, or at another width. */
  layout(): void {
    this.columns = this.wanted();
    const tracks = this.columns.map((one) => `minmax(${one.width}px, ${one.id === 'verdict' ? '1.6fr' : '1fr'})`).join(' ');
    this.element.style.setProperty('--tracks', tracks);
    this.element.style.setProperty('--width', `${this.columns.reduce((sum, one) => sum + one.width, 0)}px`);
    this.element.setAttribute('aria-colcount', String(this.columns.length));
    this.head.replaceChildren(...this.columns.map((one) => this.drawHead(one)));
    this.refresh();
  }

  private resized(widthPx: number): void {
    if (Math.abs(widthPx - this.widthPx) < 1) { return; }
    this.widthPx = widthPx;
    this.fit();
  }

  /** Other columns may be wanted now: at another width, or after the first row that was timed. */
  fit(): void {
    if (ids(this.wanted()) !== ids(this.columns)) { this.layout(); }
  }

  private wanted(): Column[] {
    return shownColumns(state.columns, this.widthPx || this.element.clientWidth || 300, this.store.timed);
  }

  private drawHead(one: Column): HTMLElement {
    const sorted = this.store.sort.id === one.id ? (this.store.sort.down ? 'descending' : 'ascending') : 'none';
    const arrow = sorted === 'none' ? '' : this.store.sort.down ? ' ↓' : ' ↑';
    const press = h('button', { type: 'button', tabindex: -1, title: `Sort by ${one.title.toLowerCase()}` }, one.title, h('span', { 'aria-hidden': 'true' }, arrow));
    press.addEventListener('click', () => this.sortBy(one));
    return h('div', { role: 'columnheader', 'aria-sort': sorted, class: one.numeric ? 'number' : '', 'data-column': one.id }, press);
  }

  /** First press: largest first for numbers and time, A to Z for words. Second press: the other way. */
  private sortBy(one: Column): void {
    const { sort } = this.store;
    const first = one.numeric === true || one.id === 'time';
    this.store.setSort({ id: one.id, down: sort.id === one.id ? !sort.down : first });
    remember({ sort: this.store.sort });
    this.layout();
  }

  private drawRow(index: number): HTMLElement {
    const row = this.store.view[index];
    if (!row) { return h('div', { role: 'row' }); }
    const selected = this.selected.has(row.seq) || index === this.active;
    const classes = ['row', row.verdict, row.foreign && 'foreign', row.buried !== null && 'buried', index === this.active && 'active', selected && 'selected'].filter(Boolean);
    const element = h('div', { role: 'row', id: `row-${index}`, class: classes.join(' '), 'aria-rowindex': index + 2, 'aria-selected': String(selected), 'data-seq': row.seq },
      ...this.columns.map((one) => this.drawCell(one, row)));
    element.addEventListener('click', (event) => this.click(index, event));
    element.addEventListener('dblclick', () => send({ type: 'open', sha: row.sha }));
    return element;
  }

  private drawCell(one: Column, row: PanelRow): HTMLElement {
    const words = one.text(row);
    const notes = [words, row.foreign && one.numeric ? 'measured on another card' : '', one.id === 'verdict' && row.buried ? `buried: ${row.buried}` : ''].filter(Boolean);
    const cell = h('div', { role: 'gridcell', class: one.numeric ? 'number' : '', title: notes.join(' · ') });
    if (one.id === 'verdict') { cell.append(h('span', { class: 'glyph', 'aria-hidden': 'true' }, GLYPHS[row.verdict])); }
    cell.append(row.foreign && one.numeric && words ? h('s', {}, words) : words);
    return cell;
  }

  private click(index: number, event: MouseEvent): void {
    const row = this.store.view[index];
    if (!row) { return; }
    if (event.ctrlKey || event.metaKey) {
      if (this.activeRow && this.selected.size === 0) { this.selected.add(this.activeRow.seq); }
      if (this.selected.has(row.seq)) { this.selected.delete(row.seq); } else { this.selected.add(row.seq); }
    } else if (event.shiftKey && this.active >= 0) {
      const [from, to] = [Math.min(this.active, index), Math.max(this.active, index)];
      for (const one of this.store.view.slice(from, to + 1)) { this.selected.add(one.seq); }
    } else { this.selected.clear(); }
    this.activate(index);
  }

  private activate(index: number): void {
    const row = this.store.view[index];
    if (!row) { return; }
    this.active = index;
    remember({ active: row.seq });
    this.rows.refresh();
    this.rows.reveal(index);
    send({ type: 'detail', seq: row.seq });
    this.selectionChanged();
  }

  private key(event: KeyboardEvent): void {
    const last = this.store.view.length - 1;
    const to = { ArrowDown: this.active + 1, ArrowUp: this.active - 1, PageDown: this.active + this.rows.page, PageUp: this.active - this.rows.page, Home: 0, End: last }[event.key];
    const row = this.activeRow;
    if (to !== undefined && last >= 0) {
      if (event.shiftKey && row) { this.selected.add(row.seq); } else { this.selected.clear(); }
      const index = Math.max(0, Math.min(last, to));
      if (event.shiftKey) { this.selected.add(this.store.view[index]!.seq); }
      this.activate(index);
    } else if (event.key === 'Enter' && row) { send({ type: 'open', sha: row.sha }); }
    else if (event.key === ' ' && row) {
      if (this.selected.has(row.seq)) { this.selected.delete(row.seq); } else { this.selected.add(row.seq); }
      this.rows.refresh();
      this.selectionChanged();
    } else if (event.key === 'c' && (event.ctrlKey || event.metaKey) && row) { send({ type: 'copy', seqs: this.chosen.map((one) => one.seq) }); }
    else { return; }
    event.preventDefault();
  }

  private pointAtActive(first: number, end: number): void {
    if (this.active >= first && this.active < end) { this.element.setAttribute('aria-activedescendant', `row-${this.active}`); }
    else { this.element.removeAttribute('aria-activedescendant'); }
  }
}

function ids(columns: Column[]): string { return columns.map((one) => one.id).join(); }
