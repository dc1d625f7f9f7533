import { expect, test } from "vitest";
import { keys } from "#shared/fleet/rows/keys.ts";
import type { Operations, OwnerRow } from "#shared/fleet/rows/object-rows.ts";
import { rowSchema } from "#shared/fleet/rows/row.ts";
import { type Standing, withheldFrom } from "#shared/fleet/sync/withheld.ts";
import { clusterRow } from "#test/support/cluster-row.ts";
import { syncRowOf } from "#test/support/sync-rows.ts";

const at = "2026-11-21T08:00:00.000Z";
const now = new Date(at);
const hold = { reason: "DeadlineExceeded", at };
const act = { by: "ana", at, number: 1 };
const deletion = { ...act, cascade: "delete" as const };
const freeze = { name: "inc-1", by: "ana", at, reason: "INC-1" };

function group(templates: readonly string[], operations: Operations = {}): OwnerRow {
  return {
    ...keys.object("shop", "SyncGroup", "web"),
    type: "SyncGroup",
    schema: rowSchema,
    version: 1,
    uid: "uid-of-the-subject",
    namespace: "shop",
    name: "web",
    spec: { templates: templates.map((name) => ({ name })) },
    operations,
    status: { conditions: [] },
  } as unknown as OwnerRow;
}

const standing = (more: Partial<Standing>): Standing => ({
  row: syncRowOf("c1"),
  owner: group(["app"]),
  cluster: clusterRow(),
  freezeState: { freezes: [], lifted: [] },
  ...more,
});
const paused = { ...syncRowOf("c1"), paused: hold };
const betweenTurns = { ...syncRowOf("c1"), paused: { ...hold, freeze: "inc-1" } };
const deleting = syncRowOf("c1", { desired: { action: "delete" } });
const frozen = { freezes: [freeze], lifted: [] };
const suspended = group(["app"], { suspended: act });

test.each<[string, Partial<Standing>, string | undefined]>([
  ["what is assigned is written", {}, undefined],
  ["what is parked is not", { row: paused }, "Paused"],
  ["what is parked stays so, whatever else holds it", { row: paused, owner: suspended, freezeState: frozen }, "Paused"],
  ["what waits for its turn is not", { row: betweenTurns }, "Waiting"],
  ["what is suspended is not", { owner: suspended }, "Suspended"],
  ["what is frozen is not", { freezeState: frozen }, "Frozen"],
  ["what is to go and no template wants is deleted", { row: deleting, owner: group(["other"]) }, undefined],
  ["what a template wants again is not", { row: deleting, owner: group(["other", "app"]) }, "Withdrawn"],
  ["what a suspended one wants waits for that", { row: deleting, owner: suspended }, "Suspended"],
  ["what goes with its group is deleted", { row: deleting, owner: group(["app"], { deletion }) }, undefined],
  [
    "what stays when its group goes is not",
    { row: deleting, owner: group([], { deletion: { ...deletion, cascade: "orphan" } }) },
    "Withdrawn",
  ],
  ["what nobody wants any more is deleted", { row: deleting, owner: undefined }, undefined],
  ["a parked deletion stays", { row: { ...deleting, paused: hold }, owner: group([]) }, "Paused"],
])("%s", (_name, more, reason) => {
  expect(withheldFrom(1, standing(more), now)?.reason).toBe(reason);
});

test("what a user wrote is not deleted while it is there", () => {
  const own = { namespace: "shop", kind: "Sync" as const, name: "blog" };
  const row = { ...deleting, ...keys.sync("c1", "shop", "blog"), name: "blog", owner: own };
  const owner = { ...group([]), ...keys.object("shop", "Sync", "blog"), type: "Sync", name: "blog" } as OwnerRow;
  expect(withheldFrom(1, standing({ row, owner }), now)?.reason).toBe("Withdrawn");
  const going = { ...owner, operations: { deletion } } as OwnerRow;
  expect(withheldFrom(1, standing({ row, owner: going }), now)).toBeUndefined();
});

test("who reads that it is parked reads why, and what gives it another turn", () => {
  expect(withheldFrom(1, standing({ row: paused }), now)?.message).toBe(
    "paused (DeadlineExceeded); a newer rollout gives it another turn, or: starling reconcile syncgroup/web -n shop",
  );
});
