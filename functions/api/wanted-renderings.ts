import { readClusterValues } from "#shared/adapters/cluster-values.ts";
import { effectiveValues } from "#shared/fleet/effective-values.ts";
import { legOf } from "#shared/fleet/rollout/feed.ts";
import { legKey } from "#shared/fleet/rollout/legs.ts";
import { overridden } from "#shared/fleet/rollout/override.ts";
import { inputDigest, inputOf, relationOf, stageOf } from "#shared/fleet/rollout/plan.ts";
import { keys, type Subject, syncName } from "#shared/fleet/rows/keys.ts";
import type { SubjectRow, SubjectState } from "#shared/fleet/rows/object-rows.ts";
import type { RenderingRow } from "#shared/fleet/rows/rollout-rows.ts";
import { isNewer, keyText, type RowKeyOf } from "#shared/fleet/rows/row.ts";
import type { RowType } from "#shared/fleet/rows/stored-row.ts";
import type { SyncRow } from "#shared/fleet/rows/sync-row.ts";
import { isReady, type OutOfSync, outOfSync, type WantedRendering } from "#shared/fleet/sync/sync-state.ts";
import type { Table } from "#shared/ports.ts";

/** Every cluster has what is wanted, or nothing is. */
const nothingWanted: ReadonlySet<SubjectState> = new Set(["Complete", "Drifted", "Deleting"]);

/**
 * Which of these Syncs are ready with something else than their cluster wants: what its stage moves to, or is on. Asked
 * only where not all is complete.
 * @param subjects - by `keyText` of their rows.
 */
export async function findOutOfSync(
  table: Table,
  syncs: readonly SyncRow[],
  subjects: ReadonlyMap<string, SubjectRow>,
): Promise<ReadonlyMap<string, OutOfSync>> {
  const asked = syncs.flatMap((sync) => {
    const subject = subjects.get(keyText(subjectRowKey(sync.subject)));
    const state = subject?.status.state;
    if (subject?.status.rollout === undefined || (state !== undefined && nothingWanted.has(state))) return [];
    return isReady(sync) ? [{ sync, subject }] : [];
  });
  if (asked.length === 0) return new Map();
  const first = await readDistinct(
    table,
    asked.flatMap(({ sync }) => [keys.unit(sync.subject), keys.fleet(sync.cluster)]),
  );
  const staged = asked.flatMap(({ sync, subject }) => {
    const unit = first.get(keyText(keys.unit(sync.subject)));
    const cluster = first.get(keyText(keys.fleet(sync.cluster)));
    if (unit?.type !== "Unit" || cluster?.type !== "Fleet") return [];
    const name = stageOf(relationOf(subject).rollout, cluster);
    const stage = unit.stages.find((one) => one.name === name);
    const number = stage?.moving?.content ?? stage?.on;
    // One that came to a stage which is behind keeps what it has until that catches up.
    if (stage === undefined || number === undefined || sync.desired.rollout >= number) return [];
    return [{ sync, cluster, stage, content: keys.content(sync.subject, number) }];
  });
  const values = staged.length === 0 ? [] : await readClusterValues(table);
  const second = await readDistinct(table, [
    ...staged.map(({ content }) => content),
    ...staged.map(({ sync }) => arrivalKey(sync)),
    ...staged.flatMap(({ sync, stage: { moving } }) => (moving === undefined ? [] : [keys.leg(sync.subject, moving)])),
  ]);
  const legs = new Map([...second.values()].filter((row) => row.type === "Leg").map((leg) => [legKey(leg), leg]));
  const planned = staged.flatMap(({ sync, cluster, stage, content: key }) => {
    const content = second.get(keyText(key));
    if (content?.type !== "Content") return [];
    const template = content.plan.templates.find(({ name }) => syncName(sync.subject, name) === sync.name);
    if (template === undefined) return [];
    const arrives = second.has(keyText(arrivalKey(sync)));
    const place: WantedRendering["place"] = legOf(stage, legs)?.phase ?? (arrives ? "arrival" : undefined);
    const input = inputOf(template, { ...cluster, values: effectiveValues(cluster, values) });
    // What it has it keeps for itself, when its turn comes.
    if ("disabled" in input) return [];
    const special = "problem" in input ? template : overridden(template, input.overrides);
    return [{ sync, content, place, template: special, input }];
  });
  const renderings = await readDistinct(
    table,
    planned.flatMap(({ input }) => ("problem" in input ? [] : [keys.rendering(inputDigest(input))])),
  );
  const found = new Map<string, OutOfSync>();
  for (const { sync, content, place, template, input } of planned) {
    const rendering =
      "problem" in input
        ? { problem: input.problem }
        : partsOf(renderings.get(keyText(keys.rendering(inputDigest(input)))));
    const { revision, apply } = template;
    const behind = outOfSync(sync, { revision, apply, rollout: content.number, place, ...rendering });
    if (behind !== undefined) found.set(keyText(sync), behind);
  }
  return found;
}

function arrivalKey({ subject, cluster }: SyncRow) {
  return keys.arrival(subject, "waiting", cluster);
}

function partsOf(row: RenderingRow | undefined): Pick<WantedRendering, "renderDigest" | "problem"> {
  if (row?.state === "Failed") return { problem: row.failure?.message ?? "no reason given" };
  return row?.state === "Done" && row.digest !== undefined ? { renderDigest: row.digest } : {};
}

export async function readDistinct<Type extends RowType>(table: Table, wanted: readonly RowKeyOf<Type>[]) {
  const distinct = [...new Map(wanted.map((key) => [keyText(key), key])).values()];
  const rows = await table.getMany(distinct, { newer: "kept" });
  return new Map(rows.filter((row) => !isNewer(row)).map((row) => [keyText(row), row]));
}

/** The row of what a user wrote, that a Sync on a cluster comes from. */
export function subjectRowKey(subject: Subject): RowKeyOf<Subject["kind"]> {
  return keys.object(subject.namespace, subject.kind, subject.name);
}
