import { describe, expect, test } from "vitest";
import {
  clusterOfKey,
  keys,
  type Owner,
  partitions,
  ranges,
  rowTypeOf,
  stateIndex,
  syncName,
} from "#shared/fleet/rows/keys.ts";
import { keyText, type RowKey, type RowRange } from "#shared/fleet/rows/row.ts";

const group: Owner = { namespace: "shop", kind: "SyncGroup", name: "web" };
const sync: Owner = { namespace: "shop", kind: "Sync", name: "tool" };
const source = { namespace: "shop", name: "app" };
const stageRun = { rollout: 17, stage: "canary", snapshot: 2 };
const at = "2026-11-21T08:00:00.000Z";

/** The keys as docs/architecture.md lists them, because people read and restore the table by these texts. */
test.each<[RowKey, string]>([
  [keys.object("shop", "Source", "app"), "NS#shop#Source|app"],
  [keys.cluster("c1"), "CL#c1|META"],
  [keys.sync("c1", "shop", "web.app"), "CL#c1|SYNC#shop#web.app"],
  [keys.lease("c1"), "CL#c1|LEASE"],
  [keys.check("c1"), "CHECK#c1|META"],
  [keys.fleet("c1"), "FLEET|c1"],
  [keys.clusterValues("eu"), "CLUSTERVALUES|eu"],
  [keys.owner(group), "OWNERS|shop#SyncGroup#web"],
  [keys.sourceEntry(source), "SOURCES|shop#app"],
  [keys.uses(source, sync), "USES#shop#app|Sync#tool"],
  [keys.repository("git.example.com/app", source), "REPO#git.example.com/app|shop#app"],
  [keys.fleetVersion(7), "FLEETVERSION|07"],
  [keys.tick, "TICK|META"],
  [keys.zone("spoke"), "ZONE#spoke|META"],
  [keys.rolloutState(group), "ROLL#shop#SyncGroup#web|STATE"],
  [keys.rollout(group, 17), "ROLL#shop#SyncGroup#web|ROLLOUT#00000017"],
  [keys.stageRun(group, stageRun), "ROLL#shop#SyncGroup#web|STAGERUN#00000017#canary#0002"],
  [keys.slot(group, "c1"), "ROLL#shop#SyncGroup#web|SLOT#c1"],
  [keys.target(sync, stageRun, "c1"), "ROLL#shop#Sync#tool|TARGET#00000017#canary#0002#c1"],
  [keys.catchUp(sync, "waiting", "c1"), "ROLL#shop#Sync#tool|CATCHUP#waiting#c1"],
  [keys.rendering("sha256:aa"), "REND#sha256:aa|META"],
  [keys.revision(source, at, "sha256:aa"), `REV#shop#app|${at}#sha256:aa`],
  [keys.event(sync, at, "0a1b"), `EVT#shop#Sync#tool|${at}#0a1b`],
])("the key %j has the text %s", (key, text) => {
  expect(keyText(key)).toBe(text);
});

/** Legal names that look like parts of keys, and the longest name. */
const hostile = [
  "META",
  "lease",
  "head",
  "00000001",
  "t",
  "sync",
  "sync-group",
  "fleet",
  "a.b.c",
  "0",
  "x".repeat(253),
];

