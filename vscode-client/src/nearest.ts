// Owns which of several kernels a line belongs to. Pure.

export interface Target { uri: string; kernel: string }

export interface Place { line: number; target: Target }

/** The last place at or above `line`, else the first below; null when there is none. */
export function nearest(places: Place[], line: number): Target | null {
  const above = places.filter((place) => place.line <= line).sort((a, b) => b.line - a.line)[0];
  const below = [...places].sort((a, b) => a.line - b.line)[0];
  return (above ?? below)?.target ?? null;
}
