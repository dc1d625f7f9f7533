import { describe, expect, test } from "vitest";
import { sourceSpec } from "#shared/fleet/kinds/source.ts";
import { rolloutStrategy, syncGroupSpec } from "#shared/fleet/kinds/sync-group.ts";
import { syncSpec } from "#shared/fleet/kinds/sync-template.ts";
import {
  desiredPlan,
  inputDigest,
  membershipHash,
  membersOf,
  relationOf,
  stageOf,
} from "#shared/fleet/rollout/plan.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import type { FleetRow, Operations, SourceRow, SubjectRow } from "#shared/fleet/rows/object-rows.ts";
import type { HeadRow } from "#shared/fleet/rows/rollout-rows.ts";

const at = "2026-11-21T08:00:00.000Z";
const parts = {
  pk: "p",
  sk: "s",
  schema: 1,
  version: 1,
  namespace: "shop",
  uid: "u",
  labels: {},
  annotations: {},
  generation: 1,
  createdAt: at,
  operations: {},
};

function group(spec: Record<string, unknown> = {}, operations: Operations = {}): SubjectRow {
  const whole = { clusters: { all: true }, templates: [{ name: "app", source: "app" }], ...spec };
  return {
    ...parts,
    type: "SyncGroup",
    name: "web",
    spec: syncGroupSpec.parse(whole),
    operations,
    status: { conditions: [] },
  };
}

function sources(...commits: readonly [string, string | undefined][]): ReadonlyMap<string, SourceRow> {
  return new Map(
    commits.map(([name, commit]) => {
      const artifact = {
        revision: `main@sha1:${commit}`,
        digest: `sha256:${commit?.charAt(0)}`,
        sizeBytes: 1,
        files: 1,
        storedAt: at,
        subject: "",
        author: "",
      };
      const status = { conditions: [], ...(commit === undefined ? {} : { artifact }) };
      const spec = sourceSpec.parse({ git: { url: "https://git.example/a" } });
      return [name, { ...parts, type: "Source", name, spec, status }];
    }),
  );
}

function head(templates: readonly string[]): HeadRow {
  const subject = { namespace: "shop", kind: "SyncGroup" as const, name: "web" };
  return { ...keys.head(subject), type: "Head", schema: 1, version: 1, subject, last: 1, templates, behind: [] };
}

function planned(row: SubjectRow, from = sources(["app", "aaa"]), before?: HeadRow) {
  const desired = desiredPlan(row, from, before);
  if (!desired.ok) throw new Error(desired.message);
  return desired.plan;
}

const clusterRow = (name: string, labels: Record<string, string> = {}, more: Partial<FleetRow> = {}): FleetRow => ({
  ...keys.fleet(name),
  type: "Fleet",
  schema: 1,
  version: 1,
  name,
  uid: `uid of ${name}`,
  labels,
  values: {},
  ...more,
});

describe("what is planned", () => {
  test("pins every template to its Source's artifact", () => {
    const row = group({
      templates: [
        { name: "a", source: "app", path: "x" },
        { name: "b", source: "base", render: { plain: {} } },
      ],
    });
    expect(planned(row, sources(["app", "aaa"], ["base", "bbb"])).templates).toMatchObject([
      { name: "a", revision: "main@sha1:aaa", artifactDigest: "sha256:a", path: "x" },
      { name: "b", revision: "main@sha1:bbb", artifactDigest: "sha256:b", path: ".", render: { plain: {} } },
    ]);
  });

  test("waits for a Source that is not there, or has nothing yet, and says what to do", () => {
    expect(desiredPlan(group(), sources(), undefined)).toEqual({
      ok: false,
      reason: "SourceNotFound",
      message: "template app: there is no Source app in namespace shop; apply one, or name another",
    });
    expect(desiredPlan(group(), sources(["app", undefined]), undefined)).toMatchObject({
      ok: false,
      reason: "SourceNotReady",
      message: expect.stringContaining("starling describe source/app -n shop"),
    });
  });

  test("removes what was assigned and is no template any more", () => {
    expect(planned(group(), undefined, head(["app", "old", "older"])).removed).toEqual(["old", "older"]);
  });

  test("of a deleted subject is only a farewell, whatever its Sources are", () => {
    const deletion = { by: "ana", at, number: 1, cascade: "orphan" as const };
    expect(planned(group({}, { deletion }), sources(), head(["app", "old"]))).toMatchObject({
      templates: [],
      removed: ["app", "old"],
      farewell: "orphan",
    });
  });

  test("of a Sync that a user wrote is one template on one cluster", () => {
    const spec = syncSpec.parse({ cluster: "c1", source: "app", path: "deploy" });
    const row: SubjectRow = { ...parts, type: "Sync", name: "tool", spec, status: { conditions: [] } };
    expect(relationOf(row).clusters).toEqual({ names: ["c1"] });
    expect(planned(row).templates).toMatchObject([{ name: "tool", path: "deploy" }]);
  });
});