describe.each(["app", ...hostile])("keys with the name %s", (name) => {
  const named = { namespace: name, name };
  const owners: readonly Owner[] = [
    { ...named, kind: "SyncGroup" },
    { ...named, kind: "Sync" },
  ];
  const read: readonly (readonly [string, RowKey, unknown, (key: RowKey) => unknown])[] = [
    ...(["Source", "SyncGroup", "Sync"] as const).map(
      (kind) => ["object", keys.object(name, kind, name), { ...named, kind }, keys.object.parse] as const,
    ),
    ["cluster", keys.cluster(name), { cluster: name }, keys.cluster.parse],
    ["sync", keys.sync(name, name, name), { ...named, cluster: name }, keys.sync.parse],
    ["lease", keys.lease(name), { cluster: name }, keys.lease.parse],
    ["check", keys.check(name), { cluster: name }, keys.check.parse],
    ["fleet", keys.fleet(name), { cluster: name }, keys.fleet.parse],
    ["sourceEntry", keys.sourceEntry(named), named, keys.sourceEntry.parse],
    [
      "repository",
      keys.repository(`git.example.com/${name}`, named),
      { url: `git.example.com/${name}`, source: named },
      keys.repository.parse,
    ],
    ["rendering", keys.rendering(name), { input: name }, keys.rendering.parse],
    ["pin", keys.pin(named, "v1.0.0@sha1:0a"), { ...named, revision: "v1.0.0@sha1:0a" }, keys.pin.parse],
    ["revision", keys.revision(named, at, name), { ...named, at, digest: name }, keys.revision.parse],
    ...owners.flatMap((owner) => [
      ["owner", keys.owner(owner), owner, keys.owner.parse] as const,
      ["uses", keys.uses(named, owner), { source: named, owner }, keys.uses.parse] as const,
      ["rolloutState", keys.rolloutState(owner), owner, keys.rolloutState.parse] as const,
      ["rollout", keys.rollout(owner, 17), { owner, number: 17 }, keys.rollout.parse] as const,
      [
        "stageRun",
        keys.stageRun(owner, { ...stageRun, stage: name }),
        { owner, stageRun: { ...stageRun, stage: name } },
        keys.stageRun.parse,
      ] as const,
      ["slot", keys.slot(owner, name), { owner, cluster: name }, keys.slot.parse] as const,
      ["target", keys.target(owner, stageRun, name), { owner, stageRun, cluster: name }, keys.target.parse] as const,
      [
        "catchUp",
        keys.catchUp(owner, "failed", name),
        { owner, state: "failed", cluster: name },
        keys.catchUp.parse,
      ] as const,
      ["event", keys.event(owner, at, name), { ...owner, at, id: name }, keys.event.parse] as const,
    ]),
  ];

  test.each(read)("the key of a %s is parsed into its parts", (_kind, key, parts, parse) => {
    expect(parse(key)).toEqual(parts);
  });

  test.each(read)("the key of a %s is not parsed as any other kind", (kind, key) => {
    const readers = new Map(read.map(([other, , , parse]) => [other, parse]));
    const readable = [...readers].flatMap(([other, parse]) => (parse(key) === undefined ? [] : [other]));
    expect(readable).toEqual([kind]);
  });
});

/** No name of Starling has a `#`; otherwise a key could be read as another row. */
test.each<[string, RowKey]>([
  ["a namespace", keys.object("a#b", "Source", "c")],
  ["a name", keys.object("a", "Source", "b#c")],
  ["a name that adds a part", keys.object("a#SyncGroup", "Sync", "b")],
  ["a Sync's namespace", keys.sync("c1", "a#b", "c")],
  ["a Sync's name", keys.sync("c1", "a", "b#c")],
  ["a cluster", keys.sync("c#1", "a", "b")],
  ["a target's cluster", keys.target(sync, stageRun, "a#b")],
  ["a slot's cluster", keys.slot(sync, "a#b")],
  ["a stage run's stage", keys.stageRun(sync, { ...stageRun, stage: "a#b" })],
])("a key with a # in %s is not parsed at all", (_what, key) => {
  const kinds = [
    keys.object,
    keys.sync,
    keys.target,
    keys.stageRun,
    keys.slot,
    keys.catchUp,
    keys.rolloutState,
    keys.cluster,
  ];
  const parsers = kinds.map(({ parse }) => parse);
  expect(parsers.map((parse) => parse(key))).toEqual(parsers.map(() => undefined));
});

test.each<[string, RowKey, (key: RowKey) => unknown]>([
  ["a rollout without a number", { ...keys.rolloutState(group), sk: "ROLLOUT#-1" }, keys.rollout.parse],
  [
    "a stage run without a snapshot",
    { ...keys.rolloutState(group), sk: "STAGERUN#00000017#canary#x" },
    keys.stageRun.parse,
  ],
  ["a target without a number", { ...keys.rolloutState(group), sk: "TARGET#x#canary#0002#c1" }, keys.target.parse],
  ["a rollout state without an owner", { pk: "ROLL#shop#Source#app", sk: "STATE" }, keys.rolloutState.parse],
  ["an entry without an owner", { pk: "OWNERS", sk: "shop#Source#app" }, keys.owner.parse],
  ["a use without an owner", { pk: "USES#shop#app", sk: "Source#app" }, keys.uses.parse],
  ["an object without a kind", { pk: "NS#shop#Cluster", sk: "c1" }, keys.object.parse],
])("the key of %s is not parsed", (_what, key, parse) => {
  expect(parse(key)).toBeUndefined();
});

test("reading a key of another form than its row fails", () => {
  expect(keys.sync.read(keys.sync("c1", "shop", "web.app"))).toEqual({
    cluster: "c1",
    namespace: "shop",
    name: "web.app",
  });
  expect(() => keys.sync.read(keys.lease("c1"))).toThrow("the key CL#c1|LEASE is of another form than its row");
});

