import type { CallWork } from "#functions/rollout/read/begin-call.ts";
import { targetsWithInputs } from "#functions/rollout/read/inputs-before.ts";
import type { PlannerPorts } from "#functions/rollout/read/planner-ports.ts";
import { readClusters, readRenderings, valuedEntries } from "#functions/rollout/read/read-clusters.ts";
import { failedInPage, tryAgain } from "#functions/rollout/write/another-turn.ts";
import { askRenderings } from "#functions/rollout/write/ask-renderings.ts";
import { Transaction } from "#functions/rollout/write/transaction.ts";
import { readSnapshot } from "#shared/adapters/stored-list.ts";
import { allPages } from "#shared/base/all-pages.ts";
import { inParts } from "#shared/base/in-parts.ts";
import { isRenderFailure, type RenderingRequest } from "#shared/fleet/rollout/assignments.ts";
import { type Renderings, requestOf } from "#shared/fleet/rollout/decide.ts";
import type { Known } from "#shared/fleet/rollout/facts.ts";
import { catchUpRollout, newestOf } from "#shared/fleet/rollout/order.ts";
import { lastStageRunOf } from "#shared/fleet/rollout/stage-runs.ts";
import { keys, ranges } from "#shared/fleet/rows/keys.ts";
import type { RolloutRow, SnapshotTarget, TargetInput } from "#shared/fleet/rows/rollout-rows.ts";
import { isNewer, keyText, type RowKeyOf } from "#shared/fleet/rows/row.ts";

interface Unrendered {
  /** Number of the rollout or catch-up row. */
  readonly key: RowKeyOf<"Target" | "CatchUp">;
  readonly target: SnapshotTarget;
  readonly rollout: RolloutRow | undefined;
}

/**
 * Targets that could not be rendered for and could be by now get another turn, because nothing was assigned there. When
 * a row has expired and nothing renders it any more, the rendering is requested.
 */
export async function retryRendered(
  known: Known,
  { waiting: asked }: CallWork,
  ports: PlannerPorts,
): Promise<Transaction | undefined> {
  const transaction = new Transaction(known, ports.clock.now());
  for await (const page of unrendered(known, ports)) {
    const fresh = page.filter(({ key }) => !asked.has(keyText(key)));
    for (const { key } of fresh) asked.add(keyText(key));
    const renderings = await readRenderings(
      fresh.map(({ target }) => target),
      ports.table,
    );
    const requests = fresh.flatMap((one) => endedAmong(one, renderings));
    await askRenderings(transaction, { requests, renderings: renderings.rows }, ports);
    const rows = await ports.table.getMany(renderedAmong(fresh, renderings), { newer: "kept" });
    const failed = rows.filter((row) => !isNewer(row));
    await tryAgain(transaction, failed, ports.table);
    if (transaction.hasChanged() || transaction.messages.length > 0) return transaction;
  }
  return undefined;
}

/** Targets of the stages' last stage runs, and then catch-ups. */
async function* unrendered(known: Known, ports: PlannerPorts): AsyncGenerator<readonly Unrendered[]> {
  const { lists, table } = ports;
  const { owner, rolloutState, stageRuns, rollouts } = known;
  for (const stage of rolloutState.stages) {
    const stageRun = lastStageRunOf(stage, stageRuns);
    if (stageRun === undefined) continue;
    const snapshot = [...(await readSnapshot(stageRun, stageRun.unrendered, lists)).values()];
    const rollout = rollouts.get(stageRun.rollout);
    const targets = snapshot.map((target) => ({ key: keys.target(owner, stageRun, target.cluster), target, rollout }));
    yield* inParts(targets, failedInPage);
  }
  if (rolloutState.catchUps.failed === 0) return;
  const targetOf = targetsWithInputs(owner, ports);
  const range = { ...ranges.catchUps(owner, "failed"), limit: failedInPage, newer: "kept" } as const;
  for await (const page of allPages((start) => table.query({ ...range, ...start }))) {
    const failed = page.filter((row) => !isNewer(row)).filter(({ reason }) => isRenderFailure(reason));
    const found = await readClusters(known, { clusters: failed.map(({ cluster }) => cluster), with: ["syncs"] }, table);
    const valued = await valuedEntries(found.values(), table);
    const targets: Unrendered[] = [];
    for (const key of failed) {
      const { cluster, syncs = [] } = found.get(key.cluster) ?? {};
      const fleet = valued.get(key.cluster);
      const stage = rolloutState.stages.find(({ name }) => name === key.stage);
      const number = stage && (key.rollout ?? catchUpRollout(rolloutState, stage, newestOf(syncs)));
      if (cluster === undefined || fleet === undefined || number === undefined) continue;
      const rollout = rollouts.get(number) ?? (await table.get(keys.rollout(owner, number)));
      if (rollout !== undefined) targets.push({ key, target: await targetOf({ ...fleet, cluster }, rollout), rollout });
    }
    yield targets;
  }
}

/** Targets whose renderings all exist by now. A path without a value for a cluster has none later either. */
function renderedAmong(found: readonly Unrendered[], { rows }: Renderings): readonly Unrendered["key"][] {
  const isRendered = (input: TargetInput) =>
    "disabled" in input || ("digest" in input && rows.get(input.digest)?.state === "Done");
  return found.filter(({ target }) => target.inputs.every(isRendered)).map(({ key }) => key);
}

/** The renderings that the target waits for and that no row requests. */
function endedAmong({ target, rollout }: Unrendered, { rows, newer }: Renderings): readonly RenderingRequest[] {
  if (rollout === undefined) return [];
  return target.inputs.flatMap((input, index) =>
    !("digest" in input) || rows.has(input.digest) || newer.has(input.digest)
      ? []
      : requestOf({ rollout, target }, index),
  );
}
