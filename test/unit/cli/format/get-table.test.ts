import { describe, expect, test } from "vitest";
import { getTable, worstObjectsFirst } from "#cli/format/get-table.ts";
import { formatTable } from "#cli/format/table.ts";
import type { KindName } from "#cli/session/kind-names.ts";
import {
  type AnyObject,
  clusterObject,
  groupSyncObject,
  sourceObject,
  syncGroupObject,
} from "#shared/fleet/api/objects.ts";
import { rolloutObject } from "#shared/fleet/api/rollout-object.ts";
import { rolloutStrategy } from "#shared/fleet/kinds/sync-group.ts";
import type { ClusterRow, SourceRow, SyncGroupRow } from "#shared/fleet/rows/object-rows.ts";
import { revisionText } from "#shared/words/revision-text.ts";
import { rolloutRow, stageRecord, stageRunRow, syncRow } from "#test/unit/functions/api/row-fixture.ts";

const now = new Date("2026-11-20T08:01:00Z");
const row = {
  pk: "",
  sk: "",
  schema: 1,
  version: 1,
  uid: "uid",
  labels: {},
  annotations: {},
  generation: 1,
  createdAt: "2026-11-20T07:00:00.000Z",
  operations: {},
} as const;

const group: SyncGroupRow = {
  ...row,
  type: "SyncGroup",
  namespace: "payments",
  name: "shop",
  spec: {
    clusters: { all: true },
    templates: [{ name: "web", source: "app", path: ".", apply: { prune: true, drift: "correct", interval: "10m" } }],
    rollout: rolloutStrategy.parse({}),
  },
  status: {
    revision: "main@sha1:9f2c1ab0000000000000000000000000000000000",
    rollout: 12,
    stages: [
      { name: "canary", current: 12 },
      { name: "early", current: 10, updatingTo: 11 },
      { name: "rest", current: 10 },
    ],
    state: "Rolling",
    clusters: { selected: 36, ready: 9, changing: 2, failed: 0, unreachable: 1, waiting: 24 },
    asOf: "2026-11-20T08:00:57.000Z",
    conditions: [
      { type: "Ready", status: "False", reason: "Rolling", message: "9 of 36", since: "2026-11-20T07:58:00.000Z" },
    ],
  },
};

function table(kind: KindName, objects: readonly AnyObject[], width: "normal" | "wide" = "normal"): string {
  return formatTable(getTable(kind, objects, { now, width, namespaces: "all" }), { headers: "show" });
}

