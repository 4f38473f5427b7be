// Owns the row of tabs, by the ARIA pattern: one stop for the Tab key, arrows between the tabs.
import type { Tab } from '../panel/messages';
import { h } from './dom';

export interface TabPart { id: Tab; title: string; content: HTMLElement }

export class TabBar {
  readonly bar: HTMLElement;
  readonly contents: HTMLElement;
  private readonly tabs: { id: Tab; tab: HTMLElement; content: HTMLElement }[];

  constructor(parts: TabPart[], first: Tab, private readonly chosen: (tab: Tab) => void) {
    this.tabs = parts.map(({ id, title, content }) => ({
      id,
      tab: h('button', { type: 'button', role: 'tab', id: `tab-${id}`, 'aria-controls': `content-${id}` }, title),
      content: h('section', { role: 'tabpanel', id: `content-${id}`, 'aria-labelledby': `tab-${id}`, class: 'tabpanel' }, content),
    }));
    this.bar = h('div', { role: 'tablist', class: 'tabs', 'aria-label': 'Views' }, ...this.tabs.map(({ tab }) => tab));
    this.contents = h('div', { class: 'contents' }, ...this.tabs.map(({ content }) => content));
    for (const { id, tab } of this.tabs) { tab.addEventListener('click', () => this.choose(id)); }
    this.bar.addEventListener('keydown', (event) => this.key(event));
    this.show(first);
  }

  show(id: Tab): void {
    for (const one of this.tabs) {
      const active = one.id === id;
      one.tab.setAttribute('aria-selected', String(active));
      one.tab.tabIndex = active ? 0 : -1;
      one.content.hidden = !active;
    }
  }

  private choose(id: Tab): void { this.show(id); this.chosen(id); }

  private key(event: KeyboardEvent): void {
    const at = this.tabs.findIndex(({ tab }) => tab === document.activeElement);
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: this.tabs.length - 1 }[event.key];
    if (to === undefined || at < 0) { return; }
    const next = this.tabs[(to + this.tabs.length) % this.tabs.length]!;
    this.choose(next.id);
    next.tab.focus();
    event.preventDefault();
  }
}
