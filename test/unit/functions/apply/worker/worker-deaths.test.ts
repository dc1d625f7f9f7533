/** The Sync to which a worker's death is attributed, and the Sync that has a pass alone after it. */
import { describe, expect, test } from "vitest";
import type { Lease } from "#functions/apply/lease/lease.ts";
import {
  begunAt,
  deathAmong,
  isUnsure,
  type SyncTurn,
  survived,
  takenApart,
} from "#functions/apply/worker/worker-deaths.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import type { ClusterRow, UserSyncRow } from "#shared/fleet/rows/object-rows.ts";
import type { Deaths, Held, SyncRow } from "#shared/fleet/rows/sync-row.ts";
import { clusterRow } from "#test/support/cluster-row.ts";
import { observedOf, syncRowOf } from "#test/support/sync-rows.ts";

const now = new Date("2026-11-21T09:00:00.000Z");
const desired = "sha256:aaa";
const suspended = {
  operations: { suspended: { by: "ana", at: "2026-11-20T08:00:00.000Z", number: 1 } },
} as UserSyncRow;
const held: Held = { name: "inc-1", by: "ana", reason: "INC-1", attempt: 1, since: "2026-11-21T08:00:00.000Z", at: "" };
const cluster: ClusterRow = { ...clusterRow(), status: { uid: "kube-system-1", conditions: [] } };

function turn(template: string, more: Partial<SyncRow> = {}, owner?: UserSyncRow): SyncTurn {
  return { row: { ...syncRowOf("c1", { template }), ...more }, owner };
}

function dead(alone: number, at = "2026-11-21T08:59:00.000Z"): { readonly deaths: Deaths } {
  return { deaths: { desired, at, alone } };
}

function leaseOf(death: Lease["death"]): Lease {
  const lease = { key: keys.lease("c1"), owner: "me", fence: 7, desired: 0, until: now, routine: {} };
  return death === undefined ? lease : { ...lease, death };
}

const noteOf = (name: string, alone = false) => ({ begun: { sync: `shop/web.${name}`, desired, attempt: 1, alone } });
const namesOf = (turns: readonly SyncTurn[]) => turns.map(({ row }) => row.name);

describe("the death of a worker", () => {
  const turns = [turn("a", {}, suspended), turn("b"), turn("c")];

  test.each<[string, Lease["death"], string | undefined]>([
    ["that did not happen has no Sync", undefined, undefined],
    ["without a note is attributed to the first Sync that is not suspended", {}, "web.b"],
    ["with a note is attributed to the Sync in the note", noteOf("c"), "web.c"],
    ["with a note of an unknown Sync is attributed to none", noteOf("gone"), undefined],
    [
      "at another rendering is attributed to none",
      { begun: { ...noteOf("c").begun, desired: "sha256:bbb" } },
      undefined,
    ],
  ])("a death %s", (_what, death, expected) => {
    const found = deathAmong(turns, leaseOf(death), { now, cluster });
    expect(found?.row.name).toBe(expected);
    const deaths = { desired, attempt: 1, at: now.toISOString(), alone: 0 };
    expect(found?.row.deaths).toEqual(expected === undefined ? undefined : deaths);
    expect([found?.observed, found?.held]).toEqual([undefined, undefined]);
  });

  test.each<[string, Partial<SyncRow>, boolean, number]>([
    ["the first death of a pass alone", {}, true, 1],
    ["the second death", dead(1), true, 2],
    ["a death in a pass with others, which another Sync may have caused", dead(2), false, 2],
    ["a death one day after the last", dead(2, "2026-11-20T08:59:00.000Z"), true, 1],
    ["a death at another rendering than the last", { deaths: { ...dead(2).deaths, desired: "sha256:bbb" } }, true, 1],
  ])("the count of deaths is right for %s, and the Sync is tried again", (_which, before, alone, expected) => {
    const found = deathAmong([turn("b", { ...before, held })], leaseOf(noteOf("b", alone)), { now, cluster });
    expect(found?.row.deaths).toEqual({ desired, attempt: 1, at: now.toISOString(), alone: expected });
    expect(found?.observed).toBeUndefined();
    // A freeze still holds the Sync.
    expect(found?.held).toEqual(held);
  });

  test("the third death alone is reported as WorkerDied, together with what was observed on this cluster before", () => {
    const observed = observedOf({ clusterUid: "kube-system-1", inventory: "sha256:i" });
    const found = deathAmong([turn("b", { ...dead(2), observed })], leaseOf(noteOf("b", true)), { now, cluster });
    expect(found?.row.deaths).toMatchObject({ alone: 3 });
    expect(found?.observed).toMatchObject({ phase: "Retrying", reason: "WorkerDied", fence: 7, inventory: "sha256:i" });
    expect(found?.observed?.message).toContain("it is tried again at 2026-11-21T09:05:00.000Z");
    const elsewhere = { ...observed, clusterUid: "another" };
    const anew = deathAmong([turn("b", { ...dead(2), observed: elsewhere })], leaseOf(noteOf("b", true)), {
      now,
      cluster,
    });
    expect(anew?.observed).toMatchObject({ reason: "WorkerDied" });
    expect(anew?.observed).not.toHaveProperty("inventory");
  });
});

