// Owns scales and ticks: from the server's coordinates to pixels. Pure; the coordinates themselves are never changed.

export interface Frame { width: number; height: number; left: number; right: number; top: number; bottom: number }
export interface Scale { at(value: number): number; ticks: { value: number; words: string }[]; low: number; high: number }

/** Powers of ten that hold all positive values, with a scale onto [from, to] pixels. */
export function logScale(values: number[], from: number, to: number): Scale {
  const positive = values.filter((value) => value > 0 && Number.isFinite(value));
  let low = Math.floor(Math.log10(Math.min(...positive, Infinity)));
  let high = Math.ceil(Math.log10(Math.max(...positive, 0)));
  if (!Number.isFinite(low) || !Number.isFinite(high)) { low = 0; high = 1; }
  if (high <= low) { high = low + 1; }
  const at = (value: number): number => from + (Math.log10(Math.max(value, 10 ** (low - 1))) - low) / (high - low) * (to - from);
  const every = Math.ceil((high - low) / 6);
  const ticks: Scale['ticks'] = [];
  for (let power = low; power <= high; power += every) { ticks.push({ value: 10 ** power, words: powerWords(power) }); }
  return { at, ticks, low: 10 ** low, high: 10 ** high };
}

/** Axis words of a power of ten: 0.01, 1, 100, 10k, 1M. */
export function powerWords(power: number): string {
  if (power < 0) { return (10 ** power).toFixed(-power); }
  const suffix = ['', 'k', 'M', 'G', 'T', 'P'][Math.floor(power / 3)];
  return suffix === undefined ? `1e${power}` : `${10 ** (power % 3)}${suffix}`;
}

/** A linear scale from zero (or below, where values are) with round ticks. */
export function linearScale(values: number[], from: number, to: number): Scale {
  const finite = values.filter(Number.isFinite);
  const low = Math.min(0, ...finite);
  const most = Math.max(...finite, low);
  const step = roundStep((most - low || 1) / 4);
  const high = Math.max(low + step, Math.ceil(most / step) * step);
  const ticks: Scale['ticks'] = [];
  for (let n = Math.ceil(low / step); n * step <= high + step / 1e6; n++) { ticks.push({ value: n * step, words: tidy(n * step) }); }
  return { at: (value) => from + (value - low) / (high - low) * (to - from), ticks, low, high };
}

function roundStep(rough: number): number {
  const power = 10 ** Math.floor(Math.log10(rough));
  const lead = rough / power;
  return (lead <= 1 ? 1 : lead <= 2 ? 2 : lead <= 5 ? 5 : 10) * power;
}

function tidy(value: number): string {
  return String(Number(value.toPrecision(6)));
}

/** A line between two points, cut off at the frame's edges; null when none of it is inside. Liang and Barsky's method, in pixels. */
export function clip(line: [number, number, number, number], frame: Frame): [number, number, number, number] | null {
  const [x1, y1, x2, y2] = line;
  const [dx, dy] = [x2 - x1, y2 - y1];
  let [enter, leave] = [0, 1];
  const sides: [number, number][] = [
    [-dx, x1 - frame.left], [dx, frame.width - frame.right - x1], [-dy, y1 - frame.top], [dy, frame.height - frame.bottom - y1],
  ];
  for (const [toward, room] of sides) {
    if (toward === 0) { if (room < 0) { return null; } continue; }
    const t = room / toward;
    if (toward < 0) { enter = Math.max(enter, t); } else { leave = Math.min(leave, t); }
    if (enter > leave) { return null; }
  }
  return [x1 + enter * dx, y1 + enter * dy, x1 + leave * dx, y1 + leave * dy];
}
