import { expect } from "vitest";
import { legKey } from "#shared/fleet/rollout/legs.ts";
import { isDisabledFor } from "#shared/fleet/rollout/override.ts";
import { relationOf, stageOf } from "#shared/fleet/rollout/plan.ts";
import { syncName } from "#shared/fleet/rows/keys.ts";
import type { FleetRow } from "#shared/fleet/rows/object-rows.ts";
import type { ArrivalRow, ContentRow, LegRow, TargetRow } from "#shared/fleet/rows/rollout-rows.ts";
import { stateOf } from "#shared/fleet/rows/state-of.ts";
import type { SyncRow } from "#shared/fleet/rows/sync-row.ts";
import type { PlannerModel } from "#test/support/planner-model/planner-model.ts";
import { subject } from "#test/support/planner-world.ts";

/** What a group says of its clusters when everything is quiet is what every one of them shows. */
export async function expectTrueCounts(model: PlannerModel): Promise<void> {
  // What was seen a moment ago is believed until an index has had time.
  model.world.advanceClock(60);
  await model.plan({});
  const group = model.watch.group();
  if (group === undefined || group.operations.deletion !== undefined) return;
  const fleet = model.world.rows<FleetRow>("Fleet").filter(({ labels }) => labels.fleet === "web");
  const { selected = 0, ...counts } = group.status.clusters ?? { ready: 0, failed: 0, unreachable: 0 };
  expect(
    Object.values(counts).reduce((sum, count) => sum + count, 0),
    "they sum to who is selected",
  ).toBe(selected);
  expect(selected, "who is selected").toBe(fleet.length);
  const seen = seenIn(model);
  const { templates, rollout } = relationOf(group);
  const shown = fleet.map((cluster) => {
    // It wants what its stage is on, as that has it: what was disabled for it then comes with another content.
    const { on, moving } = model.watch.unit()?.stages.find(({ name }) => name === stageOf(rollout, cluster)) ?? {};
    const wanted = on ?? moving?.content;
    const content = model.watch.rowsOf<ContentRow>("Content").find(({ number }) => number === wanted);
    const own = templates.filter(({ name }) => {
      const has = content?.plan.templates.find((template) => template.name === name);
      return content === undefined || (has !== undefined && !isDisabledFor(has, cluster));
    });
    const names = own.filter((template) => !isDisabledFor(template, cluster)).map(({ name }) => name);
    return shownBy(seen, cluster.name, new Set(names.map((name) => syncName(subject, name))));
  });
  const count = (state: string) => shown.filter((one) => one === state).length;
  expect({ failed: counts.failed, unreachable: counts.unreachable }, "who is not well").toEqual({
    failed: count("failed"),
    unreachable: count("unreachable"),
  });
  expect(counts.ready, "who is ready").toBeLessThanOrEqual(count("ready"));
}

interface Seen {
  /** By cluster. */
  readonly syncs: ReadonlyMap<string, readonly SyncRow[]>;
  /** Clusters whose arrival failed, or that could not be rendered. */
  readonly failed: ReadonlySet<string>;
}

function seenIn(model: PlannerModel): Seen {
  const arrivals = model.watch.rowsOf<ArrivalRow>("Arrival").filter(({ sk }) => sk.startsWith("ARRIVAL#failed#"));
  return {
    syncs: Map.groupBy(model.watch.rowsOf<SyncRow>("SyncOnCluster"), ({ cluster }) => cluster),
    failed: new Set([...arrivals.map(({ cluster }) => cluster), ...unrendered(model)]),
  };
}

/** The worst of its Syncs; what could not be rendered has failed, too. @param names - of those that it is to have. */
function shownBy(
  { syncs: all, failed }: Seen,
  cluster: string,
  names: ReadonlySet<string>,
): "ready" | "failed" | "unreachable" | "other" {
  const syncs = all.get(cluster) ?? [];
  const states = syncs.map(stateOf);
  if (failed.has(cluster) || states.includes("Failed")) return "failed";
  if (states.includes("Unreachable") || states.includes("Reachable")) return "unreachable";
  const ready = syncs.filter((row) => names.has(row.name) && stateOf(row) === "Ready");
  return ready.length === names.size ? "ready" : "other";
}

function unrendered(model: PlannerModel): readonly string[] {
  const current = (model.watch.unit()?.stages ?? []).flatMap(({ moving, passed }) => moving ?? passed ?? []);
  const legs = model.watch.rowsOf<LegRow>("Leg").filter((leg) => current.some((ref) => legKey(ref) === legKey(leg)));
  const orders = new Map(legs.map((leg) => [legKey(leg), new Set(leg.unrendered)]));
  const targets = model.watch.rowsOf<TargetRow>("Target");
  return targets.filter(({ leg, order }) => orders.get(legKey(leg))?.has(order)).map(({ cluster }) => cluster);
}
