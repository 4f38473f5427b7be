import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseInline, parseMarkdown } from '../src/webview/markdown';

const words = (markdown: string): string => JSON.stringify(parseMarkdown(markdown));

test('blocks', () => {
  const kinds = parseMarkdown('# a\n\ntext\nmore\n\n- one\n- two\n\n```py\nx | y\n```\n\n| a | b |\n| --- | --- |\n| 1 | 2 |\n| 3 | 4 |').map((block) => block.kind);
  assert.deepEqual(kinds, ['heading', 'paragraph', 'list', 'code', 'table']);
});

test('a table keeps its cells, and an escaped bar does not divide', () => {
  const [table] = parseMarkdown('| a | b |\n|---|---|\n| 1 \\| 2 | `c` |');
  assert.equal(table?.kind, 'table');
  if (table?.kind !== 'table') { return; }
  assert.deepEqual(table.rows[0], [[{ kind: 'text', text: '1 | 2' }], [{ kind: 'code', text: 'c' }]]);
});

test('inline code, strong, emphasis, and escapes in all but code', () => {
  assert.deepEqual(parseInline('a **softmax\\_kernel** _b c_ `d\\_e` f\\_g'), [
    { kind: 'text', text: 'a ' }, { kind: 'strong', text: 'softmax_kernel' }, { kind: 'text', text: ' ' }, { kind: 'emphasis', text: 'b c' },
    { kind: 'text', text: ' ' }, { kind: 'code', text: 'd\\_e' }, { kind: 'text', text: ' f_g' },
  ]);
});

test('an identifier with underscores is no emphasis', () => {
  assert.deepEqual(parseInline('x_ptr and y_ptr'), [{ kind: 'text', text: 'x_ptr and y_ptr' }]);
});

test('links, images and HTML come out as text only', () => {
  assert.ok(!words('[press](command:evil) ![x](https://e.example/x.png)').includes('evil'));
  assert.ok(words('<script>alert(1)</script>').includes('<script>alert(1)</script>'));
});

test('an unclosed fence and an empty text end', () => {
  assert.deepEqual(parseMarkdown('```\nx'), [{ kind: 'code', text: 'x' }]);
  assert.deepEqual(parseMarkdown(''), []);
});

test('a hostile line of a hundred thousand characters is read within a second', () => {
  const began = performance.now();
  for (const piece of ['*', '_', '`', '[', '**a', '|', '\\', '![', '`a`']) { parseMarkdown(piece.repeat(100_000 / piece.length)); }
  assert.ok(performance.now() - began < 1000, `${performance.now() - began} ms`);
});
