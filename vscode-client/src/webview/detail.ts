// Owns the pane under table and map: the actions on what is chosen, and its card.
import { button, h } from './dom';
import { markdownNodes } from './markdownView';
import { remember, send, state } from './state';
import type { PanelRow } from '../panel/messages';

export class Detail {
  private readonly card = h('div', { class: 'card', tabindex: 0, role: 'region', 'aria-label': 'Evidence' });
  private readonly actions = h('div', { class: 'actions', role: 'toolbar', 'aria-label': 'Actions on the chosen measurements' });
  private readonly buttons: { element: HTMLElement & { disabled: boolean }; needs: (rows: PanelRow[]) => boolean }[] = [];
  readonly element = h('details', { class: 'detail', open: state.detailOpen }, h('summary', {}, 'Evidence'), this.card);
  readonly bar = this.actions;

  constructor(private readonly chosen: () => PanelRow[]) {
    const one = (rows: PanelRow[]): boolean => rows.length === 1;
    this.add('Open', 'Open the measured text', one, ([row]) => send({ type: 'open', sha: row!.sha }));
    this.add('Restore', 'Bring this text back as an edit of its file', one, ([row]) => send({ type: 'restore', sha: row!.sha, uri: row!.uri }));
    this.add('Pin', 'Measure against this one from now on', (rows) => one(rows) && rows[0]!.verdict === 'correct' && !rows[0]!.foreign, ([row]) => send({ type: 'pin', seq: row!.seq }));
    this.add('Compare', 'Compare two chosen measurements (Ctrl+click chooses the second)', (rows) => rows.length === 2, ([newer, older]) => send({ type: 'compare', a: older!.sha, b: newer!.sha }));
    this.add('Copy', 'Copy as Markdown', (rows) => rows.length > 0, (rows) => send({ type: 'copy', seqs: rows.map((row) => row.seq) }));
    this.element.addEventListener('toggle', () => remember({ detailOpen: this.element.open }));
    this.clear();
    for (const { element } of this.buttons) { element.disabled = true; }
  }

  private add(label: string, title: string, needs: (rows: PanelRow[]) => boolean, act: (rows: PanelRow[]) => void): void {
    const element = button(label, () => act(byAge(this.chosen())), { title, 'data-action': label.toLowerCase() });
    this.buttons.push({ element, needs });
    this.actions.append(element);
  }

  update(): void {
    const rows = this.chosen();
    for (const { element, needs } of this.buttons) { element.disabled = !needs(rows); }
    if (rows.length === 0) { this.clear(); }
  }

  clear(): void {
    this.card.replaceChildren(h('p', { class: 'hint' }, 'Choose a measurement to see what it rests on.'));
  }

  show(markdown: string): void {
    this.card.replaceChildren(...markdownNodes(markdown));
    this.card.scrollTop = 0;
  }
}

/** The newer measurement first. */
function byAge(rows: PanelRow[]): PanelRow[] {
  return [...rows].sort((a, b) => b.seq - a.seq);
}
