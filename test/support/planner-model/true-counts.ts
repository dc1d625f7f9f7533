import { expect } from "vitest";
import { legKey } from "#shared/fleet/rollout/legs.ts";
import { relationOf } from "#shared/fleet/rollout/plan.ts";
import { syncName } from "#shared/fleet/rows/keys.ts";
import type { FleetRow } from "#shared/fleet/rows/object-rows.ts";
import type { ArrivalRow, LegRow, TargetRow } from "#shared/fleet/rows/rollout-rows.ts";
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
  const shown = fleet.map(({ name }) => shownBy(model, name));
  const count = (state: string) => shown.filter((one) => one === state).length;
  expect({ failed: counts.failed, unreachable: counts.unreachable }, "who is not well").toEqual({
    failed: count("failed"),
    unreachable: count("unreachable"),
  });
  expect(counts.ready, "who is ready").toBeLessThanOrEqual(count("ready"));
}

/** The worst of its Syncs; what could not be rendered has failed, too. */
function shownBy(model: PlannerModel, cluster: string): "ready" | "failed" | "unreachable" | "other" {
  const group = model.watch.group();
  const templates = group === undefined ? [] : relationOf(group).templates;
  const names = new Set(templates.map(({ name }) => syncName(subject, name)));
  const syncs = model.watch.rowsOf<SyncRow>("SyncOnCluster").filter((row) => row.cluster === cluster);
  const states = syncs.map(stateOf);
  const isFailed = model.watch
    .rowsOf<ArrivalRow>("Arrival")
    .some((row) => row.cluster === cluster && row.sk.startsWith("ARRIVAL#failed#"));
  if (isFailed || states.includes("Failed") || isUnrendered(model, cluster)) return "failed";
  if (states.includes("Unreachable") || states.includes("Reachable")) return "unreachable";
  const ready = syncs.filter((row) => names.has(row.name) && stateOf(row) === "Ready");
  return ready.length === names.size ? "ready" : "other";
}

function isUnrendered(model: PlannerModel, cluster: string): boolean {
  const current = (model.watch.unit()?.stages ?? []).flatMap(({ moving, passed }) => moving ?? passed ?? []);
  const legs = model.watch.rowsOf<LegRow>("Leg").filter((leg) => current.some((ref) => legKey(ref) === legKey(leg)));
  return legs.some((leg) =>
    model.watch
      .rowsOf<TargetRow>("Target")
      .some((row) => legKey(row.leg) === legKey(leg) && row.cluster === cluster && leg.unrendered.includes(row.order)),
  );
}
