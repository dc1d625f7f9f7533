import { describe, expect, test } from "vitest";
import { endOfTurn, inTurn } from "#functions/apply/worker/plan-turns.ts";
import type { SyncRow } from "#shared/fleet/rows/sync-row.ts";
import { syncRowOf } from "#test/support/sync-rows.ts";

const at = (time: string) => `2026-11-21T${time}.000Z`;

/** A Sync that is assigned, and whose attempt no worker has begun. */
function assigned(template: string, assignedAt: string, seenAt?: string): SyncRow {
  const observed = seenAt === undefined ? {} : { observed: { attempt: 1, at: seenAt } };
  return syncRowOf("c1", { template, desired: { attempt: 2, assignedAt }, ...observed });
}

/** A Sync whose attempt has begun, and that is to be checked again at that time. */
function checked(template: string, nextAt: string, more: { reason?: string; tries?: number } = {}): SyncRow {
  return syncRowOf("c1", { template, observed: { phase: "Applying", nextAt, ...more } });
}

/** A Sync that is checked with the others of its cluster, for which the next check is due at eight. */
function idle(template: string, checkedAt: string): SyncRow {
  return syncRowOf("c1", { template, observed: { at: checkedAt } });
}

const routine = { 600: at("07:50:00") };

describe("the order of turns", () => {
  test.each<[string, readonly SyncRow[], readonly string[]]>([
    [
      "follows the time of waiting, whatever the names",
      [checked("a", at("09:02:00")), checked("b", at("09:00:00")), checked("c", at("09:01:00"))],
      ["web.b", "web.c", "web.a"],
    ],
    [
      "begins with assigned Syncs, however long others have waited",
      [checked("a", at("08:05:00")), assigned("b", at("09:04:00")), idle("c", at("07:00:00"))],
      ["web.b", "web.c", "web.a"],
    ],
    [
      "places an idle Sync by its cluster's routine check",
      [idle("a", at("06:00:00")), checked("b", at("07:59:00")), checked("c", at("09:00:00"))],
      ["web.b", "web.a", "web.c"],
    ],
    [
      "begins, of two that were assigned together, with the one that was not checked for longer",
      [assigned("a", at("09:00:00"), at("08:59:00")), assigned("b", at("09:00:00"), at("08:00:00"))],
      ["web.b", "web.a"],
    ],
    [
      "ends, of two that were assigned together, with the one that was never checked",
      [assigned("b", at("09:00:00"), at("08:59:00")), assigned("a", at("09:00:00"))],
      ["web.b", "web.a"],
    ],
    [
      "follows the names where everything else is equal",
      [assigned("b", at("09:00:00")), assigned("a", at("09:00:00"))],
      ["web.a", "web.b"],
    ],
  ])("the order of turns %s", (_name, due, expected) => {
    expect(inTurn(due, { now: new Date(at("09:10:00")), routine }).map(({ name }) => name)).toEqual(expected);
    expect(inTurn([...due].reverse(), { now: new Date(at("09:10:00")), routine }).map(({ name }) => name)).toEqual(
      expected,
    );
  });

  test("a Sync on which a worker died comes after the Syncs that are due, and five minutes later than otherwise", () => {
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
    ["has all the time that is left when no Sync waits behind it", checked("a", at("09:00:00")), 1, at("09:04:00")],
    ["has its share of the time when others wait", checked("a", at("09:00:00")), 4, at("09:01:00")],
    ["is at least 20 seconds long, for a slow cluster", checked("a", at("09:00:00")), 100, at("09:00:20")],
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
