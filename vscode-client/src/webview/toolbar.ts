// Owns the controls above the table: scope, filter, verdicts, columns. Remembers what was chosen.
import type { ScopeKind } from '../panel/messages';
import { COLUMNS } from './columns';
import { h } from './dom';
import { remember, send, state } from './state';
import type { Filter } from './store';

const SCOPES: [ScopeKind, string][] = [['all', 'Workspace'], ['file', 'This file'], ['kernel', 'This kernel']];
const VERDICTS: [Filter['verdict'], string][] = [
  ['any', 'All verdicts'], ['correct', 'Right'], ['incorrect', 'Wrong'], ['compile_error', 'Compile error'], ['error', 'Not judged'],
];

type Select = HTMLElement & { value: string };

function select(label: string, options: [string, string][], value: string, chosen: (value: string) => void): Select {
  const element = h('vscode-single-select', { label, 'aria-label': label },
    ...options.map(([id, words]) => h('vscode-option', { value: id, selected: id === value }, words))) as Select;
  element.addEventListener('change', () => chosen(element.value));
  return element;
}

export interface ToolbarEvents { filtered(): void; columnsChosen(): void }

export class Toolbar {
  readonly element: HTMLElement;
  private readonly scope: Select;
  private typing: number | undefined;

  constructor(private readonly events: ToolbarEvents) {
    this.scope = select('Which measurements', SCOPES, state.scope, (value) => {
      remember({ scope: value as ScopeKind });
      send({ type: 'scope', kind: state.scope });
    });
    this.element = h('div', { class: 'toolbar', role: 'toolbar', 'aria-label': 'Filter' },
      this.scope, this.wordFilter(),
      select('Which verdicts', VERDICTS, state.filter.verdict, (value) => this.filter({ verdict: value as Filter['verdict'] })),
      this.columnChooser());
  }

  setScope(kind: ScopeKind): void {
    remember({ scope: kind });
    if (this.scope.value !== kind) { this.scope.value = kind; }
  }

  private wordFilter(): HTMLElement {
    const field = h('vscode-textfield', { type: 'search', placeholder: 'Filter', label: 'Filter by words', value: state.filter.words }) as HTMLElement & { value: string };
    field.addEventListener('input', () => {
      clearTimeout(this.typing);
      this.typing = setTimeout(() => this.filter({ words: field.value }), 60);
    });
    return field;
  }

  private filter(change: Partial<Filter>): void {
    remember({ filter: { ...state.filter, ...change } });
    this.events.filtered();
  }

  private columnChooser(): HTMLElement {
    const boxes = COLUMNS.map((one) => {
      const box = h('vscode-checkbox', { label: one.title, checked: state.columns?.includes(one.id) ?? false }) as HTMLElement & { checked: boolean };
      return { id: one.id, box };
    });
    const choose = (): void => {
      const ids = boxes.filter(({ box }) => box.checked).map(({ id }) => id);
      remember({ columns: ids.length > 0 ? ids : null });
      this.events.columnsChosen();
    };
    for (const { box } of boxes) { box.addEventListener('change', choose); }
    const list = h('div', { class: 'choices' }, h('p', {}, 'None chosen: as many as fit.'), ...boxes.map(({ box }) => box));
    const chooser = h('details', { class: 'chooser' }, h('summary', {}, 'Columns'), list);
    document.addEventListener('click', (event) => { if (!event.composedPath().includes(chooser)) { chooser.removeAttribute('open'); } });
    chooser.addEventListener('keydown', (event) => { if (event.key === 'Escape') { chooser.removeAttribute('open'); chooser.querySelector('summary')?.focus(); } });
    return chooser;
  }
}
