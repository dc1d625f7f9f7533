/** Reads what a rollback would do to objects, from stored snapshots and renderings: no cluster and no Sync is read. */

import type { ApiPorts } from "#functions/api/request/api-ports.ts";
import { storedList } from "#shared/adapters/stored-list.ts";
import { storedText } from "#shared/adapters/stored-text.ts";
import { allItems } from "#shared/base/all-pages.ts";
import { unlessLost } from "#shared/base/errors.ts";
import { canonicalJson } from "#shared/base/json.ts";
import { blobKeys } from "#shared/fleet/blob-keys.ts";
import {
  type AlikeClusters,
  type ObjectEffects,
  rollbackEffects,
  type SyncSides,
} from "#shared/fleet/forecast/rollback-effects.ts";
import { overridden } from "#shared/fleet/rollout/cluster-inputs.ts";
import type { RollbackPlan } from "#shared/fleet/rollout/rollback.ts";
import { isSameStageRun } from "#shared/fleet/rollout/stage-runs.ts";
import { keys, type Owner, ranges, syncName } from "#shared/fleet/rows/keys.ts";
import type {
  Plan,
  RenderingRow,
  RolloutRow,
  RolloutStateRow,
  SnapshotTarget,
  StageRunRow,
} from "#shared/fleet/rows/rollout-rows.ts";
import { isNewer } from "#shared/fleet/rows/row.ts";
import { decodeRendering, type Rendering } from "#shared/source/rendering.ts";

/** Limits of one answer: lists of 1000 clusters, sets of renderings, objects of all renderings, and effects. */
const mostPages = 40;
const mostAlike = 30;
const mostObjects = 20_000;
const mostEffects = 100;

export interface RollbackFacts {
  readonly owner: Owner;
  readonly rolloutState: RolloutStateRow;
  readonly plan: RollbackPlan;
  /** All that are kept. */
  readonly rollouts: readonly RolloutRow[];
}

export async function readRollbackEffects(
  ports: Pick<ApiPorts, "table" | "blobs">,
  facts: RollbackFacts,
): Promise<ObjectEffects> {
  const missed = new Map<string, number>();
  const miss = (why: string, clusters: number) => missed.set(why, (missed.get(why) ?? 0) + clusters);
  const all = await alikeIn(ports, facts, miss);
  const sorted = [...all.values()].sort((a, b) => b.clusters - a.clusters);
  for (const { clusters } of sorted.slice(mostAlike)) miss("they have renderings of their own", clusters);
  const chosen = sorted.slice(0, mostAlike);
  const renderings = await storedRenderings(ports, chosen);
  const alike: AlikeClusters[] = [];
  for (const { clusters, pairs } of chosen) {
    const sides = await Promise.all(pairs.map((pair) => renderings.sides(pair)));
    const unread = sides.find((side) => side === "unread" || side === "too large");
    if (unread === undefined)
      alike.push({ clusters, syncs: sides.flatMap((side) => (typeof side === "string" ? [] : [side])) });
    else if (unread === "unread") miss("a rendering is not stored any more", clusters);
    else miss("their renderings are too large", clusters);
  }
  const effects = rollbackEffects(alike);
  return {
    effects: effects.slice(0, mostEffects),
    more: Math.max(0, effects.length - mostEffects),
    notCompared: [...missed].map(([why, clusters]) => ({ clusters, why })),
  };
}

/** Both renderings of a template, or why they are not compared; `same`: the clusters have what they get. */
type Sides = SyncSides | "same" | "unread" | "too large";

/** Reads each rendering once, until they have too many objects. */
async function storedRenderings(
  { table, blobs }: Pick<ApiPorts, "table" | "blobs">,
  chosen: readonly Alike[],
): Promise<{ sides(pair: Pair): Promise<Sides> }> {
  const inputs = new Set(chosen.flatMap(({ pairs }) => pairs.flatMap(({ before, after }) => [before, after])));
  inputs.delete(undefined);
  const named = [...inputs].map((input = "") => keys.rendering(input));
  const rows = (await table.getMany(named, { newer: "kept" })).filter((row) => !isNewer(row));
  const made = new Map(rows.map((row) => [row.input, row]));
  const known = new Map<string, Promise<Rendering | undefined>>();
  let left = mostObjects;
  const read = (row: RenderingRow | undefined): Promise<Rendering | undefined> | "too large" => {
    if (row?.digest === undefined) return Promise.resolve(undefined);
    const { digest, objects = 0 } = row;
    if (!known.has(digest) && objects > left) return "too large";
    if (!known.has(digest)) left -= objects;
    const found = known.get(digest) ?? readRendering(blobs, digest);
    known.set(digest, found);
    return found;
  };
  return {
    async sides({ sync, before, after, prune }) {
      const [was, is] = [made.get(before ?? ""), made.get(after ?? "")];
      // Nothing was given that could not be rendered.
      if (was?.state === "Failed" || (was?.digest !== undefined && was.digest === is?.digest)) return "same";
      const [had, gets] = [before === undefined ? undefined : read(was), after === undefined ? undefined : read(is)];
      if (had === "too large" || gets === "too large") return "too large";
      const [old, then] = [await had, await gets];
      if ((before !== undefined && old === undefined) || (after !== undefined && then === undefined)) return "unread";
      return { sync, before: old, after: then, prune };
    },
  };
}

