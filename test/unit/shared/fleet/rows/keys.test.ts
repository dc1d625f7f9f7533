import { expect, test } from "vitest";
import { keys, type Subject, statePartition, syncName, targetRange } from "#shared/fleet/rows/keys.ts";
import { keyText, type RowKey } from "#shared/fleet/rows/row.ts";

const group: Subject = { namespace: "shop", kind: "SyncGroup", name: "web" };
const sync: Subject = { namespace: "shop", kind: "Sync", name: "tool" };
const source = { namespace: "shop", name: "app" };
const at = "2026-11-21T08:00:00.000Z";

/** As docs/architecture.md has them: whoever reads a table by hand, or restores one, finds rows by these. */
test.each<[RowKey, string]>([
  [keys.object("shop", "Source", "app"), "NS#shop#Source|app"],
  [keys.cluster("c1"), "CL#c1|META"],
  [keys.sync("c1", "shop", "web.app"), "CL#c1|SYNC#shop#web.app"],
  [keys.lease("c1"), "CL#c1|LEASE"],
  [keys.fleet("c1"), "FLEET|c1"],
  [keys.subject(group), "SUBJECTS|shop#SyncGroup#web"],
  [keys.sourceEntry(source), "SOURCES|shop#app"],
  [keys.uses(source, sync), "USES#shop#app|Sync#tool"],
  [keys.repository("git.example.com/app", source), "REPO#git.example.com/app|shop#app"],
  [keys.head(group), "ROLL#shop#SyncGroup#web|HEAD"],
  [keys.rollout(group, 17), "ROLL#shop#SyncGroup#web|00000017"],
  [keys.target(sync, 17, { order: 4, cluster: "c1" }), "ROLL#shop#Sync#tool|00000017#T#000004#c1"],
  [keys.rendering("sha256:aa"), "REND#sha256:aa|META"],
  [keys.revision(source, at, "sha256:aa"), `REV#shop#app|${at}#sha256:aa`],
  [keys.event(sync, at, "0a1b"), `EVT#shop#Sync#tool|${at}#0a1b`],
])("the key %j reads %s", (key, text) => {
  expect(keyText(key)).toBe(text);
});

test("the range of orders holds every cluster of the last one, and no other rollout's", () => {
  const [from, to] = targetRange(2, { from: 3, to: 11 });
  const held = (rollout: number, order: number, cluster: string) => {
    const { sk } = keys.target(group, rollout, { order, cluster });
    return sk >= from && sk <= to;
  };
  expect([from, to]).toEqual(["00000002#T#000003", "00000002#T#000011#\uffff"]);
  expect([held(2, 3, "a"), held(2, 10, "a"), held(2, 11, "zz-9")]).toEqual([true, true, true]);
  expect([held(2, 2, "zz-9"), held(2, 12, "a"), held(1, 5, "a"), held(3, 5, "a")]).toEqual([
    false,
    false,
    false,
    false,
  ]);
});

test("the index of states has a partition for each subject", () => {
  expect([statePartition(group), statePartition(sync)]).toEqual(["S#shop#SyncGroup#web", "S#shop#Sync#tool"]);
});

test("a Sync on a cluster is called after its group and template, or as its user called it", () => {
  expect([syncName(group, "app"), syncName(sync, "app")]).toEqual(["web.app", "tool"]);
});
