import { expect, test } from "vitest";
import {
  labelsFrom,
  matchesTags,
  requiredTag,
  type Tags,
  tagsThatMatter,
  valuesFrom,
} from "#shared/fleet/discovery/tagged-labels.ts";
import {
  type ClusterDiscoverySpec,
  clusterDiscoverySpec,
  type TagSelector,
} from "#shared/fleet/kinds/cluster-discovery.ts";
import type { Values } from "#shared/fleet/kinds/values.ts";

const eks = {
  arn: "arn:aws:eks:eu-west-1:111122223333:cluster/a",
  partition: "aws",
  region: "eu-west-1",
  accountId: "111122223333",
  name: "a",
} as const;
const own = {
  "starling.dev/account": "111122223333",
  "starling.dev/region": "eu-west-1",
  "starling.dev/version": "1.36",
};

function specWith(more: Partial<ClusterDiscoverySpec>, tags?: TagSelector): ClusterDiscoverySpec {
  const of = { accounts: ["111122223333"], role: { name: "scan" }, regions: ["eu-west-1"] };
  return { eks: { ...of, ...(tags === undefined ? {} : { tags }) }, interval: "10m", name: "{{ eks.name }}", ...more };
}

interface Row {
  readonly what: string;
  readonly labels?: ClusterDiscoverySpec["labels"];
  readonly tags: Readonly<Record<string, string>>;
  readonly accepted?: Readonly<Record<string, string>>;
  readonly want: Readonly<Record<string, string>>;
  readonly refused?: readonly object[];
}

const ring = { fromTags: { ring: "Ring" }, allowed: { ring: ["canary", "broad"] } };

const rows: readonly Row[] = [
  { what: "a spec without labels", tags: { Ring: "canary" }, want: {} },
  {
    what: "a tag becomes a label",
    labels: { fromTags: { env: "aws:cloudformation:stack-name" } },
    tags: { "aws:cloudformation:stack-name": "prod" },
    want: { env: "prod" },
  },
  {
    what: "a tag that is missing sets no label",
    labels: { fromTags: { env: "env" } },
    tags: {},
    accepted: { env: "prod" },
    want: {},
  },
  { what: "a label is set without a tag", labels: { set: { fleet: "eu" } }, tags: {}, want: { fleet: "eu" } },
  {
    what: "a value that is allowed becomes the label",
    labels: ring,
    tags: { Ring: "broad" },
    accepted: { ring: "canary" },
    want: { ring: "broad" },
  },
  {
    what: "a value that is not allowed keeps the last accepted one",
    labels: ring,
    tags: { Ring: "prod" },
    accepted: { ring: "canary" },
    want: { ring: "canary" },
    refused: [{ label: "ring", tag: "Ring", value: "prod", kept: "canary" }],
  },
  {
    what: "a value that is not allowed sets no label without an accepted one",
    labels: ring,
    tags: { Ring: "prod" },
    want: {},
    refused: [{ label: "ring", tag: "Ring", value: "prod" }],
  },
  {
    what: "a tag that was removed keeps the last accepted value",
    labels: ring,
    tags: {},
    accepted: { ring: "canary" },
    want: { ring: "canary" },
    refused: [{ label: "ring", tag: "Ring", kept: "canary" }],
  },
  {
    what: "a value that cannot be a label keeps the last accepted one",
    labels: { fromTags: { team: "team" } },
    tags: { team: "the platform people" },
    accepted: { team: "platform" },
    want: { team: "platform" },
    refused: [{ label: "team", tag: "team", value: "the platform people", kept: "platform" }],
  },
  {
    what: "a tag with the name of a JavaScript member sets no label",
    labels: { fromTags: { env: "constructor" } },
    tags: {},
    want: {},
  },
];

