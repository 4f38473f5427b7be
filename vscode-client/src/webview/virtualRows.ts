// Owns drawing only the rows in sight: a hundred thousand rows cost as much as forty. Never knows what a row shows.

export interface VirtualOptions {
  scroller: HTMLElement;
  /** Positioned element inside the scroller that gets the full height. */
  body: HTMLElement;
  rowHeightPx: number;
  /** Height of what sticks to the scroller's top, above the rows. */
  headPx: number;
  count(): number;
  draw(index: number): HTMLElement;
  /** After each drawing: the window that is in the document now. */
  drawn?(first: number, end: number): void;
}

const SPARE_ROWS = 6;

export class VirtualRows {
  private readonly shown = new Map<number, HTMLElement>();
  private frame = 0;

  constructor(private readonly options: VirtualOptions) {
    options.scroller.addEventListener('scroll', () => this.soon(), { passive: true });
    new ResizeObserver(() => this.soon()).observe(options.scroller);
  }

  /** Draw again from the data. `addedAbove` rows came in before the first shown one: what the eye rests on stays where it is. */
  refresh(addedAbove = 0): void {
    const { scroller, body, rowHeightPx, count } = this.options;
    for (const element of this.shown.values()) { element.remove(); }
    this.shown.clear();
    body.style.height = `${count() * rowHeightPx}px`;
    if (addedAbove > 0 && scroller.scrollTop > 0) { scroller.scrollTop += addedAbove * rowHeightPx; }
    this.draw();
  }

  /** Draw one row again, when it is in sight. */
  redraw(index: number): void {
    const old = this.shown.get(index);
    if (!old) { return; }
    const next = this.place(index);
    old.replaceWith(next);
    this.shown.set(index, next);
  }

  reveal(index: number): void {
    const { scroller, rowHeightPx, headPx } = this.options;
    const top = index * rowHeightPx;
    const room = scroller.clientHeight - headPx;
    if (top < scroller.scrollTop) { scroller.scrollTop = top; }
    else if (top + rowHeightPx > scroller.scrollTop + room) { scroller.scrollTop = top + rowHeightPx - room; }
    this.draw();
  }

  /** Rows that fit into the window: the step of Page Up and Page Down. */
  get page(): number {
    return Math.max(1, Math.floor((this.options.scroller.clientHeight - this.options.headPx) / this.options.rowHeightPx) - 1);
  }

  private soon(): void {
    this.frame ||= requestAnimationFrame(() => { this.frame = 0; this.draw(); });
  }

  private draw(): void {
    const { scroller, body, rowHeightPx, count, drawn } = this.options;
    const first = Math.max(0, Math.floor(scroller.scrollTop / rowHeightPx) - SPARE_ROWS);
    const end = Math.min(count(), Math.ceil((scroller.scrollTop + scroller.clientHeight) / rowHeightPx) + SPARE_ROWS);
    for (const [index, element] of this.shown) {
      if (index < first || index >= end) { element.remove(); this.shown.delete(index); }
    }
    const fresh: HTMLElement[] = [];
    for (let index = first; index < end; index++) {
      if (this.shown.has(index)) { continue; }
      const element = this.place(index);
      this.shown.set(index, element);
      fresh.push(element);
    }
    // Screen readers read in document order: rows that come in above go in front.
    if (fresh.length > 0 && end > first && this.shown.size > fresh.length && this.shown.get(first) === fresh[0]) { body.prepend(...fresh); } else { body.append(...fresh); }
    drawn?.(first, end);
  }

  private place(index: number): HTMLElement {
    const element = this.options.draw(index);
    element.style.transform = `translateY(${index * this.options.rowHeightPx}px)`;
    element.style.height = `${this.options.rowHeightPx}px`;
    return element;
  }
}
