// Owns what the status bar item says, as a pure function of the link and of the server's status. Never formats a measurement.
import type { Status } from './protocol';

export interface StatusFacts {
  link: 'stopped' | 'starting' | 'running' | 'failed';
  status: Status | null;
  failure: string | null;
  trusted: boolean;
}

export interface StatusItem {
  text: string;
  /** Lines of plain text, the first one the heading. */
  tooltip: string[];
  level: 'normal' | 'error';
  /** For screen readers: the same without icons. */
  spoken: string;
}

/** `$(name)` in a server's words must not become an icon. */
export function withoutIcons(text: string): string {
  return text.replaceAll('$(', '$ (');
}

export function statusItem(facts: StatusFacts): StatusItem {
  if (facts.link === 'failed') {
    const why = facts.failure ?? 'The server did not start.';
    return { text: '$(error) Odyssey', tooltip: ['Odyssey: no server', why], level: 'error', spoken: `Odyssey: ${why}` };
  }
  if (facts.link === 'stopped') {
    return { text: '$(circle-slash) Odyssey', tooltip: ['Odyssey is stopped'], level: 'normal', spoken: 'Odyssey is stopped' };
  }
  const status = facts.status;
  if (facts.link === 'starting' || !status) {
    return { text: '$(loading~spin) Odyssey', tooltip: ['Odyssey is starting'], level: 'normal', spoken: 'Odyssey is starting' };
  }
  const words = withoutIcons(status.text);
  const tooltip = [`Odyssey: ${words}`];
  if (status.card) { tooltip.push(status.card); }
  if (status.detail) { tooltip.push(status.detail); }
  if (status.grey_reason) { tooltip.push(`Verdicts are grey: ${status.grey_reason}`); }
  for (const { message, remedy } of status.missing) { tooltip.push(remedy ? `${message} ${remedy}` : message); }
  // No GPU is a way of working and no alarm: only a missing server colours the item.
  return { text: `${icon(status, facts.trusted)} Odyssey: ${words}`, tooltip, level: 'normal', spoken: tooltip.join('. ') };
}

function icon(status: Status, trusted: boolean): string {
  if (!trusted) { return '$(shield)'; }
  switch (status.state) {
    case 'starting': return '$(loading~spin)';
    case 'busy': return '$(sync~spin)';
    case 'degraded': return '$(warning)';
    case 'idle': return status.grey_reason ? '$(circle-outline)' : '$(pass)';
  }
}
