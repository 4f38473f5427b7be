// Owns asking for the newest measurement of a kernel. Never judges whether it is still fresh: the server does.
import type { Connection } from './connection';
import type { Row } from './protocol';
import type { Target } from './target';

export async function freshMeasurement(connection: Connection, target: Target): Promise<Row | null> {
  const { rows } = await connection.ledgerRows({ uri: target.uri, kernel: target.kernel, limit: 1 });
  return rows[0] ?? null;
}
