// Owns building elements from text. Text always becomes text nodes: nothing here can turn a server's words into markup.

type Child = Node | string | null | undefined | false;
type Attributes = Record<string, string | number | boolean | null | undefined>;

const SVG = 'http://www.w3.org/2000/svg';

function fill(element: Element, attributes: Attributes, children: Child[]): void {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) { continue; }
    element.setAttribute(name, value === true ? '' : String(value));
  }
  for (const child of children) { if (child !== null && child !== undefined && child !== false) { element.append(child); } }
}

export function h<K extends keyof HTMLElementTagNameMap>(tag: K, attributes?: Attributes, ...children: Child[]): HTMLElementTagNameMap[K];
export function h(tag: string, attributes?: Attributes, ...children: Child[]): HTMLElement;
export function h(tag: string, attributes: Attributes = {}, ...children: Child[]): HTMLElement {
  const element = document.createElement(tag);
  fill(element, attributes, children);
  return element;
}

export function s(tag: string, attributes: Attributes = {}, ...children: Child[]): SVGElement {
  const element = document.createElementNS(SVG, tag);
  fill(element, attributes, children);
  return element;
}

/** A button of @vscode-elements. */
export function button(label: string, onClick: () => void, attributes: Attributes = {}): HTMLElement & { disabled: boolean } {
  const element = h('vscode-button', { secondary: true, ...attributes }, label) as HTMLElement & { disabled: boolean };
  element.addEventListener('click', () => { if (!element.disabled) { onClick(); } });
  return element;
}

/** Text for the eye where shape and colour tell the verdict; screen readers get the words beside it. */
export const GLYPHS = { correct: '✓', incorrect: '✗', compile_error: '✗', error: '!' } as const;
