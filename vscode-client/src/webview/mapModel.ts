// Owns where the map's nodes and edges are drawn: from the server's lanes and rows to pixels. Pure; decides no layout.
import type { CandidateMap, MapEdge, MapNode } from '../protocol';

export const ROW_PX = 26;
export const LANE_PX = 14;
const LEFT_PX = 12;

export interface PlacedEdge { edge: MapEdge; from: MapNode; to: MapNode; top: number; bottom: number }

export interface MapLayout {
  /** Newest (highest row) first, as a git log is read. */
  nodes: MapNode[];
  edges: PlacedEdge[];
  /** Index in `nodes` by sha. */
  index: Map<string, number>;
  lanesPx: number;
}

export function layoutMap(map: CandidateMap): MapLayout {
  const nodes = [...map.nodes].sort((a, b) => b.row - a.row || a.lane - b.lane);
  const index = new Map(nodes.map((node, at) => [node.sha, at]));
  const edges: PlacedEdge[] = [];
  for (const edge of map.edges) {
    const from = index.get(edge.from);
    const to = index.get(edge.to);
    if (from === undefined || to === undefined) { continue; }
    edges.push({ edge, from: nodes[from]!, to: nodes[to]!, top: Math.min(from, to), bottom: Math.max(from, to) });
  }
  const lanes = nodes.reduce((most, node) => Math.max(most, node.lane), 0) + 1;
  return { nodes, edges, index, lanesPx: LEFT_PX + lanes * LANE_PX };
}

export function laneX(lane: number): number { return LEFT_PX + lane * LANE_PX; }
export function rowY(index: number): number { return index * ROW_PX + ROW_PX / 2; }

/** A line down the child's lane that bends into the parent's in the last row. */
export function edgePath(parent: { lane: number; at: number }, child: { lane: number; at: number }): string {
  const [x1, y1, x2, y2] = [laneX(child.lane), rowY(child.at), laneX(parent.lane), rowY(parent.at)];
  if (x1 === x2) { return `M${x1} ${y1}V${y2}`; }
  const bend = y2 > y1 ? Math.max(y1, y2 - ROW_PX) : Math.min(y1, y2 + ROW_PX);
  const middle = (bend + y2) / 2;
  return `M${x1} ${y1}V${bend}C${x1} ${middle} ${x2} ${middle} ${x2} ${y2}`;
}

/** Edges that touch the window of rows [first, end). */
export function edgesIn(layout: MapLayout, first: number, end: number): PlacedEdge[] {
  return layout.edges.filter((edge) => edge.top < end && edge.bottom >= first);
}
