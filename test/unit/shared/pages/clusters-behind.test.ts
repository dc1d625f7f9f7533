/** Clusters are behind, on the fleet page and among the versions, if they are not known to have the newest rollout. */
import { expect, test } from "vitest";
import type { Ask } from "#shared/pages/ask.ts";
import { fleetPage } from "#shared/pages/fleet-page.ts";
import { pageHost } from "#shared/pages/html-document.ts";
import { versionsPage } from "#shared/pages/versions-page.ts";
import { tableIn, textOf } from "#test/support/html-tables.ts";

const host = pageHost(new Date("2026-11-20T08:00:00.000Z"));
const at = "2026-11-20T07:00:00.000Z";
const none = { selected: 10, ready: 10, changing: 0, failed: 0, unreachable: 0, waiting: 0 };
const newest = { number: 1, revision: "main@sha1:1", at, clusters: 10, stages: ["all"] };

type Group = Readonly<Record<string, unknown>> & { readonly status: object };
function group(name: string, more: Readonly<Record<string, unknown>> = {}, status: object = {}): Group {
  const metadata = { namespace: "shop", name, generation: 1 };
  const said = { state: "Complete", conditions: [], observedGeneration: 1, clusters: none, ...status };
  return { kind: "SyncGroup", metadata, status: said, versions: [newest], bare: 0, ...more };
}

function askOf(items: readonly Group[]): Ask {
  return async <T>(path: string) => ({ items: path === "/v1/fleet" ? items : [], metadata: {} }) as T;
}

const fleet = async (...items: readonly Group[]) => (await fleetPage(askOf(items), host)).main.toString();
const noneBehind = "No cluster is behind: every cluster runs the newest rollout of its groups.";

test("no cluster is behind if every cluster of every group was seen with the newest rollout, with or without drift", async () => {
  const drifted = { state: "Drifted", clusters: { ...none, ready: 8, drifted: 2 } };
  const html = await fleet(group("a"), group("b", {}, drifted));
  expect(textOf(html)).toContain(noneBehind);
  expect(textOf(html)).toContain("18 ready");
  expect(textOf(html)).toContain("2 with drift");
});

test("targets that never had a rollout are behind, and each is counted", async () => {
  const bare = { versions: [{ ...newest, clusters: 0, stages: [] }], bare: 10 };
  const halted = { state: "Halted", clusters: { ...none, ready: 0, failed: 1, waiting: 9 } };
  const html = await fleet(group("a"), group("b", bare, halted), group("c", bare, halted));
  expect(textOf(html)).not.toContain("No cluster is behind");
  expect(tableIn(html, "Oldest revisions").map((row) => row.slice(0, 4))).toEqual([
    ["shop/b", "nothing yet", "-", "10"],
    ["shop/c", "nothing yet", "-", "10"],
  ]);
  expect(textOf(html)).toContain("10 ready2 failed0 unreachable0 changing18 waiting");
});

test("clusters that their stage passed over are behind, and are listed among the versions", async () => {
  const left = group("a", {}, { state: "Degraded", clusters: { ...none, ready: 7, unreachable: 2, waiting: 1 } });
  const html = await fleet(left);
  expect(textOf(html)).not.toContain("No cluster is behind");
  expect(tableIn(html, "Oldest revisions").map((row) => row.slice(0, 4))).toEqual([
    ["shop/a", "not seen with it", "-", "3"],
  ]);
  const versions = (await versionsPage(askOf([left]), host)).main.toString();
  expect(tableIn(versions, "Versions of a")[0]?.at(-1)).toBe("3 not seen with it yet");
});

test("a group whose clusters were never counted is not shown as up to date", async () => {
  const fresh = group("a", { versions: [], bare: 10 }, { state: undefined, clusters: undefined });
  expect(textOf(await fleet(fresh))).toContain("0 ready0 failed0 unreachable0 changing10 waiting");
  const unseen = group("a", { versions: [], bare: 0 }, { state: undefined, clusters: undefined });
  expect(textOf(await fleet(unseen))).not.toContain("No cluster is behind");
});

test("a rolling group needs attention while some of its clusters have failed or are unreachable", async () => {
  const unhealthy = { state: "Rolling", clusters: { ...none, ready: 7, failed: 1, unreachable: 2 } };
  const html = await fleet(group("a", {}, unhealthy));
  expect(textOf(html)).not.toContain("Nothing has failed");
  expect(tableIn(html, "Needs attention")).toEqual([["Rolling", "shop/a", "-", "1 failed, 2 unreachable"]]);
});

test("a group that waits for approvals needs attention, also where a guard withholds a change, and a rolling one does not", async () => {
  const status = (state: string, reason: string) => ({
    state,
    conditions: [{ type: "Ready", status: "False", reason, message: `because of ${reason}`, since: at }],
    clusters: { ...none, ready: 10 },
  });
  const html = await fleet(
    group("a", {}, status("Rolling", "RolloutGated")),
    group("b", {}, status("Guarded", "Guarded")),
    group("c", {}, status("Rolling", "Rolling")),
  );
  expect(tableIn(html, "Needs attention").map(([state, what, , why]) => [state, what, why])).toEqual([
    ["Guarded", "shop/b", "because of Guarded"],
    ["Rolling", "shop/a", "because of RolloutGated"],
  ]);
});

test("a group that waits for a missing Source needs attention, and a suspended one does not", async () => {
  const waiting = (reason: string) => ({
    state: "Waiting",
    conditions: [{ type: "Ready", status: "False", reason, message: `because of ${reason}`, since: at }],
    clusters: { ...none, ready: 0, waiting: 10 },
  });
  const html = await fleet(group("a", {}, waiting("SourceNotFound")), group("b", {}, waiting("Suspended")));
  expect(tableIn(html, "Needs attention").map(([state, what, , why]) => [state, what, why])).toEqual([
    ["Waiting", "shop/a", "because of SourceNotFound"],
  ]);
});