test.each(rows)("labels from tags: $what", ({ labels, tags, accepted = {}, want, refused = [] }) => {
  const spec = specWith(labels === undefined ? {} : { labels });
  expect(labelsFrom(spec, { eks, version: "1.36", tags }, accepted)).toEqual({ labels: { ...own, ...want }, refused });
});

test("values are tags of the same name, up to the length limit of a value", () => {
  const spec = specWith({ values: { fromTags: ["domain", "long", "absent"] } });
  const tags = { domain: "a.example.com", long: "x".repeat(1025), other: "1" };
  expect(valuesFrom(spec, tags, { absent: "before", long: "before" })).toEqual({
    values: { domain: "a.example.com" },
    refused: [],
  });
});

const folders = { fromTags: ["folder"], allowed: { folder: ["eu", "us"] } };
const valueRows: readonly (readonly [
  legend: string,
  tags: Tags,
  had: Values,
  want: Tags,
  refused: readonly object[],
])[] = [
  ["that is allowed sets the value", { folder: "us" }, { folder: "eu" }, { folder: "us" }, []],
  [
    "that is not allowed keeps the former value",
    { folder: "." },
    { folder: "eu" },
    { folder: "eu" },
    [{ value: ".", kept: "eu" }],
  ],
  ["that is not allowed sets nothing without a former value", { folder: "." }, {}, {}, [{ value: "." }]],
  ["that is gone keeps the former value", {}, { folder: "eu" }, { folder: "eu" }, [{ kept: "eu" }]],
  ["that is not allowed does not keep a former list", { folder: "." }, { folder: ["eu"] }, {}, [{ value: "." }]],
];

test.each(valueRows)("with values.allowed, a tag %s", (_legend, tags, had, want, refused) => {
  expect(valuesFrom(specWith({ values: folders }), tags, had)).toEqual({
    values: want,
    refused: refused.map((each) => ({ name: "folder", ...each })),
  });
});

test("values.allowed may only name values of fromTags", () => {
  const spec = specWith({ values: { ...folders, allowed: { other: ["eu"] } } });
  const { error } = clusterDiscoverySpec.safeParse(spec);
  expect(error?.issues).toMatchObject([
    { path: ["values", "allowed", "other"], message: "is about a value that fromTags lacks" },
  ]);
});

test("only tags that are used are remembered", () => {
  const selector: TagSelector = {
    matchLabels: { managed: "yes" },
    matchExpressions: [{ key: "tier", operator: "Exists" }],
  };
  const spec = specWith({ labels: { fromTags: { env: "Env" } }, values: { fromTags: ["domain"] } }, selector);
  const tags = { managed: "yes", tier: "gold", Env: "prod", domain: "d", owner: "somebody", cost: "1" };
  expect(tagsThatMatter(spec, tags)).toEqual({ managed: "yes", tier: "gold", Env: "prod", domain: "d" });
});

const selectors: readonly (readonly [string, TagSelector | undefined, object | undefined])[] = [
  ["none", undefined, undefined],
  ["a value", { matchLabels: { a: "1" } }, { key: "a", values: ["1"] }],
  [
    "some values",
    { matchExpressions: [{ key: "a", operator: "In", values: ["1", "2"] }] },
    { key: "a", values: ["1", "2"] },
  ],
  ["any value", { matchExpressions: [{ key: "a", operator: "Exists" }] }, { key: "a", values: [] }],
  ["no such tag", { matchExpressions: [{ key: "a", operator: "DoesNotExist" }] }, undefined],
  ["another value", { matchExpressions: [{ key: "a", operator: "NotIn", values: ["1"] }] }, undefined],
];

test.each(selectors)(
  "the tag that all clusters of a selector have, for a selector of %s",
  (_what, selector, desired) => {
    const found = requiredTag(selector);
    expect(found === undefined ? undefined : { key: found.key, values: found.values }).toEqual(desired);
    const isFoundWithoutTags = matchesTags(selector, {});
    expect(isFoundWithoutTags).toBe(desired === undefined);
  },
);
