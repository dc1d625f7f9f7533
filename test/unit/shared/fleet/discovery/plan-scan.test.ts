import { expect, test } from "vitest";
import { planScan, type ScanFacts, type SeenPlace } from "#shared/fleet/discovery/plan-scan.ts";
import type { ClusterDiscoverySpec } from "#shared/fleet/kinds/cluster-discovery.ts";
import type { FoundRow } from "#shared/fleet/rows/discovery-rows.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import { rowSchema } from "#shared/fleet/rows/row.ts";

const account = "111122223333";
const region = "eu-west-1";
const now = new Date("2026-11-23T12:00:00Z");
const arn = (name: string) => `arn:aws:eks:${region}:${account}:cluster/${name}`;

const spec: ClusterDiscoverySpec = {
  eks: { accounts: [account], role: { name: "scan" }, regions: [region] },
  interval: "10m",
  name: "{{ eks.name }}",
  labels: { fromTags: { env: "env" } },
};

function found(name: string, more: Partial<FoundRow> = {}): FoundRow {
  return {
    ...keys.found(arn(name)),
    type: "Found",
    schema: rowSchema,
    version: 1,
    arn: arn(name),
    by: "apps",
    generation: 1,
    cluster: name,
    tags: {},
    describedAt: "2026-11-23T11:00:00.000Z",
    ...more,
  };
}

function seen(clusters: Readonly<Record<string, Readonly<Record<string, string>>>>): SeenPlace {
  const arns = Object.keys(clusters).map(arn);
  return {
    account,
    region,
    clusters: arns,
    tags: new Map(Object.entries(clusters).map(([name, tags]) => [arn(name), tags])),
  };
}

function plan(facts: Partial<ScanFacts> & { readonly rows?: readonly FoundRow[] }) {
  const { rows = [], ...more } = facts;
  const known = new Map(rows.map((row) => [row.arn, row]));
  const scanned = planScan({
    zonesOfVpcs: new Map(),
    discovery: "apps",
    generation: 1,
    spec,
    orphaned: new Set(),
    seen: [],
    now,
    known,
    ...more,
  });
  return {
    asked: scanned.candidates.map(({ name }) => name),
    refused: scanned.refused.map((each) => [each.arn, each.reason]),
    others: scanned.others.map(({ cluster }) => cluster),
  };
}

const none = { asked: [], refused: [], others: [] };

test("a new cluster is described, and a known one that did not change is not", () => {
  expect(plan({ rows: [found("a")], seen: [seen({ a: {}, b: {} })] })).toEqual({ ...none, asked: ["b"] });
});

const asked: readonly (readonly [string, Partial<FoundRow>, Readonly<Record<string, string>>])[] = [
  ["with a changed tag", { tags: { env: "prod" } }, { env: "dev" }],
  ["with a new tag", {}, { env: "dev" }],
  ["without a former tag", { tags: { env: "prod" } }, {}],
  ["that was read with another spec", { generation: 0 }, {}],
  ["that was gone", { goneSince: "2026-11-23T11:00:00.000Z" }, {}],
  ["that was not selected before", { unselected: true }, {}],
  ["that was described a day ago", { describedAt: "2026-11-22T09:00:00.000Z" }, {}],
];

test.each(asked)("a known cluster %s is described again", (_what, row, tags) => {
  expect(plan({ rows: [found("a", row)], seen: [seen({ a: tags })] })).toEqual({ ...none, asked: ["a"] });
});

test("a change of a tag that nothing uses does not matter", () => {
  expect(plan({ rows: [found("a")], seen: [seen({ a: { owner: "x" } })] })).toEqual(none);
});

test("a known cluster that no list has is described, and does not count as gone before that", () => {
  expect(plan({ rows: [found("a")], seen: [seen({})] })).toEqual({ ...none, asked: ["a"] });
});

test("a cluster is not missed in a place that was not listed, or is not scanned any more", () => {
  expect(plan({ rows: [found("a")], seen: [{ account, region }] })).toEqual(none);
  expect(plan({ rows: [found("a")], seen: [] })).toEqual(none);
});

test("a cluster that is gone is described again a day later, and when a list has it", () => {
  const goneSince = "2026-11-23T11:00:00.000Z";
  expect(plan({ rows: [found("a", { goneSince })], seen: [seen({})] })).toEqual(none);
  const old = { goneSince, describedAt: "2026-11-22T09:00:00.000Z" };
  expect(plan({ rows: [found("a", old)], seen: [seen({})] }).asked).toEqual(["a"]);
  expect(plan({ rows: [found("a", { goneSince })], seen: [seen({ a: {} })] }).asked).toEqual(["a"]);
});

test("without the tags of a place, its new clusters are described and its known ones are not", () => {
  const place = { account, region, clusters: [arn("a"), arn("b")] };
  expect(plan({ rows: [found("a", { tags: { env: "prod" } })], seen: [place] })).toEqual({ ...none, asked: ["b"] });
});

test("clusters with other tags than the selector's are ignored", () => {
  const selecting = { ...spec, eks: { ...spec.eks, tags: { matchLabels: { managed: "yes" } } } };
  expect(plan({ spec: selecting, seen: [seen({ a: { managed: "yes" }, b: {} })] })).toEqual({
    ...none,
    asked: ["a"],
  });
});

test("two new clusters with the same name are both refused", () => {
  const west = seen({ a: {} });
  const elsewhere = "arn:aws:eks:eu-west-1:444455556666:cluster/A";
  const other: SeenPlace = { account: "444455556666", region, clusters: [elsewhere], tags: new Map() };
  expect(plan({ seen: [west, other] })).toEqual({
    ...none,
    refused: [
      [arn("a"), "NameCollision"],
      [elsewhere, "NameCollision"],
    ],
  });
});

test("a known cluster keeps its name when the template changes", () => {
  const renamed = { ...spec, name: "eu-{{ eks.name }}" };
  expect(plan({ spec: renamed, generation: 2, rows: [found("a")], seen: [seen({ a: {}, b: {} })] }).asked).toEqual([
    "a",
    "eu-b",
  ]);
});

test("a cluster of another discovery stays with it, unless that discovery is deleted", () => {
  const facts = { rows: [found("a", { by: "data" })], seen: [seen({ a: {} })] };
  expect(plan(facts)).toEqual({ ...none, others: ["a"] });
  expect(plan({ ...facts, orphaned: new Set(["data"]) })).toEqual({ ...none, asked: ["a"] });
});
