// Owns drawing parsed Markdown as elements. Never sets innerHTML.
import { h } from './dom';
import { parseMarkdown, type Block, type Inline } from './markdown';

const TAGS = { code: 'code', strong: 'strong', emphasis: 'em' } as const;

function inline(parts: Inline[]): (Node | string)[] {
  return parts.map((part) => part.kind === 'text' ? part.text : h(TAGS[part.kind], {}, part.text));
}

function block(part: Block): HTMLElement {
  switch (part.kind) {
    case 'heading': return h(part.level <= 2 ? 'h3' : 'h4', {}, ...inline(part.inlines));
    case 'paragraph': return h('p', {}, ...inline(part.inlines));
    case 'list': return h('ul', {}, ...part.items.map((item) => h('li', {}, ...inline(item))));
    case 'code': return h('pre', {}, h('code', {}, part.text));
    case 'table': return h('div', { class: 'wide' }, h('table', {},
      h('thead', {}, h('tr', {}, ...part.head.map((cell) => h('th', { scope: 'col' }, ...inline(cell))))),
      h('tbody', {}, ...part.rows.map((row) => h('tr', {}, ...row.map((cell) => h('td', {}, ...inline(cell))))))));
  }
}

export function markdownNodes(markdown: string): HTMLElement[] {
  return parseMarkdown(markdown).map(block);
}
