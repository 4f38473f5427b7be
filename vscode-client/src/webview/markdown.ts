// Owns reading the small Markdown that the server writes, into typed blocks. Pure. Links and images are kept as their text only:
// the words may come from a kernel's own source, so nothing in them is ever followed or loaded.

export type Inline = { kind: 'text' | 'code' | 'strong' | 'emphasis'; text: string };
export type Block =
  | { kind: 'heading'; level: number; inlines: Inline[] }
  | { kind: 'paragraph'; inlines: Inline[] }
  | { kind: 'list'; items: Inline[][] }
  | { kind: 'code'; text: string }
  | { kind: 'table'; head: Inline[][]; rows: Inline[][][] };

/** Every run is bounded, so that a hostile line costs linear time. */
const INLINE = new RegExp([
  '(`{1,4})([^`]{1,400})\\1', '\\*\\*([^*]{1,400})\\*\\*', '__([^_]{1,400})__', '(?<![\\w*])\\*([^*\\s][^*]{0,400})\\*(?!\\w)',
  '(?<!\\w)_([^_\\s][^_]{0,400})_(?!\\w)', '!?\\[([^\\]]{0,200})\\]\\([^)]{0,2000}\\)',
].join('|'), 'g');

function unescape(text: string): string {
  return text.replace(/\\([\\`*_{}[\]()#+\-.!|<>~$])/g, '$1');
}

export function parseInline(text: string): Inline[] {
  const parts: Inline[] = [];
  let at = 0;
  const plain = (piece: string): void => { if (piece) { parts.push({ kind: 'text', text: unescape(piece) }); } };
  for (const found of text.matchAll(INLINE)) {
    if (text[found.index - 1] === '\\') { continue; }
    plain(text.slice(at, found.index));
    at = found.index + found[0].length;
    if (found[2] !== undefined) { parts.push({ kind: 'code', text: found[2] }); }
    else if (found[3] ?? found[4]) { parts.push({ kind: 'strong', text: unescape((found[3] ?? found[4])!) }); }
    else if (found[5] ?? found[6]) { parts.push({ kind: 'emphasis', text: unescape((found[5] ?? found[6])!) }); }
    else { plain(found[7] ?? ''); }
  }
  plain(text.slice(at));
  return parts;
}

/** Cells of a table's line; an escaped bar does not divide. */
function cells(line: string): string[] {
  return line.trim().replace(/^\|/, '').replace(/(?<!\\)\|$/, '').split(/(?<!\\)\|/).map((cell) => cell.trim());
}

const DIVIDER = /^\s*\|?\s*:?-{2,}:?\s*(\|\s*:?-{2,}:?\s*)*\|?\s*$/;

export function parseMarkdown(markdown: string): Block[] {
  const lines = markdown.replaceAll('\r\n', '\n').split('\n');
  const blocks: Block[] = [];
  let i = 0;
  while (i < lines.length) {
    const line = lines[i]!;
    if (!line.trim()) { i++; continue; }
    const fence = /^\s*(`{3,}|~{3,})/.exec(line);
    if (fence) {
      const end = lines.findIndex((other, index) => index > i && other.trim().startsWith(fence[1]!));
      const stop = end === -1 ? lines.length : end;
      blocks.push({ kind: 'code', text: lines.slice(i + 1, stop).join('\n') });
      i = stop + 1;
      continue;
    }
    const heading = /^(#{1,6})\s+(.*)$/.exec(line);
    if (heading) { blocks.push({ kind: 'heading', level: heading[1]!.length, inlines: parseInline(heading[2]!) }); i++; continue; }
    if (line.includes('|') && DIVIDER.test(lines[i + 1] ?? '')) {
      const head = cells(line).map(parseInline);
      const rows: Inline[][][] = [];
      for (i += 2; i < lines.length && lines[i]!.includes('|'); i++) { rows.push(cells(lines[i]!).map(parseInline)); }
      blocks.push({ kind: 'table', head, rows });
      continue;
    }
    if (/^\s*[-*+]\s+/.test(line)) {
      const items: Inline[][] = [];
      for (; i < lines.length && /^\s*[-*+]\s+/.test(lines[i]!); i++) { items.push(parseInline(lines[i]!.replace(/^\s*[-*+]\s+/, ''))); }
      blocks.push({ kind: 'list', items });
      continue;
    }
    const paragraph: string[] = [];
    for (; i < lines.length && lines[i]!.trim() && !(paragraph.length && /^(#{1,6}\s|\s*[-*+]\s|\s*(`{3,}|~{3,}))/.test(lines[i]!)); i++) { paragraph.push(lines[i]!.trim()); }
    blocks.push({ kind: 'paragraph', inlines: parseInline(paragraph.join(' ')) });
  }
  return blocks;
}
