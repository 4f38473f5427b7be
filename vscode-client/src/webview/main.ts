// Owns the page: its tabs and lines, and handing each message to the part that it is for.
import '@vscode-elements/elements/dist/vscode-badge/index.js';
import '@vscode-elements/elements/dist/vscode-button/index.js';
import '@vscode-elements/elements/dist/vscode-checkbox/index.js';
import '@vscode-elements/elements/dist/vscode-option/index.js';
import '@vscode-elements/elements/dist/vscode-single-select/index.js';
import '@vscode-elements/elements/dist/vscode-textfield/index.js';
import type { Tab, ToPage } from '../panel/messages';
import { Detail } from './detail';
import { h } from './dom';
import { LedgerView } from './ledgerView';
import { MapView } from './mapView';
import { PlotView } from './plotView';
import { remember, send, state } from './state';
import { Store } from './store';
import { TabBar } from './tabs';
import { Toolbar } from './toolbar';

/** Moments since the page began, for the benchmark: script running, page built, first rows here. */
const began = performance.now();
let [readyMs, rowsMs] = [0, 0];

const store = new Store();
store.sort = state.sort;
store.filter = state.filter;

const link = h('p', { class: 'link', role: 'status', hidden: true });
const counts = h('p', { class: 'counts', role: 'status' });
const detail: Detail = new Detail(() => ledger.chosen);
const ledger = new LedgerView(store, () => detail.update());
const toolbar = new Toolbar({
  filtered: () => { store.setFilter(state.filter); ledger.refresh(); count(); },
  columnsChosen: () => ledger.layout(),
});
const map = new MapView((node) => detail.show(node.hover_markdown));
const plots = new PlotView();
const empty = h('p', { class: 'hint' }, 'Nothing was measured here yet. Save a file with a kernel, or choose another scope.');
let [total, complete, known, place, scopeLabel, painted] = [0, false, false, '', '', false];

const tabs = new TabBar([
  { id: 'ledger', title: 'Ledger', content: h('div', { class: 'fill' }, toolbar.element, empty, ledger.element) },
  { id: 'map', title: 'Map', content: map.element },
  { id: 'plots', title: 'Roofline', content: plots.element },
], state.tab, (tab) => choose(tab, true));

document.getElementById('panel')!.append(tabs.bar, link, tabs.contents, detail.bar, detail.element, counts);
choose(state.tab, false);

function choose(tab: Tab, tell: boolean): void {
  remember({ tab });
  document.body.dataset['tab'] = tab;
  if (tab === 'ledger') { ledger.layout(); ledger.restoreScroll(); }
  if (tell) { send({ type: 'tab', tab }); }
}

function plural(rows: number): string {
  return rows === 1 ? '1 measurement' : `${rows.toLocaleString('en')} measurements`;
}

function count(): void {
  const shown = store.view.length;
  const words = shown === store.size ? plural(shown) : `${shown.toLocaleString('en')} of ${plural(store.size)}`;
  const rest = !known ? '' : complete && total > store.size ? `, the newest of ${total.toLocaleString('en')}` : complete ? '' : ', reading older ones';
  counts.textContent = known ? `${words}${rest} · ${scopeLabel}` : scopeLabel;
  counts.title = place;
  empty.hidden = store.size > 0 || !complete;
  ledger.element.hidden = !empty.hidden;
}

function rows(message: Extract<ToPage, { type: 'rows' }>): void {
  rowsMs ||= performance.now();
  if (message.reset) { store.clear(); }
  ({ total, complete, place } = message);
  known = true;
  const above = store.add(message.rows);
  count();
  if (message.reset) { ledger.layout(); ledger.restoreScroll(); } else { ledger.fit(); ledger.refresh(above); }
  detail.update();
  if (painted) { return; }
  painted = true;
  if (state.active !== null && store.bySeq(state.active)) { send({ type: 'detail', seq: state.active }); }
  // The frame after this one has the rows on the screen.
  requestAnimationFrame(() => setTimeout(() => {
    document.body.dataset['firstPaintMs'] = performance.now().toFixed(1);
    document.body.dataset['marks'] = `script ${began.toFixed(0)}, ready ${readyMs.toFixed(0)}, rows ${rowsMs.toFixed(0)}`;
    send({ type: 'painted', sinceStartMs: performance.now(), rows: total });
  }));
}

addEventListener('message', ({ data }: MessageEvent<ToPage>) => {
  switch (data.type) {
    case 'rows': rows(data); break;
    case 'map': map.set(data.map); break;
    case 'plots': plots.set(data.plots); break;
    case 'link': link.hidden = data.running; link.textContent = data.words; break;
    case 'scope': toolbar.setScope(data.kind); scopeLabel = data.label; count(); break;
    case 'show': tabs.show(data.tab); choose(data.tab, false); break;
    case 'detail': detail.show(data.markdown); break;
    case 'comparison': detail.show(`## ${data.title}\n\n${data.markdown}`); break;
    case 'said': say(data.words); break;
  }
});

let forgetting: number | undefined;
const said = h('p', { class: 'said', role: 'alert', hidden: true });
document.body.append(said);
function say(words: string): void {
  clearTimeout(forgetting);
  said.textContent = words;
  said.hidden = false;
  forgetting = setTimeout(() => { said.hidden = true; }, 5000);
}

readyMs = performance.now();
send({ type: 'ready', tab: state.tab, scope: state.scope });
