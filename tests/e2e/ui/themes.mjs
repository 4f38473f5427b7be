// Steps of appearance: the same views in light and in high contrast, and the accessibility check of every view of the panel.
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import * as path from 'node:path';
import { eventually } from '../driver.mjs';
import { findings } from './axe.mjs';
import { state } from './line.mjs';
import { root, SCRIPTED, setSettings, shot, step } from './session.mjs';

const THEMES = [['light', 'Light Modern', 'vscode-light'], ['contrast', 'Default High Contrast', 'vscode-high-contrast']];

async function theme(d, label, kind) {
  setSettings(state.folder, { ...SCRIPTED, 'workbench.colorTheme': label });
  const page = await d.ledger();
  await eventually(async () => assert.match(await page.locator('body').getAttribute('class'), new RegExp(`\\b${kind}\\b`)));
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

step("the panel's content security policy was never violated", () => {
  const lines = fs.readFileSync(path.join(root, 'console.log'), 'utf8').split('\n').filter((line) => /Content Security Policy|\[pageerror\]/.test(line));
  assert.deepEqual(lines, []);
});