test.each<[RowKey, string | undefined]>([
  [keys.object("shop", "Source", "app"), "Source"],
  [keys.object("shop", "SyncGroup", "app"), "SyncGroup"],
  [keys.object("shop", "Sync", "app"), "Sync"],
  [keys.cluster("c1"), "Cluster"],
  [keys.sync("c1", "shop", "web.app"), "SyncOnCluster"],
  [keys.lease("c1"), "Lease"],
  [keys.freezeState, "Freezes"],
  [keys.fleet("META"), "Fleet"],
  [keys.owner(group), "Directory"],
  [keys.sourceEntry(source), "Directory"],
  [keys.uses(source, sync), "Directory"],
  [keys.repository("git.example.com/app", source), "Directory"],
  [keys.fleetVersion(7), "FleetVersion"],
  [keys.tick, "Tick"],
  [keys.zone("META"), "Zone"],
  [keys.rolloutState(group), "RolloutState"],
  [keys.rollout(group, 17), "Rollout"],
  [keys.stageRun(group, stageRun), "StageRun"],
  [keys.slot(group, "c1"), "Slot"],
  [keys.target(sync, stageRun, "c1"), "Target"],
  [keys.catchUp(sync, "failed", "c1"), "CatchUp"],
  [keys.alarms(sync, { rollout: 1, stage: "canary", snapshot: 2 }), "Alarms"],
  [keys.rendering("sha256:aa"), "Rendering"],
  [keys.revision(source, at, "sha256:aa"), "Revision"],
  [keys.event(sync, at, "0a1b"), "Event"],
  [{ pk: "NS#shop#Cluster", sk: "c1" }, undefined],
  [{ pk: "OTHER", sk: "META" }, undefined],
])("the key %j belongs to a row of the type %s", (key, type) => {
  expect(rowTypeOf(key)).toBe(type);
});

test("the cluster of a key can be read, and a key without a cluster is refused", () => {
  const rows = [keys.cluster("c1"), keys.sync("c1", "shop", "web.app"), keys.lease("c1"), keys.fleet("c1")];
  expect(rows.map(clusterOfKey)).toEqual(["c1", "c1", "c1", "c1"]);
  expect(() => clusterOfKey(keys.freezeState)).toThrow("FREEZES|META");
});

/** A range, the keys in it, and keys that are next to it. */
test.each<[string, RowRange<string>, readonly RowKey[], readonly RowKey[]]>([
  [
    "objects of a kind",
    ranges.objects("shop", "Sync"),
    [keys.object("shop", "Sync", "a"), keys.object("shop", "Sync", "z")],
    [keys.object("shop", "SyncGroup", "a"), keys.object("shop2", "Sync", "a")],
  ],
  [
    "everything about a cluster",
    ranges.cluster("c1"),
    [keys.cluster("c1"), keys.lease("c1"), keys.sync("c1", "shop", "a")],
    [keys.cluster("c11"), keys.fleet("c1")],
  ],
  [
    "Syncs on a cluster",
    ranges.syncsOn("c1"),
    [keys.sync("c1", "a", "b"), keys.sync("c1", "shop", "b")],
    [keys.cluster("c1"), keys.lease("c1"), keys.sync("c11", "a", "b")],
  ],
  [
    "Syncs of a namespace on a cluster",
    ranges.syncsOn("c1", "shop"),
    [keys.sync("c1", "shop", "b")],
    [keys.sync("c1", "shop2", "b"), keys.sync("c1", "sho", "b")],
  ],
  ["the fleet", ranges.fleet, [keys.fleet("c1")], [keys.cluster("c1")]],
  ["all owners", ranges.owners(), [keys.owner(group), keys.owner(sync)], [keys.sourceEntry(source)]],
  [
    "owners of a namespace",
    ranges.owners("shop"),
    [keys.owner(group)],
    [keys.owner({ ...group, namespace: "shop2" }), keys.owner({ ...group, namespace: "sho" })],
  ],
  ["all Sources", ranges.sources, [keys.sourceEntry(source)], [keys.owner(group)]],
  [
    "owners that use a Source",
    ranges.uses(source),
    [keys.uses(source, group), keys.uses(source, sync)],
    [keys.uses({ ...source, name: "app2" }, group)],
  ],
  [
    "Sources that follow a repository",
    ranges.repository("git.example.com/app"),
    [keys.repository("git.example.com/app", source)],
    [keys.repository("git.example.com/app2", source)],
  ],
  [
    "the stage runs of a rollout",
    ranges.stageRuns(group, 17),
    [
      keys.stageRun(group, stageRun),
      keys.stageRun(group, { ...stageRun, stage: "a" }),
      keys.stageRun(group, { ...stageRun, snapshot: 1 }),
    ],
    [keys.stageRun(group, { ...stageRun, rollout: 18 }), keys.rollout(group, 17), keys.target(group, stageRun, "a")],
  ],
  [
    "slots",
    ranges.slots(group),
    [keys.slot(group, "a"), keys.slot(group, "zz-9")],
    [keys.rolloutState(group), keys.slot(sync, "a"), keys.catchUp(group, "waiting", "a")],
  ],
  [
    "targets of a stage run",
    ranges.targets(group, stageRun),
    [keys.target(group, stageRun, "a"), keys.target(group, stageRun, "zz-9")],
    [
      keys.target(group, { ...stageRun, rollout: 1 }, "a"),
      keys.target(group, { ...stageRun, stage: "canary-2" }, "a"),
      keys.target(group, { ...stageRun, snapshot: 1 }, "a"),
      keys.target(sync, stageRun, "a"),
      keys.stageRun(group, stageRun),
    ],
  ],
  [
    "catch-ups in one state",
    ranges.catchUps(group, "waiting"),
    [keys.catchUp(group, "waiting", "a")],
    [keys.catchUp(group, "failed", "a"), keys.catchUp(sync, "waiting", "a")],
  ],
  [
    "catch-ups that were tried without success",
    ranges.catchUpsTried(group),
    [keys.catchUp(group, "failed", "a"), keys.catchUp(group, "failed", "zz-9"), keys.catchUp(group, "away", "a")],
    [keys.catchUp(group, "waiting", "a"), keys.catchUp(sync, "failed", "a"), keys.catchUp(sync, "away", "a")],
  ],
  ["events", ranges.events(sync), [keys.event(sync, at, "1")], [keys.event({ ...sync, name: "tool2" }, at, "1")]],
])(
  "the range of %s has exactly its keys",
  (_what, { pk, prefix = "", between: [from, to] = ["", "\uffff"] }, inside, outside) => {
    const holds = (key: RowKey) => key.pk === pk && key.sk.startsWith(prefix) && key.sk >= from && key.sk <= to;
    expect(inside.map(holds)).toEqual(inside.map(() => true));
    expect(outside.map(holds)).toEqual(outside.map(() => false));
  },
);

