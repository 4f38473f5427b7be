// What a person does in the workbench, and what they see there: every selector of the suites stands in this file.
import assert from 'node:assert/strict';
import * as fs from 'node:fs';

/** Until `fn` neither throws nor returns a falsy value. */
export async function eventually(fn, ms = 20_000) {
  for (const end = Date.now() + ms; ;) {
    try { const value = await fn(); assert.ok(value ?? true); return value; } catch (error) { if (Date.now() > end) { throw error; } }
    await new Promise((ok) => setTimeout(ok, 60));
  }
}

export class Driver {
  constructor(page) { this.page = page; }

  tab(name) { return this.page.locator(`.tab[data-resource-name="${name}"]`); }
  editor() { return this.page.locator('.editor-group-container.active .monaco-editor').first(); }
  line(text) { return this.page.locator('.editor-group-container.active .view-line', { hasText: text }); }
  lens(text) { return this.page.locator('.codelens-decoration a', { hasText: text }); }
  hint(text) { return this.page.locator('.view-line span[class*="dyn-rule"]', { hasText: text }); }
  squiggle(kind) { return this.page.locator(`.squiggly-${kind}`); }
  problems(label) { return this.page.locator(`[id="status.problems"][aria-label*="${label}"]`); }
  statusText(text) { return this.page.locator('.statusbar-item', { hasText: text }); }
  toast(text) { return this.page.locator('.notification-toast', { hasText: text }); }
  hover(text) { return this.page.locator('.monaco-hover:visible', { hasText: text }); }
  /** The gutter mark of a kind (right, wrong, unknown, stale): its picture is the only thing that tells it. */
  mark(kind, timeout = 30_000) {
    return { waitFor: () => this.page.waitForFunction((name) => [...document.querySelectorAll('.editor-group-container .cgmr')]
      .some((element) => [null, '::before'].some((part) => getComputedStyle(element, part).backgroundImage.includes(`mark-${name}`))), kind, { timeout }) };
  }

  /** The page inside the panel's webview, in the side bar or beside the editor. */
  async panel(where = 'side') {
    return eventually(async () => {
      for (const frame of await this.page.locator('iframe.webview.ready').all()) {
        const box = await frame.boundingBox();
        if (box && box.width > 0 && (box.x < 340) === (where === 'side')) {
          const page = frame.contentFrame().locator('iframe#active-frame').contentFrame();
          assert.equal(await page.locator('[role=tablist]').count(), 1);
          return page;
        }
      }
      throw new Error(`there is no panel (${where})`);
    });
  }

  /** One tab of the panel in the side bar, brought to the front. */
  async panelTab(id) {
    if (await this.page.locator('.sidebar .composite.title', { hasText: 'Odyssey' }).count() === 0) { await this.command('Odyssey: Show the Ledger'); }
    const page = await this.panel();
    await page.locator(`#tab-${id}`).click();
    await page.locator(`#tab-${id}[aria-selected=true]`).waitFor();
    return page;
  }

  ledger() { return this.panelTab('ledger'); }

  /** By the command palette. Something that takes the focus meanwhile (a diff that closes) hides the palette: then once more. */
  async command(title) {
    await eventually(async () => {
      try {
        await this.page.keyboard.press('F1');
        await this.page.locator('.quick-input-widget:visible input').first().fill(`>${title}`, { timeout: 1500 });
        await this.page.locator('.quick-input-list .monaco-list-row', { hasText: title }).first().click({ timeout: 2500 });
      } catch (error) {
        await this.page.keyboard.press('Escape');
        throw error;
      }
    }, 45_000);
  }

  /** By the workbench's own command, which writes its state down before; a reload of the page alone does not. */
  async reload() {
    const gone = this.page.waitForEvent('load');
    await this.command('Developer: Reload Window');
    await gone;
    await this.page.locator('.monaco-workbench').waitFor();
  }

  async openFile(name) {
    await eventually(async () => {
      await this.page.keyboard.press('Control+p');
      await this.page.locator('.quick-input-widget:visible input').first().fill(name, { timeout: 1500 });
      // The list is filtered a moment after the typing: Enter takes what has the focus.
      await this.page.locator('.quick-input-list .monaco-list-row.focused', { hasText: name }).waitFor({ timeout: 1500 });
      await this.page.keyboard.press('Enter');
      await this.tab(name).and(this.page.locator('.active')).waitFor({ timeout: 3000 });
    }, 40_000);
    await this.focusEditor();
  }

  async focusEditor() {
    await this.command('View: Focus Active Editor Group');
    await this.page.locator('.editor-group-container.active .monaco-editor.focused').first().waitFor();
  }

  async goTo(line, column = 1) {
    await this.page.keyboard.press('Control+g');
    const input = this.page.locator('.quick-input-widget:visible input').first();
    await input.waitFor();
    await input.fill(`:${line}:${column}`);
    await this.page.keyboard.press('Enter');
    await this.page.locator('[id="status.editor.selection"]', { hasText: `Ln ${line}, Col ${column}` }).waitFor();
    await this.page.locator('.editor-group-container.active .monaco-editor.focused').first().waitFor();
  }

  /** Save, and wait until the file on disk is what the editor holds. */
  async save(file, expected) {
    await this.page.keyboard.press('Control+s');
    if (file) { await eventually(() => assert.match(fs.readFileSync(file, 'utf8'), expected)); }
  }

  /** Put `text` in place of the line's content. */
  async replaceLine(number, text) {
    await this.goTo(number);
    await this.page.keyboard.press('Shift+End');
    await this.page.keyboard.insertText(text);
  }

  async quickFix(title) {
    await this.page.keyboard.press('Control+.');
    const row = this.page.locator('.action-widget .monaco-list-row', { hasText: title });
    await row.waitFor();
    return row;
  }

  async answerBox(text) {
    const input = this.page.locator('.quick-input-widget:visible input').first();
    await input.waitFor();
    await input.fill(text);
    await this.page.keyboard.press('Enter');
  }

  async trustDialog(choice) {
    const button = this.page.locator('.monaco-dialog-box .monaco-button', { hasText: choice });
    await button.click();
    await this.page.locator('.monaco-dialog-box').waitFor({ state: 'detached' });
  }
}
