import { describe, expect, test } from "vitest";
import { later } from "#shared/fleet/rows/due.ts";
import type { FetchStart, SourceRow } from "#shared/fleet/rows/object-rows.ts";
import { decideFetch, isFetchedByAnother } from "#shared/fleet/sources/source-fetch.ts";

const now = new Date("2026-03-01T10:00:00.000Z");
const before = "2026-03-01T09:59:59.000Z";
const after = "2026-03-01T10:00:01.000Z";
const minutesAgo = (minutes: number) => later(now, -60 * minutes);
const me = { id: "me", now, secondsLeft: 60 };

const known: FetchStart = {
  revision: "main@sha1:1",
  generation: 1,
  id: "other",
  startedAt: "2026-03-01T09:50:00.000Z",
  until: before,
  starts: 1,
};

type Fetching = Pick<SourceRow, "generation" | "operations" | "status">;

function rowWith(fetch: Partial<FetchStart> | undefined, row: Partial<Fetching> = {}): Fetching {
  const status = { conditions: [], ...(fetch === undefined ? {} : { fetch: { ...known, ...fetch } }) };
  return { generation: 1, operations: {}, status, ...row };
}

const reconcile = { by: "me", at: "2026-03-01T09:00:00.000Z", number: 3 };

describe("a fetch", () => {
  test.each([
    ["of another invocation that may still run", rowWith({ until: after }), true],
    ["of another revision that may still run", rowWith({ revision: "main@sha1:0", until: after }), true],
    ["of a third start that may still run", rowWith({ starts: 3, until: after }), true],
    ["that cannot run any more", rowWith({ until: now.toISOString() }), false],
    ["of this invocation", rowWith({ id: "me", until: after }), false],
    ["for another spec", rowWith({ until: after }, { generation: 2 }), false],
    ["from before a reconcile", rowWith({ until: after }, { operations: { reconcile } }), false],
    ["that never started", rowWith(undefined), false],
  ])("a fetch %s is waited for: %s", (_legend, row, isAnother) => {
    expect(isFetchedByAnother(row, me)).toBe(isAnother);
  });

  const rows: readonly (readonly [legend: string, row: Fetching, decision: string, starts: number | undefined])[] = [
    ["that never started is started", rowWith(undefined), "start", 1],
    ["that has just timed out is started again", rowWith({ until: now.toISOString() }), "start", 2],
    ["that died twice is started again", rowWith({ starts: 2 }), "start", 3],
    ["that died three times pauses", rowWith({ starts: 3 }), "rest", undefined],
    [
      "that died three times, and has paused, is started again",
      rowWith({ starts: 3, until: minutesAgo(5) }),
      "start",
      4,
    ],
    ["that died four times pauses longer", rowWith({ starts: 4, until: minutesAgo(9.9) }), "rest", undefined],
    [
      "that died four times, and has paused, is started again",
      rowWith({ starts: 4, until: minutesAgo(10) }),
      "start",
      5,
    ],
    ["that died ten times pauses for six hours", rowWith({ starts: 10, until: minutesAgo(359) }), "rest", undefined],
    [
      "that died ten times is started again after six hours",
      rowWith({ starts: 10, until: minutesAgo(360) }),
      "start",
      11,
    ],
    [
      "that died ten thousand times is started again after six hours",
      rowWith({ starts: 10_000, until: minutesAgo(360) }),
      "start",
      10_001,
    ],
    ["of this invocation continues, and counts once", rowWith({ id: "me", until: after, starts: 2 }), "start", 2],
    ["of this invocation continues, also as the third start", rowWith({ id: "me", starts: 3 }), "start", 3],
    ["of another revision does not count", rowWith({ revision: "main@sha1:0", starts: 3 }), "start", 1],
    ["of another spec does not count", rowWith({ starts: 3 }, { generation: 2 }), "start", 1],
    ["before a reconcile does not count", rowWith({ starts: 3 }, { operations: { reconcile } }), "start", 1],
    [
      "for the newest reconcile counts",
      rowWith({ starts: 3, asked: reconcile.number }, { operations: { reconcile } }),
      "rest",
      undefined,
    ],
  ];
  test.each(rows)("a fetch %s", (_legend, row, kind, starts) => {
    const decision = decideFetch(row, "main@sha1:1", me);
    expect(decision.kind).toBe(kind);
    if (decision.kind !== "start") return;
    expect(decision.start).toMatchObject({
      revision: "main@sha1:1",
      generation: row.generation,
      id: "me",
      startedAt: now.toISOString(),
      until: "2026-03-01T10:01:05.000Z",
      starts,
    });
  });

  test("a fetch that died is reported, for any revision", () => {
    expect(decideFetch(rowWith({}), "main@sha1:1", me)).toMatchObject({ died: { id: "other" } });
    expect(decideFetch(rowWith({ revision: "main@sha1:0" }), "main@sha1:1", me)).toMatchObject({
      died: { id: "other" },
    });
  });
});
