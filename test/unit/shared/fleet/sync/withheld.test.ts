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
    uid: "uid-of-the-owner",
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
  ["as assigned", {}, undefined],
  ["that is paused", { row: paused }, "Paused"],
  ["that is paused, suspended and frozen", { row: paused, owner: suspended, freezeState: frozen }, "Paused"],
  ["that a freeze paused", { row: betweenTurns }, "Waiting"],
  ["that is suspended", { owner: suspended }, "Suspended"],
  ["that is frozen", { freezeState: frozen }, "Frozen"],
  ["to be deleted, without a template", { row: deleting, owner: group(["other"]) }, undefined],
  ["to be deleted, whose template is back", { row: deleting, owner: group(["other", "app"]) }, "Withdrawn"],
  [
    "to be deleted by a rollback as people asked, although its template is there",
    { row: { ...deleting, desired: { ...deleting.desired, asked: true } }, owner: group(["other", "app"]) },
    undefined,
  ],
  ["to be deleted, of a suspended group", { row: deleting, owner: suspended }, "Suspended"],
  ["to be deleted with its group", { row: deleting, owner: group(["app"], { deletion }) }, undefined],
  [
    "to be deleted, although its group is orphaned",
    { row: deleting, owner: group([], { deletion: { ...deletion, cascade: "orphan" } }) },
    "Withdrawn",
  ],
  ["to be deleted, without a group", { row: deleting, owner: undefined }, undefined],
  ["to be deleted, and paused", { row: { ...deleting, paused: hold }, owner: group([]) }, "Paused"],
])("a Sync %s is not written for the reason: %s", (_name, more, reason) => {
  expect(withheldFrom(1, standing(more), now)?.reason).toBe(reason);
});

test("a user's Sync is not deleted while its document exists", () => {
  const own = { namespace: "shop", kind: "Sync" as const, name: "blog" };
  const row = { ...deleting, ...keys.sync("c1", "shop", "blog"), name: "blog", owner: own };
  const owner = { ...group([]), ...keys.object("shop", "Sync", "blog"), type: "Sync", name: "blog" } as OwnerRow;
  expect(withheldFrom(1, standing({ row, owner }), now)?.reason).toBe("Withdrawn");
  const going = { ...owner, operations: { deletion } } as OwnerRow;
  expect(withheldFrom(1, standing({ row, owner: going }), now)).toBeUndefined();
});

test("the message of a paused Sync says why, and how to give it another turn", () => {
  expect(withheldFrom(1, standing({ row: paused }), now)?.message).toBe(
    "paused (DeadlineExceeded); a newer rollout tries again; to try again now: starling reconcile syncgroup/web -n shop",
  );
});

test("a Sync whose rollout was rejected before its begin waits for another one", () => {
  const row = { ...paused, paused: { ...hold, reason: "rollout 2 rejected by ana", rejected: true as const } };
  expect(withheldFrom(1, standing({ row }), now)).toEqual({
    reason: "Waiting",
    message: "waits for another rollout: rollout 2 rejected by ana",
  });
});