describe("the turns of a pass", () => {
  test.each<[string, readonly SyncTurn[], boolean, readonly string[], boolean, boolean]>([
    ["are all Syncs that are due", [turn("a"), turn("b")], true, ["web.a", "web.b"], false, false],
    ["are none where no Sync is due", [], true, [], false, false],
    ["leave out a Sync on which a worker died", [turn("a"), turn("b", dead(0))], true, ["web.a"], false, true],
    ["are that Sync alone when it comes first", [turn("b", dead(0)), turn("a")], true, ["web.b"], true, true],
    ["are that Sync alone, and no other waits", [turn("b", dead(0))], true, ["web.b"], true, false],
    [
      "are the other Syncs when the pass has begun another before",
      [turn("b", dead(0)), turn("a")],
      false,
      ["web.a"],
      false,
      true,
    ],
    ["do not wait for a suspended Sync", [turn("a"), turn("b", dead(0), suspended)], true, ["web.a"], false, false],
    [
      "do not include a suspended Sync before it",
      [turn("a", {}, suspended), turn("b", dead(0))],
      true,
      ["web.b"],
      true,
      false,
    ],
  ])("the turns of a pass %s", (_what, turns, isFirst, expected, alone, isMore) => {
    const apart = takenApart(turns, { now, isFirst });
    expect({ ...apart, turns: namesOf(apart.turns) }).toEqual({ turns: expected, alone, isMore });
  });

  test("the note of a turn has the Sync's desired rendering, or its deletion", () => {
    const row = syncRowOf("c1", { template: "a" });
    expect(begunAt(row, { alone: true, isReported: true })).toEqual({
      sync: "shop/web.a",
      desired,
      alone: true,
      attempt: 1,
    });
    const { renderDigest: _, ...without } = row.desired;
    const deleting = { ...row, desired: { ...without, action: "delete" as const } };
    expect(begunAt(deleting, { alone: false, isReported: false })).toEqual({
      sync: "shop/web.a",
      desired: "delete",
      attempt: 1,
      alone: false,
    });
  });
});

describe("a death in the routine check", () => {
  const idle = (template: string) => turn(template, { observed: observedOf({}) });
  const inRoutine = { begun: { ...noteOf("a").begun, routine: true as const } };

  test.each<[string, readonly SyncTurn[], Lease["death"], boolean]>([
    ["without a note may belong to any idle Sync", [idle("a"), idle("b")], {}, true],
    [
      "with a note of the routine check may belong to any idle Sync",
      [turn("x"), idle("a"), idle("b")],
      inRoutine,
      true,
    ],
    ["belongs to the only idle Sync", [idle("a"), turn("x")], {}, false],
    ["with a note of a Sync belongs to that Sync", [idle("a"), idle("b")], noteOf("b"), false],
    [
      "without a note belongs to the first Sync when that one is not idle",
      [turn("x"), idle("a"), idle("b")],
      {},
      false,
    ],
    ["did not happen, so no Sync is unknown", [idle("a"), idle("b")], undefined, false],
  ])("the Sync of a death in the routine check may be unknown: the death %s", (_what, turns, death, expected) => {
    expect(isUnsure(turns, leaseOf(death))).toBe(expected);
  });

  test("the note of a turn of an idle Sync names the routine check, unless each Sync is reported by itself", () => {
    const { row } = idle("a");
    expect(begunAt(row, { alone: false, isReported: false })).toEqual(inRoutine.begun);
    expect(begunAt(row, { alone: false, isReported: true })).toEqual(noteOf("a").begun);
  });
});

test.each<[string, Partial<SyncRow>, boolean, Deaths | undefined]>([
  ["resets the count of deaths", dead(3), true, { ...dead(0).deaths }],
  ["clears the record a day later", dead(3, "2026-11-20T08:59:00.000Z"), true, undefined],
  ["and observed nothing keeps the record", dead(3), false, dead(3).deaths],
  ["has no record where no worker died", {}, true, undefined],
])("a worker that does not die %s", (_what, before, saw, expected) => {
  const { row } = turn("a", before);
  const outcome = survived(saw ? { row, observed: observedOf({}) } : { row }, now);
  expect(outcome.row.deaths).toEqual(expected);
});
