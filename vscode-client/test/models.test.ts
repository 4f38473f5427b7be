import assert from 'node:assert/strict';
import { test } from 'node:test';
import { nearest } from '../src/nearest';
import { pageHtml } from '../src/panel/html';
import type { CandidateMap, MapNode, Status } from '../src/protocol';
import { statusItem } from '../src/statusModel';
import { edgePath, edgesIn, laneX, layoutMap, rowY } from '../src/webview/mapModel';
import { clip, linearScale, logScale, powerWords } from '../src/webview/plotModel';

const status = (change: Partial<Status> = {}): Status => ({ state: 'idle', text: 'Card X', card: 'Card X', detail: '', grey_reason: null, missing: [], ...change });

test('status: no server, starting, idle, grey with its reason, not trusted', () => {
  assert.equal(statusItem({ link: 'failed', status: null, failure: 'no Python', trusted: true }).level, 'error');
  assert.match(statusItem({ link: 'starting', status: status(), failure: null, trusted: true }).text, /loading/);
  assert.match(statusItem({ link: 'running', status: status(), failure: null, trusted: true }).text, /^\$\(pass\) Odyssey: Card X$/);
  const grey = statusItem({ link: 'running', status: status({ grey_reason: 'clocks are throttled', missing: [{ what: 'gpu', message: 'No GPU.', remedy: 'None.' }] }), failure: null, trusted: true });
  assert.ok(grey.tooltip.some((line) => line.includes('clocks are throttled')) && grey.tooltip.includes('No GPU. None.'));
  assert.match(statusItem({ link: 'running', status: status(), failure: null, trusted: false }).text, /shield/);
});

test("status: a server's words cannot bring icons in", () => {
  assert.ok(!statusItem({ link: 'running', status: status({ text: '$(bug) x' }), failure: null, trusted: true }).text.includes('$(bug)'));
});

const node = (sha: string, row: number, lane: number, parents: string[] = []): MapNode => ({
  sha, seq: row, lane, row, parents, author: 'person', verdict: 'correct', label: sha, hover_markdown: '', buried: null, best: false, at_words: '',
});

test('map: newest on top, edges only between nodes that are there, positions from lane and row', () => {
  const map: CandidateMap = { nodes: [node('a', 0, 0), node('b', 1, 0, ['a']), node('c', 2, 1, ['a'])], edges: [{ from: 'a', to: 'b', kind: 'edit' }, { from: 'a', to: 'c', kind: 'edit' }, { from: 'zz', to: 'c', kind: 'edit' }] };
  const layout = layoutMap(map);
  assert.deepEqual(layout.nodes.map((one) => one.sha), ['c', 'b', 'a']);
  assert.equal(layout.edges.length, 2);
  assert.deepEqual(edgesIn(layout, 0, 1).map(({ to }) => to.sha), ['c']);
  assert.equal(edgePath({ lane: 0, at: 2 }, { lane: 0, at: 1 }), `M${laneX(0)} ${rowY(1)}V${rowY(2)}`);
  assert.match(edgePath({ lane: 0, at: 2 }, { lane: 1, at: 0 }), /^M\d+ \d+V\d+C/);
});

test('map: appending moves no node to another lane and keeps their order', () => {
  const before: CandidateMap = { nodes: [node('a', 0, 0), node('b', 1, 1, ['a'])], edges: [] };
  const after: CandidateMap = { ...before, nodes: [...before.nodes, node('c', 2, 0, ['a'])] };
  assert.deepEqual(layoutMap(after).nodes.slice(1).map((one) => one.sha), layoutMap(before).nodes.map((one) => one.sha));
});

test('scales: powers of ten, round steps, words of ticks', () => {
  const log = logScale([3, 4000], 0, 100);
  assert.deepEqual([log.low, log.high], [1, 10_000]);
  assert.ok(Math.abs(log.at(100) - 50) < 1e-9);
  assert.deepEqual(logScale([], 0, 1).ticks.map(({ words }) => words), ['1', '10']);
  assert.deepEqual([-2, 0, 2, 4, 6].map(powerWords), ['0.01', '1', '100', '10k', '1M']);
  const linear = linearScale([1, 3.7], 100, 0);
  assert.deepEqual(linear.ticks.map(({ words }) => words), ['0', '1', '2', '3', '4']);
  assert.equal(linear.at(4), 0);
  assert.deepEqual(linearScale([], 0, 1).ticks.length > 1, true);
});

test('a line is cut off at the frame', () => {
  const frame = { width: 100, height: 100, left: 10, right: 10, top: 10, bottom: 10 };
  assert.deepEqual(clip([0, 50, 100, 50], frame), [10, 50, 90, 50]);
  assert.equal(clip([0, 0, 5, 5], frame), null);
  assert.deepEqual(clip([20, 20, 30, 30], frame), [20, 20, 30, 30]);
});

test('the page: a policy with a nonce, nothing inline, nothing remote', () => {
  const page = pageHtml({ cspSource: 'https://x.example', script: 'https://x.example/m.js', style: 'https://x.example/p.css', where: 'side' });
  const nonce = /script-src 'nonce-([^']+)'/.exec(page)?.[1];
  assert.ok(nonce && nonce.length >= 20 && page.includes(`<script nonce="${nonce}"`));
  assert.ok(page.includes("default-src 'none'") && !page.includes('unsafe-inline') && !page.includes('unsafe-eval'));
  assert.notEqual(nonce, /nonce-([^']+)'/.exec(pageHtml({ cspSource: '', script: '', style: '', where: 'side' }))?.[1]);
});

test('the kernel of a line is the one above it, else the first below', () => {
  const places = [{ line: 30, target: { uri: 'u', kernel: 'b' } }, { line: 5, target: { uri: 'u', kernel: 'a' } }];
  assert.equal(nearest(places, 31)?.kernel, 'b');
  assert.equal(nearest(places, 29)?.kernel, 'a');
  assert.equal(nearest(places, 0)?.kernel, 'a');
  assert.equal(nearest([], 3), null);
});
