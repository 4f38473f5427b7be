import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { PanelRow } from '../src/panel/messages';
import { COLUMNS, shownColumns } from '../src/webview/columns';
import { Store } from '../src/webview/store';

function row(seq: number, change: Partial<PanelRow> = {}): PanelRow {
  return {
    seq, at: '', at_words: `t${seq}`, file: 'a.py', uri: 'file:///a.py', kernel: 'k', verdict: 'correct', verdict_words: 'right 5/5', reason: null,
    speedup: seq, speedup_words: `${seq}.00x`, opponent: null, device_us: 100 - seq, device_words: `${100 - seq} us`, interval_words: '', regime: null,
    card: null, foreign: false, cause: 'save', author: 'person', sha: `sha${seq}`, sha_short: `s${seq}`, parents: [], mode: 'fast', buried: null, ...change,
  };
}
const seqs = (store: Store): number[] => store.view.map((one) => one.seq);

test('newest first, whatever the order in which pages come', () => {
  const store = new Store();
  store.add([row(5), row(4)]);
  store.add([row(3), row(2)]);
  assert.equal(store.add([row(6)]), 1);
  assert.deepEqual(seqs(store), [6, 5, 4, 3, 2]);
});

test('a row that is there already is not added twice', () => {
  const store = new Store();
  store.add([row(1)]);
  store.add([row(1), row(2)]);
  assert.deepEqual(seqs(store), [2, 1]);
});

test('rows between others find their place', () => {
  const store = new Store();
  store.add([row(1), row(5)]);
  store.add([row(3)]);
  assert.deepEqual(seqs(store), [5, 3, 1]);
});

test('sorting by a number, both ways; what has none stands last', () => {
  const store = new Store();
  store.add([row(1), row(2, { speedup: null }), row(3)]);
  store.setSort({ id: 'speedup', down: true });
  assert.deepEqual(seqs(store), [3, 1, 2]);
  store.setSort({ id: 'speedup', down: false });
  assert.deepEqual(seqs(store), [1, 3, 2]);
  store.add([row(4)]);
  assert.deepEqual(seqs(store), [1, 3, 4, 2]);
});

test('all words of the filter must be found, in any column; a verdict narrows further', () => {
  const store = new Store();
  store.add([row(1, { verdict: 'incorrect', verdict_words: 'wrong 2/5', kernel: 'softmax' }), row(2, { kernel: 'softmax' }), row(3)]);
  store.setFilter({ words: 'SOFT save', verdict: 'any' });
  assert.deepEqual(seqs(store), [2, 1]);
  store.setFilter({ words: 'soft', verdict: 'incorrect' });
  assert.deepEqual(seqs(store), [1]);
  store.add([row(4, { kernel: 'softmax' })]);
  assert.deepEqual(seqs(store), [1]);
});

test('a hundred thousand rows are taken in, sorted and filtered', () => {
  const store = new Store();
  for (let page = 49; page >= 0; page--) { store.add(Array.from({ length: 2000 }, (_, at) => row(page * 2000 + at + 1))); }
  store.setSort({ id: 'device', down: false });
  store.setFilter({ words: 't99999', verdict: 'any' });
  assert.equal(store.size, 100_000);
  assert.deepEqual(seqs(store), [99_999]);
});

test('whether anything was timed is known from the first row on', () => {
  const store = new Store();
  store.add([row(1, { device_us: null })]);
  assert.equal(store.timed, false);
  store.add([row(2)]);
  assert.equal(store.timed, true);
  store.add([row(3, { device_us: null })]);
  assert.equal(store.timed, true);
});

test('columns: as many as fit by rank, or the chosen ones, in the order of the table', () => {
  assert.deepEqual(shownColumns(null, 300).map((one) => one.id), ['verdict', 'speedup', 'device']);
  assert.deepEqual(shownColumns(null, 400, false).map((one) => one.id), ['verdict', 'kernel', 'time']);
  assert.deepEqual(shownColumns(['sha', 'verdict'], 300).map((one) => one.id), ['verdict', 'sha']);
  assert.deepEqual(shownColumns([], 10).map((one) => one.id), ['verdict']);
  assert.equal(shownColumns(null, 5000).length, COLUMNS.length);
});
