// Owns the card that floats beside what the mouse rests on. Its words also stand in the pane below, for keys and screen readers.
import { h } from './dom';
import { markdownNodes } from './markdownView';

const DELAY_MS = 180;

export class HoverCard {
  private readonly card = h('div', { class: 'hovercard', role: 'tooltip', hidden: true });
  private timer: number | undefined;

  show(anchor: Element, markdown: string): void {
    clearTimeout(this.timer);
    if (!markdown) { this.hide(); return; }
    this.timer = setTimeout(() => {
      if (!anchor.isConnected) { return; }
      if (!this.card.isConnected) { document.body.append(this.card); }
      this.card.replaceChildren(...markdownNodes(markdown));
      this.card.hidden = false;
      this.place(anchor.getBoundingClientRect());
    }, DELAY_MS);
  }

  hide(): void {
    clearTimeout(this.timer);
    this.card.hidden = true;
  }

  private place(anchor: DOMRect): void {
    const size = this.card.getBoundingClientRect();
    const below = anchor.bottom + 4 + size.height <= innerHeight;
    const top = below ? anchor.bottom + 4 : Math.max(4, anchor.top - size.height - 4);
    const left = Math.max(4, Math.min(anchor.left + 40, innerWidth - size.width - 4));
    this.card.style.transform = `translate(${Math.round(left)}px, ${Math.round(top)}px)`;
  }
}
