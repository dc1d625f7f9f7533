import { inputDigest, inputOf } from "#shared/fleet/rollout/plan.ts";
import { keys, type Subject, syncName } from "#shared/fleet/rows/keys.ts";
import type { SubjectRow } from "#shared/fleet/rows/object-rows.ts";
import type { PlannedTemplate, RenderingRow, RolloutRow } from "#shared/fleet/rows/rollout-rows.ts";
import { isNewer, keyText, type RowKeyOf } from "#shared/fleet/rows/row.ts";
import type { RowType } from "#shared/fleet/rows/stored-row.ts";
import type { SyncRow } from "#shared/fleet/rows/sync-row.ts";
import { isReady, type OutOfSync, outOfSync, type WantedRendering } from "#shared/fleet/sync/sync-state.ts";
import type { Table } from "#shared/ports.ts";

/**
 * Which of these Syncs are ready with something else than the newest rollout of their subject wants there: those whose
 * turn has not come, or will not. Asked only of what an open or imperfect rollout did not assign.
 * @param subjects - by `keyText` of their rows.
 */
export async function findOutOfSync(
  table: Table,
  syncs: readonly SyncRow[],
  subjects: ReadonlyMap<string, SubjectRow>,
): Promise<ReadonlyMap<string, OutOfSync>> {
  const asked = syncs.flatMap((sync) => {
    const status = subjects.get(keyText(subjectRowKey(sync.subject)))?.status;
    const number = status?.rollout;
    if (number === undefined || status?.state === "Complete" || status?.state === "Deleting") return [];
    return isReady(sync) && sync.desired.rollout !== number
      ? [{ sync, rollout: keys.rollout(sync.subject, number) }]
      : [];
  });
  if (asked.length === 0) return new Map();
  const rows = await readDistinct(table, [
    ...asked.map(({ rollout }) => rollout),
    ...asked.map(({ sync }) => keys.fleet(sync.cluster)),
  ]);
  const planned = asked.flatMap(({ sync, rollout: key }) => {
    const rollout = rows.get(keyText(key));
    const cluster = rows.get(keyText(keys.fleet(sync.cluster)));
    if (rollout?.type !== "Rollout" || cluster?.type !== "Fleet") return [];
    const template = rollout.plan.templates.find(({ name }) => syncName(sync.subject, name) === sync.name);
    if (template === undefined) return [];
    return [{ sync, rollout, template, input: inputOf(template, cluster) }];
  });
  const renderings = await readDistinct(
    table,
    planned.flatMap(({ input }) => ("problem" in input ? [] : [keys.rendering(inputDigest(input))])),
  );
  const found = new Map<string, OutOfSync>();
  for (const { sync, rollout, template, input } of planned) {
    const rendering =
      "problem" in input
        ? { problem: input.problem }
        : partsOf(renderings.get(keyText(keys.rendering(inputDigest(input)))));
    const behind = outOfSync(sync, wantedBy(rollout, template, rendering));
    if (behind !== undefined) found.set(keyText(sync), behind);
  }
  return found;
}

function wantedBy(
  rollout: RolloutRow,
  template: PlannedTemplate,
  rendering: Pick<WantedRendering, "renderDigest" | "problem">,
): WantedRendering {
  const { revision, apply } = template;
  return { revision, apply, rollout: rollout.number, phase: rollout.phase, ...rendering };
}

function partsOf(row: RenderingRow | undefined): Pick<WantedRendering, "renderDigest" | "problem"> {
  if (row?.state === "Failed") return { problem: row.failure?.message ?? "no reason given" };
  return row?.state === "Done" && row.digest !== undefined ? { renderDigest: row.digest } : {};
}

async function readDistinct<Type extends RowType>(table: Table, wanted: readonly RowKeyOf<Type>[]) {
  const distinct = [...new Map(wanted.map((key) => [keyText(key), key])).values()];
  const rows = await table.getMany(distinct, { newer: "kept" });
  return new Map(rows.filter((row) => !isNewer(row)).map((row) => [keyText(row), row]));
}

/** The row of what a user wrote, that a Sync on a cluster comes from. */
export function subjectRowKey(subject: Subject): RowKeyOf<Subject["kind"]> {
  return keys.object(subject.namespace, subject.kind, subject.name);
}
