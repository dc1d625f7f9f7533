import type { StoredMember } from "#functions/rollout/fleet.ts";
import type { PlannerPorts } from "#functions/rollout/planner-ports.ts";
import type { Known } from "#functions/rollout/read-subject.ts";
import { recallMembers } from "#functions/rollout/recall-members.ts";
import { inputDigest } from "#shared/fleet/rollout/plan.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import type { RenderingRow, RolloutRow } from "#shared/fleet/rows/rollout-rows.ts";
import type { Table } from "#shared/ports.ts";

/** Of clusters that could be assigned nothing, because they could not be rendered for: those that could be by now. */
export async function renderedSince(
  unassigned: readonly string[],
  members: readonly StoredMember[],
  table: Table,
): Promise<ReadonlySet<string>> {
  const names = new Set(unassigned);
  const wanted = members.flatMap(({ cluster, inputs }) => {
    const digests = inputs.flatMap((input) => ("problem" in input ? [] : [inputDigest(input)]));
    return names.has(cluster) && digests.length > 0 && digests.length === inputs.length ? [{ cluster, digests }] : [];
  });
  const inputs = wanted.flatMap(({ digests }) => digests);
  const renderings = await readRenderings(inputs, table);
  const isDone = (digest: string) => renderings.get(digest)?.state === "Done";
  return new Set(wanted.filter(({ digests }) => digests.every(isDone)).map(({ cluster }) => cluster));
}

/** True when a rollout was halted by nothing but renderings that failed, and all of them are there by now. */
export async function isMended(known: Known, rollout: RolloutRow, ports: PlannerPorts): Promise<boolean> {
  if (known.row.operations.suspended !== undefined || !known.desired.ok) return false;
  const { phase, stages, unassigned = [], members } = rollout;
  const failed = stages.reduce((sum, { counts }) => sum + counts.Failed, 0);
  if (phase !== "Halted" || failed === 0 || unassigned.length !== failed) return false;
  const recalled = await recallMembers(members, known.subject, ports);
  const rendered = await renderedSince(unassigned, recalled.members, ports.table);
  return rendered.size === failed;
}

/** By their input. */
export async function readRenderings(
  inputs: readonly string[],
  table: Table,
): Promise<ReadonlyMap<string, RenderingRow>> {
  const distinct = [...new Set(inputs)];
  if (distinct.length === 0) return new Map();
  const rows = await table.getMany(
    distinct.map((input) => keys.rendering(input)),
    { newer: "kept" },
  );
  return new Map(rows.filter((row) => row.type === "Rendering").map((row) => [row.input, row]));
}
