import { describe, expect, test } from "vitest";
import { stageRunEvents, syncEvents } from "#shared/fleet/rows/event-row.ts";
import { ranges } from "#shared/fleet/rows/keys.ts";
import type { StageRunPhase, StageRunRow } from "#shared/fleet/rows/rollout-rows.ts";
import { keyText } from "#shared/fleet/rows/row.ts";
import type { Phase } from "#shared/fleet/rows/sync-row.ts";
import { type observedOf, syncRowOf } from "#test/support/sync-rows.ts";

const at = "2026-11-21T08:00:00.000Z";

describe("what a Sync tells of", () => {
  test.each<[Phase, string[]]>([
    ["Applying", []],
    ["Verifying", []],
    ["Ready", ["info"]],
    ["Gone", ["info"]],
    ["Failed", ["error"]],
    ["Retrying", ["error"]],
    ["Unreachable", ["error"]],
    ["Reachable", []],
  ])("in the phase %s: %s", (phase, severities) => {
    const events = syncEvents(syncRowOf("c1", { observed: { phase } }));
    expect(events.map((event) => event.severity)).toEqual(severities);
  });

  test("nothing, before a worker has said anything", () => {
    expect(syncEvents(syncRowOf("c1"))).toEqual([]);
  });

  test("the worst object rather than the sum, with cluster, rollout and revision, for thirty days", () => {
    const problem = { object: "Deployment shop/web", reason: "ImagePullBackOff", message: "no such image" };
    const [event] = syncEvents(
      syncRowOf("c1", {
        desired: { rollout: 4, revision: "main@sha1:bbb" },
        observed: { phase: "Failed", reason: "ObjectsFailed", message: "0 of 3", since: at, problems: [problem] },
      }),
    );
    expect(event).toMatchObject({
      pk: "EVT#shop#Sync#web.app",
      sk: expect.stringMatching(`^${at}#[0-9a-f]{12}$`),
      at,
      reason: "ObjectsFailed",
      message: "Deployment shop/web: ImagePullBackOff no such image",
      cluster: "c1",
      rollout: 4,
      revision: "main@sha1:bbb",
      expiresAt: Date.parse(at) / 1000 + 30 * 86_400,
    });
  });

  test("of an object that says no more than why", () => {
    const problem = { object: "Deployment shop/web", reason: "Unschedulable", message: "" };
    const [event] = syncEvents(syncRowOf("c1", { observed: { phase: "Failed", problems: [problem] } }));
    expect(event?.message).toBe("Deployment shop/web: Unschedulable");
  });

  test("no drift, where nothing had drifted", () => {
    const drift = { at, objects: 0, corrected: false };
    expect(syncEvents(syncRowOf("c1", { observed: { phase: "Applying", drift } }))).toEqual([]);
  });

  test("drift of two clusters at one time is two rows", () => {
    const drift = { at, objects: 1, corrected: true };
    const rows = ["c1", "c2"].flatMap((cluster) =>
      syncEvents(syncRowOf(cluster, { observed: { phase: "Applying", drift } })),
    );
    expect(new Set(rows.map(keyText)).size).toBe(2);
  });

  test("told again it is the same row; another cluster, attempt or time is another", () => {
    const key = (cluster: string, observed: Parameters<typeof observedOf>[0]) =>
      syncEvents(syncRowOf(cluster, { desired: { attempt: observed.attempt ?? 1 }, observed })).map(keyText)[0];
    const first = key("c1", { since: at });
    expect(key("c1", { since: at, at: "2026-11-21T09:00:00.000Z", message: "other words" })).toBe(first);
    const others = [key("c2", { since: at }), key("c1", { since: at, attempt: 2 }), key("c1", { since: `${at}x` })];
    expect(new Set([first, ...others]).size).toBe(4);
  });

  test.each([
    [{ objects: 2, corrected: true }, "info", "DriftCorrected", "2 objects had drifted, put back"],
    [{ objects: 1, corrected: false }, "error", "DriftDetected", "1 object had drifted"],
  ] as const)("drift %j", (drift, severity, reason, message) => {
    const events = syncEvents(syncRowOf("c1", { observed: { phase: "Applying", drift: { at, ...drift } } }));
    expect(events[0]).toMatchObject({ severity, reason, message, at });
  });

  test("drift that stays is told once among the events of the group, with the Sync and its cluster", () => {
    const told = (corrected: boolean, check: string) => {
      const drift = { at, objects: 1, corrected };
      const row = syncRowOf("c1", { observed: { phase: "Ready", since: at, at: check, drift } });
      return syncEvents(row).filter(({ pk }) => pk === ranges.events(row.owner).pk);
    };
    const [event, ...others] = told(false, at);
    expect(event).toMatchObject({ reason: "DriftDetected", cluster: "c1" });
    expect(event?.message).toMatch(/^\S+\.\S+: 1 object had drifted$/);
    expect(others).toEqual([]);
    expect(told(false, "2026-11-21T09:00:00.000Z")).toEqual([event]);
    expect(told(true, at)).toEqual([]);
  });

  test("what is left alone says why", () => {
    const leftAlone = [{ object: "Deployment shop/web", reason: "Drifted", message: "somebody undoes it" }];
    const drift = { at, objects: 1, corrected: false };
    const events = syncEvents(syncRowOf("c1", { observed: { phase: "Applying", drift, leftAlone } }));
    expect(events[0]).toMatchObject({
      reason: "DriftDetected",
      message: "Deployment shop/web: somebody undoes it",
      at,
    });
  });

  test.each([
    [0, "info"],
    [2, "error"],
  ] as const)("an inventory that was rebuilt with %i members unaccounted for, once", (foreign, severity) => {
    const rebuilt = { at, reason: "BlobNotFound", message: "was lost", members: 3, foreign };
    const [event, ...others] = syncEvents(syncRowOf("c1", { observed: { phase: "Applying", rebuilt } }));
    expect(event).toMatchObject({ severity, reason: "InventoryRebuilt", message: "was lost", at });
    expect(others).toEqual([]);
  });
});

