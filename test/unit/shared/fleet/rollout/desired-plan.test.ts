import { describe, expect, test } from "vitest";
import { sourceSpec } from "#shared/fleet/kinds/source.ts";
import { rolloutStrategy, syncGroupSpec } from "#shared/fleet/kinds/sync-group.ts";
import { syncSpec } from "#shared/fleet/kinds/sync-template.ts";
import {
  describeRevisions,
  desiredPlan,
  inputDigest,
  inputsOf,
  type Member,
  memberChanges,
  membersOf,
  planIdentity,
  relationOf,
  stageOf,
} from "#shared/fleet/rollout/desired-plan.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import type { FleetRow, Operations, OwnerRow, SourceRow } from "#shared/fleet/rows/object-rows.ts";
import { folderDigests } from "#shared/source/folder-digests.ts";
import { treeDigest } from "#shared/source/tree-listing.ts";

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

function group(spec: Record<string, unknown> = {}, operations: Operations = {}): OwnerRow {
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

function planned(row: OwnerRow, from = sources(["app", "aaa"])) {
  const desired = desiredPlan(row, from);
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

describe("the parts of a large repository that a plan depends on", () => {
  const files = (texts: Readonly<Record<string, string>>) =>
    Object.entries({ "apps/a/a.yaml": "a", "apps/b/b.yaml": "b", "values/v.yaml": "v", ...texts }).map(
      ([path, text]) => ({
        path,
        executable: false,
        content: Buffer.from(text),
      }),
    );
  const from = (revision: string, texts: Readonly<Record<string, string>> = {}) => {
    const artifact = { revision, digest: treeDigest(files(texts)), folders: folderDigests(files(texts)) };
    return new Map([["app", { status: { artifact } }]]);
  };
  const chart = { helm: { valuesFrom: [{ path: "values/{{ cluster.name }}.yaml" }] } };
  const cases: readonly (readonly [legend: string, template: object, changed: string, isNew: boolean])[] = [
    ["its own folder", { path: "apps/a" }, "apps/a/a.yaml", true],
    ["another folder", { path: "./apps/a/" }, "apps/b/b.yaml", false],
    ["a folder that its expression may choose", { path: "apps/{{ cluster.name }}" }, "apps/b/b.yaml", true],
    ["a folder that its expression cannot choose", { path: "apps/{{ cluster.name }}" }, "values/v.yaml", false],
    ["any file, with the root as path,", { path: "." }, "apps/b/b.yaml", true],
    ["any file, with an expression as path,", { path: "{{ cluster.name }}" }, "apps/b/b.yaml", true],
    [
      "the folder of an override",
      { path: "apps/a", overrides: [{ clusters: { all: true }, path: "apps/b" }] },
      "apps/b/b.yaml",
      true,
    ],
    ["a component", { path: "apps/a", components: ["apps/b"] }, "apps/b/b.yaml", true],
    ["files of values", { path: "apps/a", render: chart, apply: { defaultNamespace: "x" } }, "values/v.yaml", true],
    ["no file of values", { path: "apps/a", render: chart, apply: { defaultNamespace: "x" } }, "apps/b/b.yaml", false],
  ];
  test.each(cases)("a change in %s of a template makes a new rollout, or not", (_legend, template, changed, isNew) => {
    const row = group({ templates: [{ name: "a", source: "app", ...template }] });
    const plannedFrom = (...commit: Parameters<typeof from>) => {
      const desired = desiredPlan(row, from(...commit));
      if (!desired.ok) throw new Error(desired.message);
      return desired.plan;
    };
    const before = plannedFrom("main@sha1:aaa");
    const after = plannedFrom("main@sha1:bbb", { [changed]: "changed" });
    expect(after.templates[0]?.revision).toBe("main@sha1:bbb");
    expect(after.planHash !== before.planHash).toBe(isNew);
  });

  test("an artifact without recorded folders counts as a whole", () => {
    const row = group({ templates: [{ name: "a", source: "app", path: "apps/a" }] });
    const { planHash } = planned(row, sources(["app", "aaa"]));
    expect(planned(row, sources(["app", "bbb"])).planHash).not.toBe(planHash);
  });
});

describe("the desired plan", () => {
  test("a plan pins every template to its Source's artifact", () => {
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

  test("a plan pins the Sources of values files, also those of overrides, and changes with their files", () => {
    const helm = (...names: readonly (string | undefined)[]) => ({
      helm: { valuesFrom: names.map((source) => ({ ...(source === undefined ? {} : { source }), path: "v.yaml" })) },
    });
    const template = {
      name: "a",
      source: "app",
      render: helm(undefined, "base"),
      apply: { defaultNamespace: "shop" },
      overrides: [{ clusters: { names: ["one"] }, render: helm("more", "app", "base") }],
    };
    const row = group({ templates: [template, { name: "b", source: "app" }] });
    const from = (base: string) => sources(["app", "aaa"], ["base", base], ["more", "ccc"]);
    const plan = planned(row, from("bbb"));
    expect(plan.templates.map(({ source, revision, besides }) => [source, revision, besides])).toEqual([
      [
        "app",
        "main@sha1:aaa",
        [
          { source: "base", revision: "main@sha1:bbb", artifactDigest: "sha256:b" },
          { source: "more", revision: "main@sha1:ccc", artifactDigest: "sha256:c" },
        ],
      ],
      ["app", "main@sha1:aaa", undefined],
    ]);
    // Another commit with the same files is the same plan.
    expect(planned(row, from("bb2")).planHash).toBe(plan.planHash);
    expect(planned(row, from("ddd")).planHash).not.toBe(plan.planHash);
    expect(describeRevisions(plan)).toBe("main@sha1:aaa");
    expect(desiredPlan(row, sources(["app", "aaa"], ["base", "bbb"]))).toMatchObject({
      ok: false,
      reason: "SourceNotFound",
      message: "template a: there is no Source more in namespace shop; apply one, or name another",
    });
    expect(desiredPlan(row, sources(["app", "aaa"], ["base", undefined], ["more", "c"]))).toMatchObject({
      ok: false,
      reason: "SourceNotReady",
    });
  });

  test("a plan waits for a Source that is missing or has no artifact, and says what to do", () => {
    expect(desiredPlan(group(), sources())).toEqual({
      ok: false,
      reason: "SourceNotFound",
      message: "template app: there is no Source app in namespace shop; apply one, or name another",
    });
    expect(desiredPlan(group(), sources(["app", undefined]))).toMatchObject({
      ok: false,
      reason: "SourceNotReady",
      message: expect.stringContaining("starling describe source/app -n shop"),
    });
  });

  test.each(["delete", "orphan"] as const)(
    "the plan of an owner that is deleted with %s is only the deletion, whatever its Sources are",
    (cascade) => {
      const deletion = { by: "ana", at, number: 1, cascade };
      expect(planned(group({}, { deletion }), sources())).toMatchObject({ templates: [], deletion: "delete" });
    },
  );

  test("the plan of a user's Sync has one template on one cluster", () => {
    const spec = syncSpec.parse({ cluster: "c1", source: "app", path: "deploy" });
    const row: OwnerRow = { ...parts, type: "Sync", name: "tool", spec, status: { conditions: [] } };
    expect(relationOf(row).clusters).toEqual({ names: ["c1"] });
    expect(planned(row).templates).toMatchObject([{ name: "tool", path: "deploy" }]);
  });
});

describe("the hash of a plan", () => {
  const hash = (...given: Parameters<typeof planned>) => planned(...given).planHash;
  const same = hash(group());

  test.each<[string, () => string]>([
    ["another commit with the same files", () => hash(group(), sources(["app", "abc"]))],
    ["another strategy", () => hash(group({ rollout: { maxConcurrent: 5 } }))],
    ["another selection", () => hash(group({ clusters: { names: ["c1"] } }))],
    [
      "a Source of another name with the same files",
      () => hash(group({ templates: [{ name: "app", source: "b" }] }), sources(["b", "aaa"])),
    ],
  ])("the hash of a plan is the same with %s", (_name, other) => {
    expect(other()).toBe(same);
  });

  test.each<[string, () => string]>([
    ["other files", () => hash(group(), sources(["app", "bbb"]))],
    ["another path", () => hash(group({ templates: [{ name: "app", source: "app", path: "x" }] }))],
    ["another renderer", () => hash(group({ templates: [{ name: "app", source: "app", render: { plain: {} } }] }))],
    ["other options", () => hash(group({ templates: [{ name: "app", source: "app", apply: { prune: false } }] }))],
    ["another name", () => hash(group({ templates: [{ name: "b", source: "app" }] }))],
    ["a deletion", () => hash(group({}, { deletion: { by: "ana", at, number: 1, cascade: "delete" } }))],
  ])("the hash of a plan changes with %s", (_name, other) => {
    expect(other()).not.toBe(same);
  });
});

describe("the members of a group", () => {
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

  test("the members are the selected clusters by name, each in the first stage that selects it", () => {
    const members = membersOf(relationOf(row), fleet, 7);
    expect(members.map(({ cluster, stage, since }) => [cluster, stage, since])).toEqual([
      ["a", "canary", 7],
      ["b", "eu", 7],
      ["c", "canary", 7],
      ["z", "rest", 7],
    ]);
  });

  test("an empty fleet has no members", () => {
    expect(membersOf(relationOf(row), [], 1)).toEqual([]);
  });

  test("a cluster is in the last stage if no other stage selects it", () => {
    expect(stageOf(rolloutStrategy.parse({ stages }), clusterRow("new"))).toBe("rest");
  });

  test("members have their own inputs, or the reason why not", () => {
    const templates = [{ name: "app", source: "app", path: "{{ cluster.values.tenant }}", render: { kustomize: {} } }];
    const plan = planned(group({ templates }));
    const inputs = (values: Member["values"]) => inputsOf(plan, { cluster: "b", labels: {}, values });
    expect(inputs({ tenant: "x" })).toEqual([{ artifactDigest: "sha256:a", path: "x", render: { kustomize: {} } }]);
    const problem =
      "path: cluster b has no cluster.values.tenant; set the value on the Cluster (spec.values) or in a ClusterValues that selects it, or take it from a tag (spec.values.fromTags of its ClusterDiscovery); or add | default(text)";
    expect(inputs({})).toEqual([{ problem }]);
  });
});

describe("changes of the members", () => {
  const member = (cluster: string, more: Partial<Member> = {}): Member => ({
    cluster,
    uid: cluster,
    stage: "rest",
    labels: {},
    values: {},
    since: 1,
    ...more,
  });
  const ofLabel = planned(group({ templates: [{ name: "app", source: "app", path: "{{ cluster.labels.tier }}" }] }));
  const nothing = { joined: [], left: [], relabelled: [], otherInputs: false };

  test.each<[string, readonly Member[], readonly Member[], object]>([
    ["no change", [member("a")], [member("a")], nothing],
    ["a cluster that joins", [member("a")], [member("a"), member("b")], { ...nothing, joined: ["b"] }],
    ["a cluster that leaves", [member("a"), member("b")], [member("a")], { ...nothing, left: ["b"] }],
    [
      "a cluster that moves to an earlier stage",
      [member("a")],
      [member("a", { stage: "canary" })],
      { ...nothing, relabelled: ["a"] },
    ],
    [
      "a cluster that moves to a later stage",
      [member("a", { stage: "canary" })],
      [member("a")],
      { ...nothing, relabelled: ["a"] },
    ],
    [
      "a cluster that is registered again",
      [member("a")],
      [member("a", { uid: "another" })],
      { ...nothing, joined: ["a"], left: ["a"] },
    ],
    ["a changed label that no template uses", [member("a")], [member("a", { labels: { team: "x" } })], nothing],
    [
      "a changed label that a template uses",
      [member("a", { labels: { tier: "x" } })],
      [member("a", { labels: { tier: "y" } })],
      { ...nothing, otherInputs: true },
    ],
    [
      "a cluster that moves to another stage with another label",
      [member("a", { labels: { tier: "x" } })],
      [member("a", { labels: { tier: "y" }, stage: "canary" })],
      { ...nothing, relabelled: ["a"] },
    ],
    [
      "a cluster that is known only from its recovered Syncs",
      [member("a", { uid: "", stage: "" })],
      [member("a", { labels: { tier: "y" } })],
      { ...nothing, joined: ["a"] },
    ],
  ])("the changes of the members: %s", (_name, before, found, changes) => {
    const { members, ...others } = memberChanges(before, found, ofLabel);
    expect(others).toEqual(changes);
    expect(members.map(({ cluster }) => cluster)).toEqual(found.map(({ cluster }) => cluster));
  });

  test("members keep the time since when they are in their stage, and new ones have the current time", () => {
    const found = [member("a"), member("b", { stage: "canary" }), member("c"), member("d", { uid: "another" })];
    const now = found.map((one) => ({ ...one, since: 5 }));
    const { members } = memberChanges([member("a"), member("b"), member("d")], now, ofLabel);
    expect(members.map(({ cluster, since }) => [cluster, since])).toEqual([
      ["a", 1],
      ["b", 5],
      ["c", 5],
      ["d", 5],
    ]);
  });

  test("members have no other inputs before the first plan", () => {
    const [before, found] = [[member("a")], [member("a", { labels: { tier: "y" } })]];
    expect(memberChanges(before, found, undefined).otherInputs).toBe(false);
  });
});

test("a rollout is a new one when its plan or an input of a member changes, or after rows were recovered", () => {
  const plan = planned(group());
  const same = planIdentity(plan, { inputsVersion: 1, recovered: undefined });
  expect(planIdentity(planned(group(), sources(["app", "abc"])), { inputsVersion: 1, recovered: undefined })).toBe(
    same,
  );
  const others = [
    planIdentity(planned(group(), sources(["app", "bbb"])), { inputsVersion: 1, recovered: undefined }),
    planIdentity(plan, { inputsVersion: 2, recovered: undefined }),
    planIdentity(plan, { inputsVersion: 1, recovered: 4 }),
  ];
  expect(new Set([same, ...others]).size).toBe(4);
});

test.each([
  ["the revision that all templates have", ["main@sha1:a", "main@sha1:a"], "main@sha1:a"],
  ["how many, if they differ", ["main@sha1:a", "main@sha1:b", "main@sha1:a"], "2 revisions"],
  ["none, if the owner is deleted", [], "the deletion"],
])("the revision of a plan is shown as %s", (_, revisions, expected) => {
  const { templates } = planned(group());
  const made = revisions.flatMap((revision) => templates.slice(0, 1).map((template) => ({ ...template, revision })));
  expect(describeRevisions({ templates: made })).toBe(expected);
});

test("the digest of a rendering's input depends on the input only", () => {
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
