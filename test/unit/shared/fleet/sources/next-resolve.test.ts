import { describe, expect, test } from "vitest";
import { defined } from "#shared/base/defined.ts";
import { sourceSpec } from "#shared/fleet/kinds/source.ts";
import { later } from "#shared/fleet/rows/due.ts";
import type { Act, Artifact, FetchStart, Operations, SourceStatus } from "#shared/fleet/rows/object-rows.ts";
import { nextResolve } from "#shared/fleet/sources/next-resolve.ts";

const attemptedAt = "2026-03-01T10:00:00.000Z";
const createdAt = "2026-03-01T09:00:00.000Z";
const act = { by: "me", at: "2026-03-01T09:30:00.000Z", number: 7 };
const artifact: Artifact = {
  revision: "main@sha1:1",
  digest: "sha256:a",
  sizeBytes: 1,
  files: 1,
  storedAt: attemptedAt,
  subject: "First",
  author: "Ana",
};
const died: FetchStart = {
  revision: "main@sha1:1",
  generation: 1,
  id: "other",
  startedAt: "2026-03-01T09:56:00.000Z",
  until: "2026-03-01T09:59:05.000Z",
  starts: 3,
};

type Row = Parameters<typeof nextResolve>[0];

function rowWith(status: Partial<SourceStatus>, row: Partial<Row> = {}): Row {
  return {
    namespace: "shop",
    uid: "u",
    createdAt,
    generation: 1,
    operations: {},
    spec: { git: { url: "https://git.example.com/a.git" }, paths: ["."], interval: "24h" },
    status: { attemptedAt, observedGeneration: 1, failures: 8, conditions: [], ...status },
    ...row,
  } as Row;
}

const rows: readonly (readonly [legend: string, row: Row, at: string | undefined])[] = [
  ["that was never resolved is due at once", { ...rowWith({}), status: { conditions: [] } }, createdAt],
  ["that is suspended is never due", rowWith({}, { operations: { suspended: act } }), undefined],
  [
    "that is suspended stores its artifact again before it expires",
    rowWith({ artifact }, { operations: { suspended: act } }),
    "2026-03-21T10:00:00.000Z",
  ],
  [
    "that is suspended is never due when its artifact is gone",
    rowWith({ artifact, lost: artifact.digest }, { operations: { suspended: act } }),
    undefined,
  ],
  [
    "that is suspended for some time is due at the end",
    rowWith({ artifact }, { operations: { suspended: { ...act, until: "2026-03-02T10:00:00.000Z" } } }),
    "2026-03-02T10:00:00.000Z",
  ],
  [
    "that is suspended for a long time stores its artifact before the end",
    rowWith({ artifact }, { operations: { suspended: { ...act, until: "2026-05-02T10:00:00.000Z" } } }),
    "2026-03-21T10:00:00.000Z",
  ],
  ["with another spec is due at once", rowWith({}, { generation: 2 }), createdAt],
  ["with a request is due at once", rowWith({}, { operations: { reconcile: act } }), act.at],
  ["that failed is due after a back-off", rowWith({}), "2026-03-01T10:10:00.000Z"],
  ["whose fetch died three times is due after a pause", rowWith({ fetch: died }), "2026-03-01T10:04:05.000Z"],
  ["is polled while a fetch pauses for longer", rowWith({ fetch: { ...died, starts: 9 } }), "2026-03-01T10:10:00.000Z"],
];

test.each(rows)("a Source %s", (_legend, row, at) => {
  expect(nextResolve(row)).toBe(at);
});