describe("what a content in a stage tells of", () => {
  const stageRun = (transitions: StageRunRow["transitions"]): StageRunRow =>
    ({ owner: { namespace: "shop", kind: "SyncGroup", name: "web" }, ...ref, transitions }) as StageRunRow;
  const ref = { rollout: 4, stage: "canary", snapshot: 1 };
  const transition = (phase: StageRunPhase, message: string) => ({ at, phase, reason: "Now", message });
  const way = [transition("Updating", "begins"), transition("Halted", "1 cluster failed")];

  test("is its newest transitions, each once", () => {
    const events = stageRunEvents(stageRun(way));
    expect(events.map(({ severity, reason, message, rollout }) => [severity, reason, message, rollout])).toEqual([
      ["info", "RolloutUpdating", "web-4: begins", 4],
      ["error", "RolloutHalted", "web-4: 1 cluster failed", 4],
    ]);
    expect(stageRunEvents({ ...stageRun(way), version: 99 }).map(keyText)).toEqual(events.map(keyText));
  });

  test("is another event for another stage, and when it took a new snapshot", () => {
    const stageRuns = [stageRun(way), { ...stageRun(way), stage: "rest" }, { ...stageRun(way), snapshot: 2 }];
    expect(new Set(stageRuns.flatMap(stageRunEvents).map(keyText)).size).toBe(6);
  });

  test("is of a long one how each phase began, too", () => {
    const more = ["2", "3", "4"].map((count) => transition("Halted", `${count} clusters failed`));
    expect(stageRunEvents(stageRun([...way, ...more])).map(({ message }) => message)).toEqual([
      "web-4: begins",
      "web-4: 1 cluster failed",
      "web-4: 2 clusters failed",
      "web-4: 3 clusters failed",
      "web-4: 4 clusters failed",
    ]);
  });

  test("is of a long one the three newest", () => {
    const events = stageRunEvents(
      stageRun(["1", "2", "3", "4", "5"].map((message) => transition("Updating", message))),
    );
    expect(events.map(({ message }) => message)).toEqual(["web-4: 1", "web-4: 3", "web-4: 4", "web-4: 5"]);
  });

  test.each<[StageRunPhase, string]>([
    ["Updating", "info"],
    ["Passed", "info"],
    ["Superseded", "info"],
    ["Halted", "error"],
    ["NothingVerified", "error"],
    ["TooManyUnreachable", "error"],
  ])("that is %s is %s", (phase, severity) => {
    expect(stageRunEvents(stageRun([transition(phase, "")]))).toMatchObject([{ severity }]);
  });
});
