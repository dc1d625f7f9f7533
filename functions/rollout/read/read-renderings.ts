import { digestsOf, type Renderings } from "#shared/fleet/rollout/decide.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import type { SnapshotTarget } from "#shared/fleet/rows/rollout-rows.ts";
import { isNewer, newerRowText } from "#shared/fleet/rows/row.ts";
import type { Table } from "#shared/ports.ts";

/** Renderings that the targets need. */
export async function readRenderings(targets: readonly SnapshotTarget[], table: Table): Promise<Renderings> {
  const inputs = new Set(targets.flatMap(digestsOf));
  const found = await table.getMany([...inputs].map(keys.rendering), { newer: "kept" });
  const rows = found.filter((row) => row.type === "Rendering");
  const newer = found.filter(isNewer).map((row) => [keys.rendering.read(row).input, newerRowText(row)] as const);
  return { rows: new Map(rows.map((row) => [row.input, row])), newer: new Map(newer) };
}
