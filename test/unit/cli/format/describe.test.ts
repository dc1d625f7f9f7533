import { describe, expect, test } from "vitest";
import { describeCluster, describeGroup, describeSource } from "#cli/format/describe-object.ts";
import { describeSync } from "#cli/format/describe-sync.ts";
import { clusterObject, groupSyncObject, sourceObject, syncGroupObject } from "#shared/fleet/api/objects.ts";
import type { ClusterSpec } from "#shared/fleet/kinds/cluster.ts";
import type { ClusterSelection } from "#shared/fleet/kinds/cluster-selection.ts";
import { type SourceSpec, sourceSpec } from "#shared/fleet/kinds/source.ts";
import { rolloutStrategy } from "#shared/fleet/kinds/sync-group.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import type { ClusterRow, SourceRow, SyncGroupRow } from "#shared/fleet/rows/object-rows.ts";
import { syncRow } from "#test/unit/functions/api/row-fixture.ts";

const now = new Date("2026-11-20T08:01:00Z");

test.each([
  [{ secret: "starling/git/shop", kind: "tls" }, "Credentials: secret starling/git/shop (tls)\n"],
  [{ kind: "aws" }, "Credentials: Starling's own role (aws)\n"],
])("the description of a Source with the credentials %j says %j", (credentials, line) => {
  const object = sourceObject({
    ...keys.object("shop", "Source", "app"),
    ...{ type: "Source", schema: 1, version: 1, uid: "u1", namespace: "shop", name: "app", generation: 1 },
    ...{ labels: {}, annotations: {}, createdAt: "2026-11-20T08:00:00.000Z", operations: {} },
    spec: sourceSpec.parse({ oci: { url: "oci://111122223333.dkr.ecr.eu-west-1.amazonaws.com/a", credentials } }),
    status: { conditions: [] },
  });
  expect(describeSource({ object, events: [], now })).toContain(line);
});

describe("the description of a cluster", () => {
  const row: ClusterRow = {
    ...keys.cluster("c1"),
    type: "Cluster",
    schema: 1,
    version: 1,
    uid: "u1",
    name: "c1",
    labels: {},
    annotations: {},
    generation: 1,
    createdAt: "2026-11-20T08:00:00.000Z",
    spec: {},
    operations: {},
    status: { conditions: [] },
  };
  test.each<[ClusterSpec, string]>([
    [
      {
        eks: { arn: "arn:aws:eks:eu-west-1:111122223333:cluster/c1" },
        access: { role: { name: "starling/clusters/apply" } },
      },
      "EKS:         arn:aws:eks:eu-west-1:111122223333:cluster/c1\nRole:        starling/clusters/apply\nExternal id: starling.111122223333.eu-west-1/c1\nIdentity:    ",
    ],
    [
      {
        eks: {
          arn: "arn:aws:eks:eu-west-1:111122223333:cluster/c1",
          endpointOverride: { server: "https://c1.eks.corp.example" },
        },
      },
      "Server:      https://c1.eks.corp.example (in place of EKS' own)\n",
    ],
    [
      { endpoint: { server: "https://10.0.0.1", token: { secret: "starling/clusters/c1" } } },
      "Server:      https://10.0.0.1\nToken:       secret starling/clusters/c1\nIdentity:    ",
    ],
  ])("the description shows how Starling reaches a cluster with the spec %o", (spec, expected) => {
    expect(
      describeCluster({ object: clusterObject({ ...row, spec }, "starling.111122223333.eu-west-1"), syncs: [], now }),
    ).toContain(expected);
  });
});

describe("the description of a Source", () => {
  const url = "https://github.com/acme/app";
  const ref = { semver: "^1", tagFilter: "-rc" };
  test.each<[string, SourceSpec, string]>([
    [
      "the filter of tags of git",
      sourceSpec.parse({ git: { url, ref: { ...ref, tagPrefix: "app/" } } }),
      "Follows:     versions ^1 of tags app/*, of tags that match -rc\n",
    ],
    [
      "the filter of tags of a registry",
      sourceSpec.parse({ oci: { url: "oci://ghcr.io/acme/app", ref } }),
      "Follows:     versions ^1, of tags that match -rc\n",
    ],
    [
      "immutable tags and retained revisions",
      sourceSpec.parse({ git: { url, ref }, immutableTags: true, retain: 10 }),
      "Tags:        immutable: one that moves is refused\nRetains:     10 revisions\nPaths:       .\n",
    ],
  ])("the description shows %s", (_what, spec, expected) => {
    const row: SourceRow = {
      ...keys.object("shop", "Source", "app"),
      type: "Source",
      schema: 1,
      version: 1,
      uid: "u1",
      namespace: "shop",
      name: "app",
      labels: {},
      annotations: {},
      generation: 1,
      createdAt: "2026-11-20T08:00:00.000Z",
      spec,
      operations: {},
      status: { conditions: [] },
    };
    const text = describeSource({ object: sourceObject(row), events: [], now });
    expect(text).toContain(expected);
    expect(text).not.toContain("Stale");
    const status = { ...row.status, staleSince: "2026-11-20T05:31:00.000Z" };
    const stale = describeSource({ object: sourceObject({ ...row, status }), events: [], now });
    expect(stale).toContain("Stale since: 05:31:00Z (150m)\n");
  });
});

