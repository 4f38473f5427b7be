// Owns the two plots: this kernel against the card's measured ceilings, and its speed over time. Points come from the server.
import type { HistoryPoint, Plots, Roofline, Verdict } from '../protocol';
import { h, s } from './dom';
import { HoverCard } from './hoverCard';
import { clip, linearScale, logScale, type Frame, type Scale } from './plotModel';
import { send } from './state';

interface Dot { x: number; y: number; seq: number; label: string; verdict: Verdict }

const MARKS: Record<Verdict, string> = {
  correct: 'M-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0z', incorrect: 'M-3.5 -3.5L3.5 3.5M3.5 -3.5L-3.5 3.5', compile_error: 'M-3.5 -3.5H3.5V3.5H-3.5z', error: 'M0 -4.5L4.5 3.5H-4.5z',
};
/** The table under a plot holds the newest points only. */
const MOST_TABLE_ROWS = 200;

export class PlotView {
  readonly element = h('div', { class: 'plots', tabindex: 0, role: 'region', 'aria-label': 'Roofline and history' });
  private plots: Plots | null = null;
  private readonly hover = new HoverCard();

  constructor() {
    let width = 0;
    new ResizeObserver(([entry]) => {
      const next = Math.round(entry?.contentRect.width ?? 0);
      if (next !== width && next > 0) { width = next; this.draw(); }
    }).observe(this.element);
    this.element.addEventListener('mouseleave', () => this.hover.hide());
  }

  set(plots: Plots): void { this.plots = plots; this.draw(); }

  private draw(): void {
    if (!this.plots || this.element.clientWidth === 0) { return; }
    const { roofline, history, note } = this.plots;
    this.element.replaceChildren(
      ...(note ? [h('p', { class: 'note' }, note)] : []),
      ...(roofline ? this.drawRoofline(roofline) : []),
      ...(history.points.length > 0 ? this.drawHistory(history.points, history.y_label) : []),
    );
    if (this.element.childElementCount === 0) { this.element.append(h('p', { class: 'hint' }, 'Nothing was timed yet.')); }
  }

  private frame(height: number): Frame {
    return { width: Math.max(240, this.element.clientWidth - 24), height, left: 46, right: 12, top: 12, bottom: 34 };
  }

  private drawRoofline(roofline: Roofline): HTMLElement[] {
    const frame = this.frame(280);
    const ends = roofline.ceilings.flatMap((ceiling) => ceiling.points);
    const x = logScale([...roofline.points.map((point) => point.x), ...ends.map(([value]) => value)], frame.left, frame.width - frame.right);
    const y = logScale([...roofline.points.map((point) => point.y), ...ends.map(([, value]) => value)], frame.height - frame.bottom, frame.top);
    const roofs = roofline.ceilings.flatMap((ceiling, number) => {
      const [[ax, ay], [bx, by]] = ceiling.points;
      const line = clip([x.at(ax), y.at(ay), x.at(bx), y.at(by)], frame);
      if (!line) { return []; }
      const flat = Math.abs(line[1] - line[3]) < 2;
      const words = s('text', flat
        ? { class: 'rooflabel', x: frame.width - frame.right - 4, y: line[3] - 5, 'text-anchor': 'end' }
        : { class: 'rooflabel', x: 10, y: -6, transform: `translate(${line[0]} ${line[1]}) rotate(${Math.atan2(line[3] - line[1], line[2] - line[0]) * 180 / Math.PI})` }, ceiling.label);
      return [s('line', { class: `roof roof${number % 4}`, x1: line[0], y1: line[1], x2: line[2], y2: line[3] }), words];
    });
    const dots = roofline.points.map((point) => ({ ...point, x: x.at(point.x), y: y.at(point.y) }));
    const title = `Roofline, ${roofline.card}`;
    return [
      h('h3', {}, title),
      this.svg(frame, title, [...axes(frame, x, y, roofline.axes.x_label, roofline.axes.y_label), ...roofs, ...this.dots(dots)]),
      table('Points of the roofline', roofline.points.map((point) => [String(point.seq), point.label])),
    ];
  }

