// Steps of appearance: the same views in light and in high contrast, and the accessibility check of every view of the panel.
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { createRequire } from 'node:module';
import { eventually } from '../driver.mjs';
import { state } from './line.mjs';
import { SCRIPTED, setSettings, shot, step } from './session.mjs';

const axeSource = fs.readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const THEMES = [['light', 'Light Modern', 'vscode-light'], ['contrast', 'Default High Contrast', 'vscode-high-contrast']];

async function theme(d, label, kind) {
  setSettings(state.folder, { ...SCRIPTED, 'workbench.colorTheme': label });
  const page = await d.ledger();
  await eventually(async () => assert.match(await page.locator('body').getAttribute('class'), new RegExp(`\\b${kind}\\b`)));
}

/** Serious findings of axe in the page of the panel. */
async function findings(page) {
  const body = page.locator('body');
  return body.evaluate(async (_, source) => {
    if (!globalThis.axe) { new Function(source)(); }
    const { violations } = await globalThis.axe.run(document, { resultTypes: ['violations'] });
    return violations.filter((one) => ['serious', 'critical'].includes(one.impact))
      .map((one) => `${one.id}: ${one.help} (${one.nodes.map((node) => node.html.slice(0, 120)).join(' | ')})`);
  }, axeSource);
}

for (const [name, label, kind] of [...THEMES, ['dark', 'Dark Modern', 'vscode-dark']]) {
  step(`in ${name}: every view, without serious findings of axe`, async () => {
    const d = state.driver;
    await d.openFile('softmax.py');
    await theme(d, label, kind);
    for (const tab of ['ledger', 'map', 'plots']) {
      const page = await d.panelTab(tab);
      if (tab === 'ledger') { await page.locator('.row').first().click(); await page.locator('.card table').waitFor(); }
      if (tab === 'map') { await page.locator('.map .row').first().waitFor(); }
      if (tab === 'plots') { await page.locator('svg[aria-label^="Roofline"]').waitFor(); }
      await shot(d, `${tab}-${name}`);
      assert.deepEqual(await findings(page), [], `${tab} in ${name}`);
    }
  });
}
