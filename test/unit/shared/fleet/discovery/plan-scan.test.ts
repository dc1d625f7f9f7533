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

const nobody = { asked: [], refused: [], others: [] };

test("a newcomer is asked about, one that is known and the same is not", () => {
  expect(plan({ rows: [found("a")], seen: [seen({ a: {}, b: {} })] })).toEqual({ ...nobody, asked: ["b"] });
});

const asked: readonly (readonly [string, Partial<FoundRow>, Readonly<Record<string, string>>])[] = [
  ["has another tag", { tags: { env: "prod" } }, { env: "dev" }],
  ["has one tag more", {}, { env: "dev" }],
  ["has lost a tag", { tags: { env: "prod" } }, {}],
  ["was read with another spec", { generation: 0 }, {}],
  ["was gone", { goneSince: "2026-11-23T11:00:00.000Z" }, {}],
  ["had other tags than are looked for", { unselected: true }, {}],
  ["was asked about a day ago", { describedAt: "2026-11-22T09:00:00.000Z" }, {}],
];

test.each(asked)("one is asked about that %s", (_what, row, tags) => {
  expect(plan({ rows: [found("a", row)], seen: [seen({ a: tags })] })).toEqual({ ...nobody, asked: ["a"] });
});

test("a tag that says nothing is not asked about", () => {
  expect(plan({ rows: [found("a")], seen: [seen({ a: { owner: "x" } })] })).toEqual(nobody);
});

test("one that no list has is asked about, and is not gone because of that", () => {
  expect(plan({ rows: [found("a")], seen: [seen({})] })).toEqual({ ...nobody, asked: ["a"] });
});

test("nobody is missed in a place that was not listed, or that nobody looks at any more", () => {
  expect(plan({ rows: [found("a")], seen: [{ account, region }] })).toEqual(nobody);
  expect(plan({ rows: [found("a")], seen: [] })).toEqual(nobody);
});

test("one that is gone is asked about again a day later, and when a list has it", () => {
  const goneSince = "2026-11-23T11:00:00.000Z";
  expect(plan({ rows: [found("a", { goneSince })], seen: [seen({})] })).toEqual(nobody);
  const old = { goneSince, describedAt: "2026-11-22T09:00:00.000Z" };
  expect(plan({ rows: [found("a", old)], seen: [seen({})] }).asked).toEqual(["a"]);
  expect(plan({ rows: [found("a", { goneSince })], seen: [seen({ a: {} })] }).asked).toEqual(["a"]);
});

test("without tags of a place all of its newcomers are asked about, and nobody who is known", () => {
  const place = { account, region, clusters: [arn("a"), arn("b")] };
  expect(plan({ rows: [found("a", { tags: { env: "prod" } })], seen: [place] })).toEqual({ ...nobody, asked: ["b"] });
});

test("clusters with other tags are nobody's business", () => {
  const selecting = { ...spec, eks: { ...spec.eks, tags: { matchLabels: { managed: "yes" } } } };
  expect(plan({ spec: selecting, seen: [seen({ a: { managed: "yes" }, b: {} })] })).toEqual({
    ...nobody,
    asked: ["a"],
  });
});

test("of two newcomers with one name neither gets it", () => {
  const west = seen({ a: {} });
  const elsewhere = "arn:aws:eks:eu-west-1:444455556666:cluster/A";
  const other: SeenPlace = { account: "444455556666", region, clusters: [elsewhere], tags: new Map() };
  expect(plan({ seen: [west, other] })).toEqual({
    ...nobody,
    refused: [
      [arn("a"), "NameCollision"],
      [elsewhere, "NameCollision"],
    ],
  });
});

test("who has a name keeps it, whatever the template says by now", () => {
  const renamed = { ...spec, name: "eu-{{ eks.name }}" };
  expect(plan({ spec: renamed, generation: 2, rows: [found("a")], seen: [seen({ a: {}, b: {} })] }).asked).toEqual([
    "a",
    "eu-b",
  ]);
});

test("what another one has found stays its, unless that one is there no more", () => {
  const facts = { rows: [found("a", { by: "data" })], seen: [seen({ a: {} })] };
  expect(plan(facts)).toEqual({ ...nobody, others: ["a"] });
  expect(plan({ ...facts, orphaned: new Set(["data"]) })).toEqual({ ...nobody, asked: ["a"] });
});