/** A policy that grants too much would allow to write one kind of row as another. */
test("partitions have names by which policies can grant them", () => {
  expect(partitions).toEqual({
    sources: "NS#*#Source",
    receivers: "NS#*#Receiver",
    receiverEntries: "RECEIVERS",
    deliveries: "DELIVERIES#*",
    windows: "WINDOWS",
    windowState: "WINDOWSTATE",
    cordonState: "CORDONSTATE",
    syncGroups: "NS#*#SyncGroup",
    syncs: "NS#*#Sync",
    clusters: "CL#*",
    zones: "ZONE#*",
    checks: "CHECK#*",
    freezeState: "FREEZES",
    hostLimits: "LIMIT#*",
    fleet: "FLEET",
    fleetVersion: "FLEETVERSION",
    tick: "TICK",
    discoveries: "DISCOVERIES",
    found: "FOUND",
    clusterValues: "CLUSTERVALUES",
    ownerEntries: "OWNERS",
    sourceEntries: "SOURCES",
    uses: "USES#*",
    repositories: "REPO#*",
    rollouts: "ROLL#*",
    renderings: "REND#*",
    revisions: "REV#*",
    pins: "PIN#*",
    events: "EVT#*",
  });
});

test("the index of states has a partition for each owner, and sorts by state", () => {
  expect([stateIndex.pk(group), stateIndex.pk(sync)]).toEqual(["S#shop#SyncGroup#web", "S#shop#Sync#tool"]);
  const sort = stateIndex.sk("Ready", { cluster: "c1", name: "web.app" });
  expect(sort).toBe("Ready#c1#web.app");
  expect(stateIndex.parse(sort)).toEqual({ state: "Ready", cluster: "c1", sync: "web.app" });
  expect(stateIndex.parse("Ready#c1")).toBeUndefined();
  expect(stateIndex.range(group)).toEqual({ index: "state", pk: "S#shop#SyncGroup#web" });
  expect(stateIndex.range(group, "Ready")).toEqual({ index: "state", pk: "S#shop#SyncGroup#web", prefix: "Ready#" });
  // An attempt goes through these states without another entry in the index.
  for (const state of ["Assigned", "Applying", "Verifying"]) {
    expect(stateIndex.sk(state, { cluster: "c1", name: "web.app" })).toBe("Changing#c1#web.app");
    expect(stateIndex.range(group, state)).toMatchObject({ prefix: "Changing#" });
  }
  expect(stateIndex.sk("Retrying", { cluster: "c1", name: "web.app" })).toBe("Retrying#c1#web.app");
});

test("a Sync on a cluster is named after its group and template, or has its user's name", () => {
  expect([syncName(group, "app"), syncName(sync, "app")]).toEqual(["web.app", "tool"]);
});
