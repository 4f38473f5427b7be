import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Feed } from '../src/panel/feed';
import type { PanelRow } from '../src/panel/messages';
import type { LedgerRows, LedgerRowsParams, Row } from '../src/protocol';

const row = (seq: number): Row => ({ seq, detail_markdown: 'card' } as Row);

class Ledger {
  readonly asked: LedgerRowsParams[] = [];
  constructor(public size: number) {}
  ledgerRows(params: LedgerRowsParams): Promise<LedgerRows> {
    this.asked.push(params);
    const { after = 0, before = this.size + 1, limit = 200 } = params;
    const all = Array.from({ length: this.size }, (_, at) => at + 1).filter((seq) => seq > after && seq < before);
    const seqs = params.after === undefined ? all.reverse().slice(0, limit) : all.slice(0, limit);
    return Promise.resolve({ rows: seqs.map(row), last_seq: this.size, total: this.size, places: { ledger: 'l.db' } });
  }
}

class Page {
  readonly seqs = new Set<number>();
  first = -1;
  complete = false;
  rows(batch: { reset: boolean; rows: PanelRow[]; complete: boolean }): void {
    if (batch.reset) { this.seqs.clear(); this.first = batch.rows.length; }
    for (const one of batch.rows) { assert.ok(!('detail_markdown' in one)); this.seqs.add(one.seq); }
    this.complete = batch.complete;
  }
}

test('a small newest page first, then all older ones', async () => {
  const [ledger, page] = [new Ledger(10_000), new Page()];
  await new Feed(ledger, page).load({});
  assert.equal(page.first, 100);
  assert.equal(page.seqs.size, 10_000);
  assert.ok(page.complete);
});

test('an empty ledger is complete at once', async () => {
  const [ledger, page] = [new Ledger(0), new Page()];
  await new Feed(ledger, page).load({});
  assert.ok(page.complete);
  assert.equal(ledger.asked.length, 1);
});

test('appended rows are fetched after the last one that was seen, bells in a burst by one more round', async () => {
  const [ledger, page] = [new Ledger(10), new Page()];
  const feed = new Feed(ledger, page);
  await feed.load({ uri: 'file:///a.py' });
  ledger.size = 11;
  const first = feed.appended();
  ledger.size = 14;
  await Promise.all([first, feed.appended(), feed.appended()]);
  assert.equal(page.seqs.size, 14);
  assert.deepEqual(ledger.asked.slice(1).map(({ after, uri }) => [after, uri]), [[10, 'file:///a.py'], [ledger.asked[2]?.after, 'file:///a.py']]);
});

test('more new rows than one page hold are all fetched', async () => {
  const [ledger, page] = [new Ledger(5), new Page()];
  const feed = new Feed(ledger, page);
  await feed.load({});
  ledger.size = 5005;
  await feed.appended();
  assert.equal(page.seqs.size, 5005);
});

test('an answer to an earlier scope is dropped', async () => {
  const page = new Page();
  let release: (() => void) | undefined;
  const ledger = new Ledger(3);
  const slow = { ledgerRows: async (params: LedgerRowsParams) => { if (params.kernel === 'old') { await new Promise<void>((ok) => { release = ok; }); } return ledger.ledgerRows(params); } };
  const feed = new Feed(slow, page);
  const old = feed.load({ kernel: 'old' });
  await feed.load({ kernel: 'new' });
  page.seqs.clear();
  release?.();
  await old;
  assert.equal(page.seqs.size, 0);
});

test('a page that was sent ahead is not sent twice, and older ones wait until it is drawn', async () => {
  const [ledger, page] = [new Ledger(300), new Page()];
  const feed = new Feed(ledger, page);
  let drawn: (() => void) | undefined;
  const loading = feed.load({}, feed.begin(), new Promise<void>((done) => { drawn = done; }));
  await new Promise((ok) => setTimeout(ok, 5));
  assert.equal(page.seqs.size, 100);
  assert.equal(ledger.asked.length, 1);
  drawn?.();
  await loading;
  assert.equal(page.seqs.size, 300);
  assert.ok(page.complete);
});
