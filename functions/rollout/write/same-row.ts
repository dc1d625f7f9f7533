import { canonicalJson } from "#shared/base/json.ts";
import type { Row } from "#shared/fleet/rows/row.ts";

/** True when two rows differ only in what every write changes. */
export function isSameRow(one: object, other: object | undefined): boolean {
  return canonicalJson(withoutTimes(one)) === canonicalJson(withoutTimes(other ?? {}));
}

function withoutTimes(row: Partial<Row>): object {
  const { schema: _schema, version: _version, dueShard: _shard, dueKey: _key, dispatches: _dispatches, ...rest } = row;
  return rest;
}
