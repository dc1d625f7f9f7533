/** Takes targets out of the stage runs in progress, by name or by label. */
import type { ApiPorts } from "#functions/api/request/api-ports.ts";
import { labelSelection } from "#functions/api/request/label-selection.ts";
import { refusal } from "#functions/api/request/refusal.ts";
import { registered } from "#functions/api/request/registered.ts";
import { withGateActs } from "#functions/api/write/gate-verbs.ts";
import type { Facts, RolloutRequest } from "#functions/api/write/rollout-verb.ts";
import { storedList } from "#shared/adapters/stored-list.ts";
import { defined } from "#shared/base/defined.ts";
import { matchesSelector } from "#shared/fleet/kinds/cluster-selection.ts";
import { isInGates } from "#shared/fleet/rollout/bake.ts";
import { skipOf } from "#shared/fleet/rollout/gate-acts.ts";
import { refOf, stageRunKey } from "#shared/fleet/rollout/stage-runs.ts";
import type { Operations, Skip } from "#shared/fleet/rows/object-rows.ts";
import type { SnapshotTarget, StageRunRow, TargetRow } from "#shared/fleet/rows/rollout-rows.ts";
import { isOfType } from "#shared/fleet/rows/stored-row.ts";

type Body = Extract<RolloutRequest, { verb: "skip" }>["body"];

/** The targets that the request names, by the `stageRunKey` of their stage run. Those without any are left out. */
export async function namedTargets(
  { table, blobs }: Pick<ApiPorts, "table" | "blobs">,
  stageRuns: ReadonlyMap<string, StageRunRow>,
  { cluster, clusters }: Body,
): Promise<ReadonlyMap<string, readonly string[]>> {
  const selection = labelSelection(clusters);
  const selected = selection === undefined ? [] : await registered(table);
  const names = new Set(
    selection === undefined
      ? [cluster]
      : selected.filter(({ labels }) => matchesSelector(selection.selector, labels)).map(({ name }) => name),
  );
  const found = await Promise.all(
    [...stageRuns].map(async ([key, { pages }]) => {
      const lists = await Promise.all(pages.map((page) => storedList<SnapshotTarget>(blobs, page.key)));
      const own = lists.flat().map((target) => target.cluster);
      return [key, own.filter((name) => names.has(name))] as const;
    }),
  );
  return new Map(found.filter(([, own]) => own.length > 0));
}

/**
 * Each stage run in progress with targets that the request names gets its own act.
 * @throws StarlingError `BadRequest`, `NotATarget` for clusters that no stage run in progress can be without.
 */
export function decideSkip(facts: Facts<"skip">): Operations | undefined {
  const { stageRuns, named, body, act, object, row, rows, rolloutState } = facts;
  const { cluster } = body;
  const clusters = labelSelection(body.clusters);
  const runs = [...stageRuns].flatMap(([key, stageRun]) => (named.has(key) ? [stageRun] : []));
  const what = cluster === undefined ? `no cluster that ${body.clusters} selects` : `cluster ${cluster} is not`;
  const field = cluster === undefined ? "clusters" : "cluster";
  if (runs.length === 0) {
    const is = cluster === undefined ? `${what} is` : what;
    throw refusal(
      "NotATarget",
      `${field}: ${is} a target of a stage run in progress of ${object}; ${inProgress(facts)}`,
    );
  }
  const open = runs.filter((stageRun) => !isInGates(stageRun));
  if (open.length === 0) {
    const [{ rollout, stage, phase } = runs[0] as StageRunRow] = runs;
    const remedy = "starling rollout promote passes it, and starling rollout reject ends it";
    throw refusal(
      "NotATarget",
      `${field}: the gates of rollout ${rollout} in stage ${stage} have begun (${phase}), and are about every target; ${remedy}`,
    );
  }
  const target = cluster === undefined ? undefined : targetIn(rows, open);
  if (target !== undefined && (target.state === "Succeeded" || target.state === "Unchanged")) {
    const remedy = "starling cordon keeps later changes from it";
    throw refusal("NotATarget", `cluster: ${cluster} has rollout ${target.stageRun.rollout} already; ${remedy}`);
  }
  if (target?.state === "Skipped" && target.takenOut !== true)
    throw refusal("NotATarget", `cluster: ${cluster} is Skipped already: ${target.reason}`);
  const entry = rows.find((one) => isOfType(one, "Fleet"));
  const isNew = ({ rollout, stage }: StageRunRow) =>
    entry === undefined ||
    rolloutState === undefined ||
    skipOf(row.operations, { rollout, stage }, { cluster: entry, rolloutState }) === undefined;
  const acts = open.filter(isNew).map(({ rollout, stage }, index): Skip => {
    const number = act.number + index;
    return { ...act, number, verb: "skip", rollout, stage, ...defined({ cluster, clusters }) };
  });
  return acts.length === 0 ? undefined : withGateActs(facts, acts);
}

function targetIn(rows: Facts<"skip">["rows"], runs: readonly StageRunRow[]): TargetRow | undefined {
  const keys = new Set(runs.map((run) => stageRunKey(refOf(run))));
  return rows.filter((row) => isOfType(row, "Target")).find(({ stageRun }) => keys.has(stageRunKey(stageRun)));
}

/** The stage runs that a skip could name targets of. */
function inProgress({ stageRuns }: Pick<Facts<"skip">, "stageRuns">): string {
  const texts = [...stageRuns.values()].map(({ rollout, stage }) => `rollout ${rollout} in stage ${stage}`);
  return texts.length === 0 ? "none is in progress" : `in progress: ${texts.join(", ")}`;
}
