import { expect, test } from "vitest";
import { nextResolve } from "#shared/domain/next-resolve.ts";
import type { FetchStart, SourceStatus } from "#shared/domain/rows/object-rows.ts";

const attemptedAt = "2026-03-01T10:00:00.000Z";
const createdAt = "2026-03-01T09:00:00.000Z";
const act = { by: "me", at: "2026-03-01T09:30:00.000Z", number: 7 };
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
  ["that nobody has looked at is due at once", { ...rowWith({}), status: { conditions: [] } }, createdAt],
  ["that is suspended waits for nothing", rowWith({}, { operations: { suspended: act } }), undefined],
  ["with another spec is due at once", rowWith({}, { generation: 2 }), createdAt],
  ["that somebody asks for is due at once", rowWith({}, { operations: { reconcile: act } }), act.at],
  ["that failed backs off", rowWith({}), "2026-03-01T10:10:00.000Z"],
  ["whose fetch died three times rests until then", rowWith({ fetch: died }), "2026-03-01T10:04:05.000Z"],
  ["is listed while a fetch rests for longer", rowWith({ fetch: { ...died, starts: 9 } }), "2026-03-01T10:10:00.000Z"],
];

test.each(rows)("a Source %s", (_legend, row, at) => {
  expect(nextResolve(row)).toBe(at);
});