async function readRendering(blobs: ApiPorts["blobs"], digest: string): Promise<Rendering | undefined> {
  const text = await unlessLost(storedText(blobs, blobKeys.rendering(digest), blobKeys.rendering), () => undefined);
  return text === undefined ? undefined : decodeRendering(text);
}

/** One template of clusters: the inputs of its renderings. */
interface Pair {
  readonly sync: string;
  readonly before: string | undefined;
  readonly after: string | undefined;
  readonly prune: boolean;
}

interface Alike {
  readonly clusters: number;
  readonly pairs: readonly Pair[];
}

/** Clusters of the stages that go back, by what they have and what they get. */
async function alikeIn(
  { table, blobs }: Pick<ApiPorts, "table" | "blobs">,
  { owner, rolloutState, plan, rollouts }: RollbackFacts,
  miss: (why: string, clusters: number) => void,
): Promise<ReadonlyMap<string, Alike>> {
  const found = new Map<string, Alike>();
  const older = rollouts.find(({ number }) => number === plan.to);
  const gone = (number: number, clusters: number) => miss(`rollout ${number} is not stored any more`, clusters);
  if (older === undefined) {
    for (const { members } of plan.stages) gone(plan.to, members);
    return found;
  }
  const covered = new Set(plan.stages.map(({ name }) => name));
  const stages = rolloutState.stages.filter(({ name }) => covered.has(name));
  const updating = stages.flatMap(({ updatingTo }) => updatingTo ?? []);
  const refs = [...stages.flatMap(({ passed }) => passed ?? []), ...updating];
  const stored = await table.getMany(
    refs.map((ref) => keys.stageRun(owner, ref)),
    { newer: "kept" },
  );
  const runs = stored.filter((row) => !isNewer(row));
  for (const { passed, updatingTo, members } of stages)
    if (!runs.some((run) => isSameStageRun(run, passed) || isSameStageRun(run, updatingTo)))
      miss("their list is not stored any more", members);
  const of = { ...ranges.stageRuns(owner, plan.to), newer: "kept" } as const;
  const former = (await Array.fromAsync(allItems((start) => table.query({ ...of, ...start })))).filter(
    (row) => !isNewer(row),
  );
  let pages = mostPages;
  const targetsOf = async (run: StageRunRow) => {
    const lists: (readonly SnapshotTarget[])[] = [];
    for (const { key } of run.pages)
      if (pages-- > 0) lists.push(await unlessLost(storedList<SnapshotTarget>(blobs, key), () => []));
    return lists.flat();
  };
  const had = new Map<string, SnapshotTarget>();
  for (const run of former.toSorted((a, b) => a.snapshot - b.snapshot))
    for (const target of await targetsOf(run)) had.set(target.cluster, target);
  for (const run of runs) {
    const newer = rollouts.find(({ number }) => number === run.rollout);
    if (newer === undefined) gone(run.rollout, run.size);
    if (newer === undefined || newer.number === plan.to) continue;
    // Targets of a stage run in progress that were never checked, or are held back, got nothing of it.
    const begun = run.phase === "Passed" ? run.size : run.next;
    const held = new Set(run.holds.flatMap(({ clusters }) => clusters));
    const targets = (await targetsOf(run)).slice(0, begun);
    if (targets.length < begun)
      miss(pages < 0 ? "their list is too long" : "their list is not stored any more", begun - targets.length);
    for (const [order, target] of targets.entries()) {
      if (held.has(order)) continue;
      const before = had.get(target.cluster);
      if (before?.uid !== target.uid) {
        miss(`they did not have rollout ${plan.to}, and get it with their values of today`, 1);
        continue;
      }
      const pairs = pairsOf(owner, { target, plan: newer.plan }, { target: before, plan: older.plan }, plan);
      if (pairs.length === 0) continue;
      const key = canonicalJson(pairs.map((pair) => ({ ...pair, before: pair.before ?? "", after: pair.after ?? "" })));
      found.set(key, { pairs, clusters: (found.get(key)?.clusters ?? 0) + 1 });
    }
  }
  return found;
}

interface Given {
  readonly target: SnapshotTarget;
  readonly plan: Plan;
}

/** The templates of a cluster that differ. */
function pairsOf(owner: Owner, now: Given, then: Given, { stay }: Pick<RollbackPlan, "stay">): readonly Pair[] {
  const [had, gets] = [inputsOf(now), inputsOf(then)];
  return [...new Set([...had.keys(), ...gets.keys()])].flatMap((template): readonly Pair[] => {
    const [before, after] = [had.get(template), gets.get(template)];
    const isSame = before?.input === after?.input;
    if (isSame || (after === undefined && stay.includes(template))) return [];
    const sync = syncName(owner, template);
    return [{ sync, before: before?.input, after: after?.input, prune: after?.prune ?? true }];
  });
}

/** By template; one that the cluster does not get, or that cannot be rendered for it, is absent. */
function inputsOf({ target: { inputs }, plan: { templates } }: Given) {
  return new Map(
    templates.flatMap((template, index) => {
      const input = inputs[index];
      if (input === undefined || !("digest" in input)) return [];
      const { prune } = overridden(template, input.overrides).apply;
      return [[template.name, { input: input.digest, prune }] as const];
    }),
  );
}