describe("the table of `starling get`", () => {
  test("the table shows SyncGroups, the worst first, and names the person who suspended one", () => {
    const suspended = syncGroupObject({
      ...group,
      name: "search",
      operations: {
        suspended: {
          by: "arn:aws:sts::111122223333:assumed-role/sre/ana",
          at: "2026-11-20T07:56:00.000Z",
          number: 1,
          reason: "INC-4711",
        },
      },
    });
    const halted = syncGroupObject({ ...group, name: "addons", status: { ...group.status, state: "Halted" } });
    const fresh = syncGroupObject({ ...group, name: "fresh", status: { conditions: [] } });
    expect(table("SyncGroup", worstObjectsFirst([fresh, syncGroupObject(group), suspended, halted]))).toBe(
      `NAMESPACE  NAME    REVISION           ROLLOUT    STAGE      READY  CHANGING  FAILED  UNREACH  STATE      FOR  SEEN
payments   addons  main@sha1:9f2c1ab  addons-12  2/3 early  9/36   2         0       1        Halted     3m   3s    9 of 36
payments   search  main@sha1:9f2c1ab  search-12  2/3 early  9/36   2         0       1        Suspended  5m   3s    by sre/ana: INC-4711
payments   shop    main@sha1:9f2c1ab  shop-12    2/3 early  9/36   2         0       1        Rolling    3m   3s
payments   fresh   -                  -          -          -      -         -       -        Pending    -    -
`,
    );
  });

  type Stages = NonNullable<SyncGroupRow["status"]["stages"]>;
  test.each<[string, Stages, string, string]>([
    ["no rollout has passed a stage", [{ name: "all" }], "1/1 all", "all -"],
    [
      "all stages have the newest rollout",
      [
        { name: "canary", current: 12 },
        { name: "rest", current: 12 },
      ],
      "-",
      "canary 12, rest 12",
    ],
    [
      "the first stage is updating to the newest rollout",
      [
        { name: "canary", current: 11, updatingTo: 12 },
        { name: "rest", current: 11 },
      ],
      "1/2 canary",
      "canary 11→12, rest 11",
    ],
    [
      "the last stage waits for the newest rollout",
      [
        { name: "canary", current: 12 },
        { name: "rest", current: 11 },
      ],
      "2/2 rest",
      "canary 12, rest 11",
    ],
    [
      "several stages are updating",
      [
        { name: "canary", updatingTo: 12 },
        { name: "early", current: 10, updatingTo: 11 },
        { name: "rest", current: 9, updatingTo: 10 },
      ],
      "1/3 canary +2",
      "canary -→12, early 10→11, rest 9→10",
    ],
  ])("the table shows the stage of a group when %s", (_what, stages, stage, current) => {
    const { columns, rows } = getTable(
      "SyncGroup",
      [syncGroupObject({ ...group, status: { ...group.status, stages } })],
      {
        now,
        width: "wide",
        namespaces: "one",
      },
    );
    const cell = (name: string) => rows[0]?.[columns.indexOf(name)];
    expect([cell("STAGE"), cell("CURRENT")]).toEqual([stage, current]);
  });

  test("the table shows Syncs with their clusters, and the reason why a Sync is not ready", () => {
    const syncs = [
      groupSyncObject(syncRow("c10", "shop.web"), undefined),
      groupSyncObject(syncRow("c9", "shop.web"), undefined),
      groupSyncObject(
        syncRow("c2", "shop.web", {
          phase: "Failed",
          reason: "ApplyFailed",
          message:
            "Service shop/web: spec.ports[1].nodePort: 31443: provided port is already allocated by another Service",
        }),
        undefined,
      ),
    ];
    expect(table("Sync", worstObjectsFirst(syncs))).toBe(
      `NAMESPACE  NAME      CLUSTER  REVISION  READY  STATE   FOR  SEEN
payments   shop.web  c2       -         3/4    Failed  10m  2m    ApplyFailed: Service shop/web: spec.ports[1].nodePort: 31443: provided port is already allocated by another Service
payments   shop.web  c9       -         4/4    Ready   10m  2m
payments   shop.web  c10      -         4/4    Ready   10m  2m
`,
    );
    expect(table("Sync", syncs, "wide")).toContain("already allocated by another Service\n");
  });

  test("the table shows Sources, Clusters and Rollouts", () => {
    const source: SourceRow = {
      ...row,
      type: "Source",
      namespace: "payments",
      name: "app",
      spec: { git: { url: "https://github.com/acme/app" }, paths: ["."], interval: "5m" },
      status: {
        attemptedAt: "2026-11-20T08:00:40.000Z",
        staleSince: "2026-11-20T05:56:00.000Z",
        conditions: [
          {
            type: "Ready",
            status: "False",
            reason: "GitAuthenticationFailed",
            message: "401 from github.com",
            since: "2026-11-20T06:00:00.000Z",
          },
        ],
      },
    };
    expect(table("Source", [sourceObject(source)])).toBe(
      `NAMESPACE  NAME  REVISION  STATE     FOR   SEEN
payments   app   -         NotReady  121m  20s   GitAuthenticationFailed: 401 from github.com
`,
    );
    expect(table("Source", [sourceObject(source)], "wide")).toContain("FOR   SEEN  STALE  URL");
    expect(table("Source", [sourceObject(source)], "wide")).toContain("121m  20s   125m   https://github.com/acme/app");
    const cluster: ClusterRow = {
      ...row,
      type: "Cluster",
      name: "c1",
      labels: { ring: "canary" },
      spec: { endpoint: { server: "https://c1.example.com:6443", token: { secret: "c1" } } },
      status: {
        uid: "6f0c",
        lastSeenAt: "2026-11-20T08:00:48.000Z",
        conditions: [
          { type: "Reachable", status: "True", reason: "Answers", message: "", since: "2026-11-18T08:01:00.000Z" },
        ],
      },
    };
    expect(table("Cluster", [clusterObject(cluster, "starling")])).toBe(
      `NAME  VERSION  STATE  FOR  SEEN  SYNCS  LABELS
c1    -        Ready  2d   12s   0/0    ring=canary
`,
    );
    const canary = stageRunRow({ rollout: 12, stage: "canary" }, ["Succeeded"]);
    const rest = stageRunRow({ rollout: 12, stage: "rest" }, ["Failed", "Waiting"]);
    const rollout = rolloutRow(12);
    const stages = [stageRecord(canary), stageRecord(rest)];
    const early = [
      { ...stageRecord(canary, { members: 4 }), current: 13 },
      { name: "rest", members: 9, changing: 0, failedCatchUps: 0 },
    ];
    const rollouts = [
      rolloutObject({ rollout, stages, stageRuns: [canary, rest] }),
      rolloutObject({ rollout: rolloutRow(11), stages: early, stageRuns: [{ ...canary, rollout: 11 }] }),
    ];
    expect(table("Rollout", rollouts)).toBe(
      `NAMESPACE  NAME     REVISION           TRIGGER  STAGE       DONE  FAILED  STATE       FOR  AGE
payments   shop-12  main@sha1:9f2c1ab  plan     2/2 rest    1/3   1       Rolling     16m  16m
payments   shop-11  main@sha1:9f2c1ab  plan     1/1 canary  1/1   0       Superseded  10m  16m  Newer: stage rest takes a newer rollout instead
`,
    );
  });

  test.each([
    [undefined, "-"],
    ["main@sha1:9f2c1ab8d0000000000000000000000000000000", "main@sha1:9f2c1ab"],
    ["v1.2.0@sha1:9f2c1ab8d0000000000000000000000000000000", "v1.2.0@sha1:9f2c1ab"],
    ["sha1:9f2c1ab8d0000000000000000000000000000000", "sha1:9f2c1ab"],
  ])("the table shortens the revision %s to %s", (revision, text) => {
    expect(revisionText(revision)).toBe(text);
  });
});