describe("the description of a Sync", () => {
  test("the description lists foreign objects, and says that the inventory was lost and rebuilt", () => {
    const row = syncRow("c2", "shop.web", { phase: "Ready", reason: "Ready", message: "" });
    if (row.observed === undefined) throw new Error("the fixture has an observation");
    const observed = {
      ...row.observed,
      objects: { total: 1, ready: 1, failed: 0, foreign: 3 },
      foreign: [
        { id: { group: "", kind: "ConfigMap", namespace: "shop", name: "old" }, uid: "1", member: true },
        { id: { group: "", kind: "Endpoints", namespace: "shop", name: "web" }, uid: "2", member: false },
      ],
      rebuilt: { at: "2026-11-20T08:00:00.000Z", reason: "BlobNotFound", message: "was lost", members: 1, foreign: 1 },
    };
    const text = describeSync({ sync: groupSyncObject({ ...row, observed }, undefined), events: [], now });
    expect(text).toContain(
      [
        "Inventory: was lost, 08:00:00Z",
        "",
        "Foreign objects:",
        "  ConfigMap shop/old  applied by this Sync earlier; not in its inventory and not in git",
        "  Endpoints shop/web  only has a copy of the Sync's label",
        "  and 1 more",
      ].join("\n"),
    );
  });

  test("the description shows the desired and the applied revision, the problems, and the commands that help", () => {
    const row = syncRow("c2", "shop.web", { phase: "Failed", reason: "ApplyFailed", message: "1 of 4 objects failed" });
    if (row.observed === undefined) throw new Error("the fixture has an observation");
    const sync = groupSyncObject(
      {
        ...row,
        observed: {
          ...row.observed,
          applied: {
            renderDigest: "sha256:51d0",
            revision: "main@sha1:1b9e2d4",
            at: "2026-11-19T10:12:00.000Z",
            attempt: 1,
          },
          problems: [{ object: "Service shop/web", reason: "Invalid", message: "spec.ports[1].nodePort: taken" }],
          conditions: [
            {
              type: "Ready",
              status: "False",
              reason: "ApplyFailed",
              message: "1 of 4 objects failed",
              since: "2026-11-20T07:51:00.000Z",
            },
          ],
        },
      },
      undefined,
    );
    const events = [
      {
        at: "2026-11-20T07:51:00.000Z",
        severity: "error",
        reason: "ApplyFailed",
        message: "1 of 4 objects failed",
        cluster: "c2",
      },
    ] as const;
    expect(describeSync({ sync, events, now })).toBe(`Name:        shop.web
Namespace:   payments
Group:       shop   Template: web
Cluster:     c2
Desired:     main@sha1:9f2c1ab   render sha256:77ab   by shop-12, attempt 2, assigned 07:50:00Z
Applied:     main@sha1:1b9e2d4   render sha256:51d0   2026-11-19 10:12:00Z   (not the assigned rendering)
Status:      Failed for 10m, seen 2m ago   ApplyFailed: 1 of 4 objects failed

Conditions:
  Ready  False  ApplyFailed  since 07:51:00Z (10m)  1 of 4 objects failed

Objects with problems:
  Service shop/web  Invalid: spec.ports[1].nodePort: taken

Objects: 4   ready 3   failed 1   foreign 0

Events:
  07:51:00Z  ApplyFailed  c2  1 of 4 objects failed

Next:        starling rollout status shop -n payments   (shows its progress and failures)
             starling reconcile syncgroup/shop --with-source -n payments   (after the repair in git)
`);
  });
});