describe("the next poll of a Source", () => {
  const at = attemptedAt;
  const next = (status: Partial<SourceStatus>, operations: Operations = {}, interval?: string) =>
    nextResolve({
      namespace: "shop",
      uid: "u",
      generation: 2,
      createdAt,
      operations,
      spec: sourceSpec.parse({
        git: { url: "https://git.example.com/app", ref: { branch: "main" } },
        ...defined({ interval }),
      }),
      status: { conditions: [], ...status },
    });
  const asked = (askedAt: string): Act => ({ ...act, at: askedAt, number: 3 });
  const resolved = { attemptedAt: at, observedGeneration: 2 };

  test.each<[string, string | undefined, string | undefined]>([
    ["is never due while it is suspended", next({}, { suspended: asked(at) }), undefined],
    ["is due at once when it is new", next({}), createdAt],
    ["is due at once when its spec has changed", next({ attemptedAt: at, observedGeneration: 1 }), createdAt],
    ["is due at once after a request", next(resolved, { reconcile: asked(later(at, 9)) }), later(at, 9)],
    ["is due soon after a failure", next({ ...resolved, failures: 1 }), later(at, 5)],
    ["is due later after more failures", next({ ...resolved, failures: 3 }), later(at, 20)],
    [
      "is due after its interval at the latest, despite many failures",
      next({ ...resolved, failures: 50 }, {}, "1m"),
      later(at, 60),
    ],
    [
      "is not due again because of an answered request",
      next({ ...resolved, handledReconcile: 3, failures: 1 }, { reconcile: asked(at) }),
      later(at, 5),
    ],
    [
      "is not due because of a request without a number",
      next({ ...resolved, failures: 1 }, { reconcile: { by: "maintainers", at } as Act }),
      later(at, 5),
    ],
  ])("the next poll of a Source %s [source.poll.back-off]", (_name, actual, expected) => {
    expect(actual).toBe(expected);
  });

  test.each([
    ["1h", 3600],
    [undefined, 300],
  ])(
    "the next poll of a Source is due within its interval %s, and then once in it [source.poll.interval]",
    (interval, seconds) => {
      const first = next(resolved, {}, interval) ?? "";
      expect(first >= later(at, seconds * 0.1) && first < later(at, seconds * 1.1)).toBe(true);
      expect(first).toBe(next({ ...resolved, failures: 0 }, {}, interval));
      // A tick comes some seconds after the time.
      expect(next({ ...resolved, attemptedAt: later(first, seconds / 10) }, {}, interval)).toBe(later(first, seconds));
    },
  );

  const sourceAt = (url: string, more: object = {}): Row => ({
    ...{ namespace: "shop", uid: `${url}-uid`, generation: 2, createdAt, operations: {} },
    spec: sourceSpec.parse({ git: { url }, interval: "10m" }),
    status: { conditions: [], ...resolved },
    ...more,
  });

  test("Sources of one upstream have their turns together, whenever each was polled last, and with a multiple of the interval [source.poll.interval]", () => {
    const url = "https://git.example.com/app";
    const turns = new Set(
      Array.from({ length: 60 }, (_, index) => {
        const status = { conditions: [], ...resolved, attemptedAt: later(at, index * 60) };
        return nextResolve(sourceAt(url, { uid: `u${index}`, status }));
      }),
    );
    expect(turns.size).toBe(7);
    const hourly = sourceAt(url, { spec: sourceSpec.parse({ git: { url }, interval: "1h" }) });
    expect(turns).toContain(nextResolve(hourly));
  });

  test("Sources of other places, and those without a place in common, have their turns spread over the interval [source.poll.interval]", () => {
    const places = Array.from({ length: 300 }, (_, index) => sourceAt(`https://git.example.com/app-${index}`));
    const pushed = places.map((_, index) =>
      sourceAt("https://git.example.com/app", {
        uid: `u${index}`,
        spec: sourceSpec.parse({ external: { principals: ["arn:aws:iam::111122223333:role/ci"] }, interval: "10m" }),
      }),
    );
    for (const all of [places, pushed]) {
      const perMinute = Map.groupBy(all, (row) => (nextResolve(row) ?? "").slice(0, "2026-11-29T10:00".length));
      expect(Math.max(...[...perMinute.values()].map((some) => some.length))).toBeLessThan(60);
    }
  });
});

test("the Sources of a host are spread over their interval after the time that the host states [source.limits.after]", () => {
  const limitedUntil = "2026-03-01T11:00:00.000Z";
  const times = Array.from({ length: 500 }, (_, index) => {
    const row = rowWith({ failures: 1, limitedUntil }, { uid: `uid-${index}` });
    return Date.parse(nextResolve({ ...row, spec: { ...row.spec, interval: "5m" } }) ?? "") - Date.parse(limitedUntil);
  });
  expect(Math.min(...times)).toBeGreaterThanOrEqual(0);
  expect(Math.max(...times)).toBeLessThanOrEqual(300_000);
  const perTenSeconds = Map.groupBy(times, (time) => Math.floor(time / 10_000));
  expect(Math.max(...[...perTenSeconds.values()].map((all) => all.length))).toBeLessThan(40);
});
