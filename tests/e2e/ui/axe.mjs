// Owns the accessibility check of a page of the panel, by axe.
import * as fs from 'node:fs';
import { createRequire } from 'node:module';

const axeSource = fs.readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** Findings of axe that are serious or worse, each with the elements it is about. */
export function findings(page) {
  return page.locator('body').evaluate(async (_, source) => {
    if (!globalThis.axe) { new Function(source)(); }
    const { violations } = await globalThis.axe.run(document, { resultTypes: ['violations'] });
    return violations.filter((one) => ['serious', 'critical'].includes(one.impact))
      .map((one) => `${one.id}: ${one.help} (${one.nodes.map((node) => node.html.slice(0, 120)).join(' | ')})`);
  }, axeSource);
}