describe("the next try in the description of a Sync", () => {
  test.each([
    ["later today", "2026-11-20T08:01:40.000Z", "Next try:    in 40s, at 08:01:40Z"],
    ["on another day", "2026-11-21T03:01:00.000Z", "Next try:    in 19h, at 2026-11-21 03:01:00Z"],
    ["that has passed", "2026-11-20T08:00:10.000Z", "Next try:    due since 08:00:10Z"],
  ])("the next try of a Retrying Sync is shown for a time %s", (_, nextAt, expected) => {
    const row = syncRow("c2", "shop.web", { phase: "Retrying", reason: "NoMatch", message: "no such kind" });
    if (row.observed === undefined) throw new Error("the fixture has an observation");
    const sync = groupSyncObject({ ...row, observed: { ...row.observed, nextAt } }, undefined);
    const lines = describeSync({ sync, events: [], now }).split("\n");
    expect(lines.find((line) => line.startsWith("Next try:"))).toBe(expected);
  });

  test("a Sync that is not Retrying has no line for a next try", () => {
    const row = syncRow("c2", "shop.web", { phase: "Verifying", reason: "NotReady", message: "" });
    if (row.observed === undefined) throw new Error("the fixture has an observation");
    const observed = { ...row.observed, nextAt: "2026-11-20T08:01:40.000Z" };
    expect(describeSync({ sync: groupSyncObject({ ...row, observed }, undefined), events: [], now })).not.toContain(
      "Next try",
    );
  });
});

describe("the description of a ready Sync", () => {
  test("the description lists the objects that are no longer corrected, the warnings of the API server, and the objects that are left out", () => {
    const row = syncRow("c2", "shop.web", { phase: "Ready", reason: "Ready", message: "" });
    if (row.observed === undefined) throw new Error("the fixture has an observation");
    const leftAlone = [{ object: "Deployment shop/web", reason: "Drifted", message: "somebody undoes spec.replicas" }];
    const warnings = [{ object: "Endpoints shop/a and 1 more", message: "v1 Endpoints is deprecated\u001b[2J" }];
    const desired = { ...row.desired, leftOut: ["Pod t is left out\u001b[2J: it is a hook"] };
    const since = "2026-11-20T07:00:00.000Z";
    const conditions = [{ type: "Drifted", status: "True", reason: "CorrectionsUndone", message: "", since }] as const;
    const observed = { ...row.observed, leftAlone, warnings, conditions };
    const sync = groupSyncObject({ ...row, desired, observed }, undefined);
    const text = describeSync({ sync, events: [], now });
    expect(text).toContain(
      "Status:      Drifted for 10m, seen 2m ago   Deployment shop/web has drifted: somebody undoes",
    );
    expect(text).toContain(
      "Objects not corrected any more:\n  Deployment shop/web  Drifted: somebody undoes spec.replicas\n",
    );
    expect(text).toContain("\nWarning: v1 Endpoints is deprecated\\u001b[2J (Endpoints shop/a and 1 more)\n");
    expect(text).toContain("\nNot supported:\n  Pod t is left out\\u001b[2J: it is a hook\n");
    expect(text).toContain("Name:        shop.web");
  });
});

test("a ready Sync that has drifted says so, however long ago the drift was found", () => {
  const row = syncRow("c2", "shop.web", { phase: "Ready", reason: "Ready", message: "" });
  if (row.observed === undefined) throw new Error("the fixture has an observation");
  const since = "2026-11-20T07:00:00.000Z";
  const drift = { at: since, objects: 2, corrected: false };
  const described = (status: "True" | "False") => {
    const conditions = [{ type: "Drifted", status, reason: "DriftDetected", message: "", since }];
    const observed = { ...row.observed, drift, conditions } as NonNullable<typeof row.observed>;
    return describeSync({ sync: groupSyncObject({ ...row, observed }, undefined), events: [], now });
  };
  expect(described("True")).toContain("seen 2m ago   2 objects have drifted, and Starling does not correct the drift");
  expect(described("False")).not.toContain("does not correct the drift");
});

describe("the text of a selection of clusters", () => {
  test.each<[ClusterSelection, string]>([
    [{ all: true }, "all"],
    [{ all: true, notNames: ["c1"] }, "all but c1"],
    [{ names: ["c1", "c2"] }, "c1, c2"],
    [
      {
        selector: {
          matchLabels: { env: "prod" },
          matchExpressions: [
            { key: "ring", operator: "In", values: ["a", "b"] },
            { key: "old", operator: "DoesNotExist" },
          ],
        },
      },
      "env=prod,ring in (a,b),!old",
    ],
  ])("the text of %j is %s", (selection, text) => {
    const group: SyncGroupRow = {
      ...keys.object("payments", "SyncGroup", "shop"),
      type: "SyncGroup",
      schema: 1,
      version: 1,
      uid: "uid",
      namespace: "payments",
      name: "shop",
      labels: {},
      annotations: {},
      generation: 1,
      createdAt: "2026-11-20T07:00:00.000Z",
      spec: { clusters: selection, templates: [], rollout: rolloutStrategy.parse({}) },
      operations: {},
      status: { conditions: [] },
    };
    const page = describeGroup({ object: syncGroupObject(group), events: [], failing: [], now });
    expect(page).toContain(`\nClusters:    ${text}\n`);
  });
});