  /** Evenly spaced in the order of measurement: an afternoon's saves lie minutes apart, then nothing for days. */
  private drawHistory(points: HistoryPoint[], yLabel: string): HTMLElement[] {
    const frame = this.frame(220);
    const room = frame.width - frame.right - frame.left - 16;
    const y = linearScale(points.map((point) => point.y), frame.height - frame.bottom, frame.top);
    const dots = points.map((point, at) => ({ ...point, x: frame.left + 8 + (points.length > 1 ? at / (points.length - 1) : 0.5) * room, y: y.at(point.y) }));
    const path = dots.filter((dot) => dot.verdict === 'correct').map((dot, at) => `${at ? 'L' : 'M'}${dot.x.toFixed(1)} ${dot.y.toFixed(1)}`).join('');
    return [
      h('h3', {}, 'History'),
      this.svg(frame, `History: ${yLabel}, ${points.length} measurements`, [...axes(frame, null, y, 'measurement', yLabel), s('path', { class: 'trend', d: path }), ...this.dots(dots)]),
      table('Points of the history', points.map((point) => [String(point.seq), point.label])),
    ];
  }

  private dots(dots: Dot[]): SVGElement[] {
    const newest = dots.reduce((most, dot) => Math.max(most, dot.seq), -1);
    return dots.map((dot) => {
      const mark = s('path', { class: `dot ${dot.verdict}${dot.seq === newest ? ' newest' : ''}`, d: MARKS[dot.verdict], transform: `translate(${dot.x.toFixed(1)} ${dot.y.toFixed(1)})` });
      mark.addEventListener('mouseenter', () => this.hover.show(mark, dot.label));
      mark.addEventListener('mouseleave', () => this.hover.hide());
      mark.addEventListener('click', () => send({ type: 'detail', seq: dot.seq }));
      return mark;
    });
  }

  private svg(frame: Frame, label: string, children: SVGElement[]): HTMLElement {
    const drawing = s('svg', { viewBox: `0 0 ${frame.width} ${frame.height}`, width: frame.width, height: frame.height, role: 'img', 'aria-label': label }, ...children);
    return h('div', { class: 'plot' }, drawing as unknown as HTMLElement);
  }
}

function axes(frame: Frame, x: Scale | null, y: Scale, xLabel: string, yLabel: string): SVGElement[] {
  const [right, base] = [frame.width - frame.right, frame.height - frame.bottom];
  const middle = (frame.top + base) / 2;
  return [
    ...(x?.ticks ?? []).flatMap(({ value, words }) => [
      s('line', { class: 'gridline', x1: x!.at(value), x2: x!.at(value), y1: frame.top, y2: base }),
      s('text', { class: 'tick', x: x!.at(value), y: base + 14, 'text-anchor': 'middle' }, words),
    ]),
    ...y.ticks.flatMap(({ value, words }) => [
      s('line', { class: 'gridline', x1: frame.left, x2: right, y1: y.at(value), y2: y.at(value) }),
      s('text', { class: 'tick', x: frame.left - 6, y: y.at(value) + 4, 'text-anchor': 'end' }, words),
    ]),
    s('path', { class: 'axis', d: `M${frame.left} ${frame.top}V${base}H${right}` }),
    s('text', { class: 'axislabel', x: (frame.left + right) / 2, y: frame.height - 4, 'text-anchor': 'middle' }, xLabel),
    s('text', { class: 'axislabel', transform: `translate(11 ${middle}) rotate(-90)`, 'text-anchor': 'middle' }, yLabel),
  ];
}

/** The same points for screen readers and for whoever wants to read them. */
function table(title: string, rows: string[][]): HTMLElement {
  const newest = rows.slice(-MOST_TABLE_ROWS).reverse();
  return h('details', { class: 'points' }, h('summary', {}, title), h('table', {},
    h('thead', {}, h('tr', {}, h('th', { scope: 'col' }, 'No.'), h('th', { scope: 'col' }, 'Measurement'))),
    h('tbody', {}, ...newest.map((cells) => h('tr', {}, ...cells.map((cell) => h('td', {}, cell)))))));
}
