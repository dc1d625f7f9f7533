import { describe, expect, test } from "vitest";
import { endOfTurn, inTurn } from "#functions/apply/worker/in-turn.ts";
import type { SyncRow } from "#shared/fleet/rows/sync-row.ts";
import { syncRowOf } from "#test/support/sync-rows.ts";

const at = (time: string) => `2026-11-21T${time}.000Z`;

/** Assigned and not begun. */
function assigned(template: string, assignedAt: string, seenAt?: string): SyncRow {
  const observed = seenAt === undefined ? {} : { observed: { attempt: 1, at: seenAt } };
  return syncRowOf("c1", { template, desired: { attempt: 2, assignedAt }, ...observed });
}

/** Begun, and to be looked at again at a time. */
function checked(template: string, nextAt: string, more: { reason?: string; tries?: number } = {}): SyncRow {
  return syncRowOf("c1", { template, observed: { phase: "Applying", nextAt, ...more } });
}

/** Looked at with the others of its cluster, which come around at eight. */
function resting(template: string, lookedAt: string): SyncRow {
  return syncRowOf("c1", { template, observed: { at: lookedAt } });
}

const routine = { 600: at("07:50:00") };

describe("turns", () => {
  test.each<[string, readonly SyncRow[], readonly string[]]>([
    [
      "come by how long they are waited for, whatever the names",
      [checked("a", at("09:02:00")), checked("b", at("09:00:00")), checked("c", at("09:01:00"))],
      ["web.b", "web.c", "web.a"],
    ],
    [
      "come first for what was assigned, however long others have waited",
      [checked("a", at("08:05:00")), assigned("b", at("09:04:00")), resting("c", at("07:00:00"))],
      ["web.b", "web.c", "web.a"],
    ],
    [
      "come for what is at rest when the routine of its cluster does",
      [resting("a", at("06:00:00")), checked("b", at("07:59:00")), checked("c", at("09:00:00"))],
      ["web.b", "web.a", "web.c"],
    ],
    [
      "come, of two that were assigned together, first for the one that was not seen for longer",
      [assigned("a", at("09:00:00"), at("08:59:00")), assigned("b", at("09:00:00"), at("08:00:00"))],
      ["web.b", "web.a"],
    ],
    [
      "come, of two that were assigned together, last for the one that was never seen",
      [assigned("b", at("09:00:00"), at("08:59:00")), assigned("a", at("09:00:00"))],
      ["web.b", "web.a"],
    ],
    [
      "come by name where all else is equal",
      [assigned("b", at("09:00:00")), assigned("a", at("09:00:00"))],
      ["web.a", "web.b"],
    ],
  ])("%s", (_name, due, expected) => {
    expect(inTurn(due, { now: new Date(at("09:10:00")), routine }).map(({ name }) => name)).toEqual(expected);
    expect(inTurn([...due].reverse(), { now: new Date(at("09:10:00")), routine }).map(({ name }) => name)).toEqual(
      expected,
    );
  });

  test("come, for one at which a worker died, after what is due, and 5 min later than else", () => {
    const dead = (time: string): SyncRow => ({
      ...checked("a", at("09:00:00")),
      deaths: { desired: "sha256:aaa", at: at(time), alone: 0 },
    });
    const order = (row: SyncRow, other: string, clock = at("09:20:00")) =>
      inTurn([row, checked("b", at(other))], { now: new Date(clock), routine }).map(({ name }) => name);
    expect(order(dead("09:10:00"), "09:14:59")).toEqual(["web.b", "web.a"]);
    expect(order(dead("09:10:00"), "09:15:01")).toEqual(["web.a", "web.b"]);
    expect(order(dead("08:00:00"), "09:04:59")).toEqual(["web.b", "web.a"]);
    expect(order(dead("08:00:00"), "09:05:01")).toEqual(["web.a", "web.b"]);
    expect(order(dead("09:10:00"), "09:14:59", "2026-11-22T09:10:01.000Z")).toEqual(["web.a", "web.b"]);
    const another: SyncRow = { ...dead("09:10:00"), deaths: { desired: "sha256:bbb", at: at("09:10:00"), alone: 2 } };
    expect(order(another, "09:00:01")).toEqual(["web.a", "web.b"]);
  });

  const now = new Date(at("09:00:00"));
  const deadline = new Date(at("09:04:00"));
  const short = { reason: "OutOfTime" };

  test.each<[string, SyncRow, number, string]>([
    ["has all that is left when nobody waits behind it", checked("a", at("09:00:00")), 1, at("09:04:00")],
    ["has its share when others wait", checked("a", at("09:00:00")), 4, at("09:01:00")],
    ["is not too short for a slow cluster", checked("a", at("09:00:00")), 100, at("09:00:20")],
    [
      "is longer when the last was too short",
      checked("a", at("09:00:00"), { ...short, tries: 0 }),
      100,
      at("09:00:40"),
    ],
    ["grows to the whole run", checked("a", at("09:00:00"), { ...short, tries: 9 }), 100, at("09:04:00")],
    [
      "begins small with a new attempt",
      syncRowOf("c1", { desired: { attempt: 2 }, observed: { attempt: 1, ...short, tries: 9 } }),
      100,
      at("09:00:20"),
    ],
  ])("a turn %s", (_name, row, waiting, expected) => {
    expect(endOfTurn(row, { now, deadline, waiting }).toISOString()).toBe(expected);
  });
});
