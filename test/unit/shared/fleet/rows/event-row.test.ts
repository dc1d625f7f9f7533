import { describe, expect, test } from "vitest";
import { stageRunEvents, syncEvents } from "#shared/fleet/rows/event-row.ts";
import { ranges } from "#shared/fleet/rows/keys.ts";
import type { StageRunPhase, StageRunRow } from "#shared/fleet/rows/rollout-rows.ts";
import { keyText } from "#shared/fleet/rows/row.ts";
import type { Phase } from "#shared/fleet/rows/sync-row.ts";
import { type observedOf, syncRowOf } from "#test/support/sync-rows.ts";

const at = "2026-11-21T08:00:00.000Z";

describe("the events of a Sync", () => {
  test.each<[Phase, string[]]>([
    ["Applying", []],
    ["Verifying", []],
    ["Ready", ["info"]],
    ["Gone", ["info"]],
    ["Failed", ["error"]],
    ["Retrying", ["error"]],
    ["Unreachable", ["error"]],
    ["Reachable", []],
  ])("a Sync in the phase %s has events of the severities %s", (phase, severities) => {
    const events = syncEvents(syncRowOf("c1", { observed: { phase } }));
    expect(events.map((event) => event.severity)).toEqual(severities);
  });

  test("a Sync without an observation has no events", () => {
    expect(syncEvents(syncRowOf("c1"))).toEqual([]);
  });

  test("an event names the worst object, the cluster, the rollout and the revision, and is kept for thirty days", () => {
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
      message: "Deployment shop/web: ImagePullBackOff: no such image",
      cluster: "c1",
      rollout: 4,
      revision: "main@sha1:bbb",
      expiresAt: Date.parse(at) / 1000 + 30 * 86_400,
    });
  });

  test("an event about an object without a message has the object's reason", () => {
    const problem = { object: "Deployment shop/web", reason: "Unschedulable", message: "" };
    const [event] = syncEvents(syncRowOf("c1", { observed: { phase: "Failed", problems: [problem] } }));
    expect(event?.message).toBe("Deployment shop/web: Unschedulable");
  });

  test("a check without drift makes no event", () => {
    const drift = { at, objects: 0, corrected: false };
    expect(syncEvents(syncRowOf("c1", { observed: { phase: "Applying", drift } }))).toEqual([]);
  });

  test("the drift of two clusters at one time makes two events", () => {
    const drift = { at, objects: 1, corrected: true };
    const rows = ["c1", "c2"].flatMap((cluster) =>
      syncEvents(syncRowOf(cluster, { observed: { phase: "Applying", drift } })),
    );
    expect(new Set(rows.map(keyText)).size).toBe(2);
  });

  test("a repeated report makes the same event; another cluster, attempt or time makes another one", () => {
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
  ] as const)("drift %j makes an event of severity %s", (drift, severity, reason, message) => {
    const events = syncEvents(syncRowOf("c1", { observed: { phase: "Applying", drift: { at, ...drift } } }));
    expect(events[0]).toMatchObject({ severity, reason, message, at });
  });

  test("drift that lasts makes one event of the group, with the Sync and its cluster", () => {
    const groupEvents = (corrected: boolean, check: string) => {
      const drift = { at, objects: 1, corrected };
      const row = syncRowOf("c1", { observed: { phase: "Ready", since: at, at: check, drift } });
      return syncEvents(row).filter(({ pk }) => pk === ranges.events(row.owner).pk);
    };
    const [event, ...others] = groupEvents(false, at);
    expect(event).toMatchObject({ reason: "DriftDetected", cluster: "c1" });
    expect(event?.message).toMatch(/^\S+\.\S+: 1 object had drifted$/);
    expect(others).toEqual([]);
    expect(groupEvents(false, "2026-11-21T09:00:00.000Z")).toEqual([event]);
    expect(groupEvents(true, at)).toEqual([]);
  });

  test("an event about objects that are left alone says why", () => {
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
  ] as const)("a rebuilt inventory with %i unknown members makes one event of severity %s", (foreign, severity) => {
    const rebuilt = { at, reason: "BlobNotFound", message: "was lost", members: 3, foreign };
    const [event, ...others] = syncEvents(syncRowOf("c1", { observed: { phase: "Applying", rebuilt } }));
    expect(event).toMatchObject({ severity, reason: "InventoryRebuilt", message: "was lost", at });
    expect(others).toEqual([]);
  });
});

describe("the events of a stage run", () => {
  const stageRun = (transitions: StageRunRow["transitions"]): StageRunRow =>
    ({ owner: { namespace: "shop", kind: "SyncGroup", name: "web" }, ...ref, transitions }) as StageRunRow;
  const ref = { rollout: 4, stage: "canary", snapshot: 1 };
  const transition = (phase: StageRunPhase, message: string) => ({ at, phase, reason: "Now", message });
  const way = [transition("Updating", "begins"), transition("Halted", "1 cluster failed")];

  test("each of the newest transitions of a stage run makes one event", () => {
    const events = stageRunEvents(stageRun(way));
    expect(events.map(({ severity, reason, message, rollout }) => [severity, reason, message, rollout])).toEqual([
      ["info", "RolloutUpdating", "web-4: begins", 4],
      ["error", "RolloutHalted", "web-4: 1 cluster failed", 4],
    ]);
    expect(stageRunEvents({ ...stageRun(way), version: 99 }).map(keyText)).toEqual(events.map(keyText));
  });

  test("another stage and another snapshot make events of their own", () => {
    const stageRuns = [stageRun(way), { ...stageRun(way), stage: "rest" }, { ...stageRun(way), snapshot: 2 }];
    expect(new Set(stageRuns.flatMap(stageRunEvents).map(keyText)).size).toBe(6);
  });

  test("the events of a long stage run also say how each phase began", () => {
    const more = ["2", "3", "4"].map((count) => transition("Halted", `${count} clusters failed`));
    expect(stageRunEvents(stageRun([...way, ...more])).map(({ message }) => message)).toEqual([
      "web-4: begins",
      "web-4: 1 cluster failed",
      "web-4: 2 clusters failed",
      "web-4: 3 clusters failed",
      "web-4: 4 clusters failed",
    ]);
  });

  test("a long stage run makes events of its three newest transitions", () => {
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
  ])("a transition to %s has the severity %s", (phase, severity) => {
    expect(stageRunEvents(stageRun([transition(phase, "")]))).toMatchObject([{ severity }]);
  });
});
