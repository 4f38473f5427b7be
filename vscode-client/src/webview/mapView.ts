// Owns the map: candidates as lanes like a git log, dead branches visible with their reason, by mouse and by keys.
import type { CandidateMap, MapNode, Verdict } from '../protocol';
import { h, s } from './dom';
import { HoverCard } from './hoverCard';
import { edgePath, edgesIn, LANE_PX, laneX, layoutMap, ROW_PX, rowY, type MapLayout } from './mapModel';
import { send } from './state';
import { VirtualRows } from './virtualRows';

/** Lanes take these in turn; the shape of a node tells its verdict. */
const LANE_COLOURS = 6;

export class MapView {
  private readonly list = h('div', { class: 'map', role: 'listbox', tabindex: 0, 'aria-label': 'Candidates, newest first' });
  private readonly body = h('div', { class: 'body', role: 'presentation' });
  private readonly lines = s('svg', { class: 'lanes', 'aria-hidden': 'true' });
  private readonly empty = h('p', { class: 'hint' }, 'No candidates yet. Each judged save of a kernel becomes a node here.');
  readonly element = h('div', { class: 'fill' }, this.empty, this.list);
  private readonly rows: VirtualRows;
  private layout: MapLayout = layoutMap({ nodes: [], edges: [] });
  private active = -1;
  private readonly hover = new HoverCard();

  constructor(private readonly chosen: (node: MapNode) => void) {
    this.list.append(this.body);
    this.body.append(this.lines);
    this.rows = new VirtualRows({
      scroller: this.list, body: this.body, rowHeightPx: ROW_PX, headPx: 0,
      count: () => this.layout.nodes.length,
      draw: (index) => this.drawRow(index),
      drawn: (first, end) => this.drawLines(first, end),
    });
    this.list.addEventListener('keydown', (event) => this.key(event));
    this.list.addEventListener('mouseleave', () => this.hover.hide());
    this.list.addEventListener('scroll', () => this.hover.hide(), { passive: true });
  }

  set(map: CandidateMap): void {
    const activeSha = this.layout.nodes[this.active]?.sha;
    const before = this.layout.nodes.length;
    this.layout = layoutMap(map);
    this.active = activeSha === undefined ? -1 : this.layout.index.get(activeSha) ?? -1;
    this.list.hidden = this.layout.nodes.length === 0;
    this.empty.hidden = !this.list.hidden;
    this.rows.refresh(before > 0 ? Math.max(0, this.layout.nodes.length - before) : 0);
  }

  private drawRow(index: number): HTMLElement {
    const node = this.layout.nodes[index];
    if (!node) { return h('div', {}); }
    const row = h('div', {
      role: 'option', id: `node-${index}`, class: `row ${node.verdict}${node.buried === null ? '' : ' buried'}${index === this.active ? ' active' : ''}`,
      'aria-selected': String(index === this.active), 'aria-setsize': this.layout.nodes.length, 'aria-posinset': index + 1, 'data-sha': node.sha,
    },
    h('span', { class: 'label' }, node.label),
    node.best && h('vscode-badge', { class: 'best' }, 'best'),
    node.author !== 'person' && h('span', { class: 'author' }, node.author),
    node.buried === null ? h('span', { class: 'when' }, node.at_words)
      : h('span', { class: 'when' }, h('span', { class: 'spoken' }, 'buried: '), h('span', { 'aria-hidden': 'true' }, '† '), node.buried));
    row.style.paddingLeft = `${this.layout.lanesPx + 6}px`;
    row.addEventListener('click', () => { this.activate(index); this.diff(node); });
    row.addEventListener('mouseenter', () => this.hover.show(row, node.hover_markdown));
    return row;
  }

  private drawLines(first: number, end: number): void {
    const { nodes, index } = this.layout;
    if (this.lines.parentNode !== this.body) { this.body.prepend(this.lines); }
    this.lines.setAttribute('width', String(this.layout.lanesPx + LANE_PX));
    this.lines.setAttribute('height', String(nodes.length * ROW_PX));
    const parts = edgesIn(this.layout, first, end).map(({ edge, from, to }) => s('path', {
      class: `edge lane${to.lane % LANE_COLOURS}${to.buried === null ? '' : ' dead'} ${/^\w+$/.test(edge.kind) ? edge.kind : ''}`,
      d: edgePath({ lane: from.lane, at: index.get(from.sha)! }, { lane: to.lane, at: index.get(to.sha)! }),
    }));
    const marks = nodes.slice(first, end).map((node, at) => nodeMark(node, laneX(node.lane), rowY(first + at)));
    this.lines.replaceChildren(...parts, ...marks);
    if (this.active >= first && this.active < end) { this.list.setAttribute('aria-activedescendant', `node-${this.active}`); }
    else { this.list.removeAttribute('aria-activedescendant'); }
  }

  private activate(index: number): void {
    const node = this.layout.nodes[index];
    if (!node) { return; }
    this.active = index;
    this.rows.refresh();
    this.rows.reveal(index);
    this.chosen(node);
  }

  /** A node against the text it came from; a first one is only opened. */
  private diff(node: MapNode): void {
    const parent = node.parents.find((sha) => this.layout.index.has(sha)) ?? node.parents[0];
    send(parent === undefined ? { type: 'open', sha: node.sha } : { type: 'compare', a: parent, b: node.sha });
  }

  private key(event: KeyboardEvent): void {
    const last = this.layout.nodes.length - 1;
    const to = { ArrowDown: this.active + 1, ArrowUp: this.active - 1, PageDown: this.active + this.rows.page, PageUp: this.active - this.rows.page, Home: 0, End: last }[event.key];
    const node = this.layout.nodes[this.active];
    if (to !== undefined && last >= 0) { this.activate(Math.max(0, Math.min(last, to))); }
    else if (event.key === 'Enter' && node) { this.diff(node); }
    else if (event.key === ' ' && node) { send({ type: 'open', sha: node.sha }); }
    else { return; }
    event.preventDefault();
  }
}

const SHAPES: Record<Verdict, string> = {
  correct: 'M-4.5 0a4.5 4.5 0 1 0 9 0a4.5 4.5 0 1 0 -9 0z',
  incorrect: 'M-4 -4L4 4M4 -4L-4 4',
  compile_error: 'M-4 -4H4V4H-4z',
  error: 'M0 -5L5 4H-5z',
};

function nodeMark(node: MapNode, x: number, y: number): SVGElement {
  return s('path', { class: `node ${node.verdict} lane${node.lane % LANE_COLOURS}${node.buried === null ? '' : ' dead'}${node.best ? ' best' : ''}`, d: SHAPES[node.verdict], transform: `translate(${x} ${y})` });
}
