// Typing latency: from the key event to the frame that shows the letter, in a 5,000-line file with 100 kernels and the real server,
// in two workbenches side by side, one with the extension and one without, in alternating blocks of keys.
import * as path from 'node:path';
import { Driver } from '../tests/e2e/driver.mjs';
import { openWindow } from '../tests/e2e/workbench.mjs';

const KEYS_PER_BLOCK = 25;
const PAUSE_MS = 70;
const LINE = 2511;

/** A hundred kernels of fifty lines. */
export function bigFile() {
  const kernel = (number) => [
    '@triton.jit', `def kernel_${number}(x_ptr, y_ptr, n, BLOCK: tl.constexpr):`, '    pid = tl.program_id(0)', '    offsets = pid * BLOCK + tl.arange(0, BLOCK)',
    '    mask = offsets < n', '    x = tl.load(x_ptr + offsets, mask=mask)',
    ...Array.from({ length: 41 }, (_, at) => `    x = x * ${at + 1}.0 + ${number}.0`), '    tl.store(y_ptr + offsets, x, mask=mask)', '', '',
  ];
  return ['import triton', 'import triton.language as tl', '', '', ...Array.from({ length: 100 }, (_, number) => kernel(number)).flat()].join('\n');
}

async function prepare({ browser, server, folder, on }) {
  const { page } = await openWindow(server, { browser, folder });
  const driver = new Driver(page);
  await driver.openFile('big.py');
  if (on) { await driver.statusText('Odyssey:').first().waitFor(); await driver.lens('Evaluate').first().waitFor(); }
  await driver.goTo(LINE, 1);
  await page.keyboard.press('End');
  await page.keyboard.type('  # ');
  await page.evaluate(() => {
    globalThis.latencies = [];
    let began = null;
    document.addEventListener('keydown', () => { began = performance.now(); }, true);
    const lines = document.querySelector('.editor-group-container.active .view-lines');
    new MutationObserver(() => {
      if (began === null) { return; }
      const from = began;
      began = null;
      requestAnimationFrame(() => {
        // The message comes after the frame was painted.
        const channel = new MessageChannel();
        channel.port1.onmessage = () => globalThis.latencies.push(performance.now() - from);
        channel.port2.postMessage(null);
      });
    }).observe(lines, { childList: true, subtree: true, characterData: true });
  });
  return page;
}

async function block(page) {
  await page.bringToFront();
  const before = await page.evaluate(() => globalThis.latencies.length);
  for (let key = 0; key < KEYS_PER_BLOCK; key++) {
    await page.keyboard.press('abcdefghij'[key % 10]);
    await page.waitForTimeout(PAUSE_MS);
  }
  return page.evaluate((from) => globalThis.latencies.slice(from), before);
}

export async function measureTyping({ browser, withExtension, without, folderWith, text, blocks, summary }) {
  const files = { 'big.py': text };
  const pages = {
    on: await prepare({ browser, server: withExtension, folder: folderWith('typing-on', files), on: true }),
    off: await prepare({ browser, server: without, folder: folderWith('typing-off', files), on: false }),
  };
  // A first block each is thrown away: just-in-time compilation of the editor's own code.
  for (const page of Object.values(pages)) { await block(page); }
  const found = { on: [], off: [] };
  for (let turn = 0; turn < blocks; turn++) {
    for (const key of turn % 2 ? ['on', 'off'] : ['off', 'on']) { found[key].push(...await block(pages[key])); }
  }
  const [on, off] = [summary(found.on), summary(found.off)];
  return { file: `${path.basename('big.py')}, ${text.split('\n').length} lines, 100 kernels`, keys: found.on.length, on, off,
    median_difference_ms: Math.round((on.median_ms - off.median_ms) * 10) / 10, p95_difference_ms: Math.round((on.p95_ms - off.p95_ms) * 10) / 10 };
}