describe("the content hash", () => {
  const hash = (...given: Parameters<typeof planned>) => planned(...given).contentHash;
  const same = hash(group());

  test.each<[string, () => string]>([
    ["another commit of the same content", () => hash(group(), sources(["app", "abc"]))],
    ["another strategy", () => hash(group({ rollout: { maxConcurrent: 5 } }))],
    ["another selection", () => hash(group({ clusters: { names: ["c1"] } }))],
    ["templates that are still to be removed", () => hash(group(), undefined, head(["app", "old"]))],
    [
      "a Source of another name with the same content",
      () => hash(group({ templates: [{ name: "app", source: "b" }] }), sources(["b", "aaa"])),
    ],
  ])("is the same for %s", (_name, other) => {
    expect(other()).toBe(same);
  });

  test.each<[string, () => string]>([
    ["other content", () => hash(group(), sources(["app", "bbb"]))],
    ["another path", () => hash(group({ templates: [{ name: "app", source: "app", path: "x" }] }))],
    ["another renderer", () => hash(group({ templates: [{ name: "app", source: "app", render: { plain: {} } }] }))],
    ["other options", () => hash(group({ templates: [{ name: "app", source: "app", apply: { prune: false } }] }))],
    ["another name", () => hash(group({ templates: [{ name: "b", source: "app" }] }))],
    ["a farewell", () => hash(group({}, { deletion: { by: "ana", at, number: 1, cascade: "delete" } }))],
  ])("is another one for %s", (_name, other) => {
    expect(other()).not.toBe(same);
  });
});

describe("the members", () => {
  const stages = [
    { name: "canary", clusters: { selector: { matchLabels: { ring: "canary" } } } },
    { name: "eu", clusters: { names: ["b", "c"] } },
    { name: "rest" },
  ];
  const row = group({ clusters: { all: true, notNames: ["out"] }, rollout: { stages } });
  const fleet = [
    clusterRow("c", { ring: "canary" }),
    clusterRow("z"),
    clusterRow("b"),
    clusterRow("out", { ring: "canary" }),
    clusterRow("a", { ring: "canary" }),
  ];

  test("are the selected clusters, each in the first stage that takes it, by stage and name", () => {
    const members = membersOf(relationOf(row), planned(row), fleet);
    expect(members.map(({ cluster, stage }) => [cluster, stage])).toEqual([
      ["a", 0],
      ["c", 0],
      ["b", 1],
      ["z", 2],
    ]);
  });

  test("of no cluster are none", () => {
    expect(membersOf(relationOf(row), planned(row), [])).toEqual([]);
  });

  test("are in the last stage when no other takes them", () => {
    expect(stageOf(rolloutStrategy.parse({ stages }), clusterRow("new"))).toBe(2);
  });

  test("have their own inputs, or the reason why not", () => {
    const templates = [{ name: "app", source: "app", path: "{{ cluster.values.tenant }}", render: { kustomize: {} } }];
    const own = group({ templates });
    const [a, b] = membersOf(relationOf(own), planned(own), [
      clusterRow("a", {}, { values: { tenant: "x" } }),
      clusterRow("b"),
    ]);
    expect(a?.inputs).toEqual([{ artifactDigest: "sha256:a", path: "x", render: { kustomize: {} } }]);
    expect(b?.inputs).toEqual([{ problem: "path: cluster b has no cluster.values.tenant; set it on the Cluster" }]);
  });

  test("hash the same until a cluster comes, goes, is another one, or gets something else", () => {
    const hash = (clusters: readonly FleetRow[], of = row) =>
      membershipHash(membersOf(relationOf(of), planned(of), clusters));
    const same = hash(fleet);
    expect(hash(fleet.toReversed())).toBe(same);
    expect(hash(fleet.map((one) => (one.name === "z" ? clusterRow("z", { team: "x" }) : one)))).toBe(same);
    expect(hash(fleet.slice(1))).not.toBe(same);
    expect(hash([...fleet, clusterRow("new")])).not.toBe(same);
    expect(hash(fleet.map((one) => (one.name === "z" ? clusterRow("z", {}, { uid: "another" }) : one)))).not.toBe(same);
    expect(hash(fleet, group({ templates: [{ name: "app", source: "app", path: "x" }] }))).not.toBe(same);
  });
});

test("a rendering's input is what it is made from, and nothing else", () => {
  const input = { artifactDigest: "sha256:a", path: "x" };
  expect(inputDigest(input)).toMatch(/^sha256:[0-9a-f]{64}$/);
  expect(inputDigest({ path: "x", artifactDigest: "sha256:a" })).toBe(inputDigest(input));
  const others = [
    { ...input, path: "y" },
    { ...input, artifactDigest: "b" },
    { ...input, render: { plain: {} } },
  ];
  expect(new Set([input, ...others].map(inputDigest)).size).toBe(4);
});
