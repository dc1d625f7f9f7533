import { expect, test } from "vitest";
import type { StageRunPhase } from "#shared/fleet/rows/rollout-rows.ts";
import { type Ask, Refusal } from "#shared/pages/ask.ts";
import { pageHost } from "#shared/pages/html-document.ts";
import { rolloutsPage } from "#shared/pages/rollouts-page.ts";

const owner = { kind: "SyncGroup", namespace: "payments", name: "shop" } as const;
const counts = { Waiting: 1, Rendering: 0, Assigned: 0, Succeeded: 0, Unchanged: 0, Failed: 0, Unreachable: 0 };

/** A group whose only stage has a stage run in this phase. */
function apiOf(phase: StageRunPhase): Ask {
  const allows = { failures: 0, unreachable: 0 };
  const updatingTo = {
    rollout: 2,
    phase,
    counts,
    allows,
    preexistingFailures: 0,
    size: 1,
    since: "2026-11-20T07:00:00.000Z",
    message: "",
  };
  const stages = [{ name: "all", members: 1, current: 1, changing: 0, updatingTo }];
  const strategy = { maxConcurrent: 1, maxFailures: 0, maxUnreachable: 0 };
  const status = { rollouts: [], stages, slots: { used: 0, bound: 1 }, catchUps: {}, waits: [] };
  const metadata = { namespace: "payments", name: "shop", generation: 1 };
  const path = "/v1/namespaces/payments/syncgroups/shop";
  const answers: Readonly<Record<string, unknown>> = {
    [path]: { kind: "SyncGroup", metadata, status: { state: "Rolling", conditions: [] } },
    [`${path}/rollout`]: { spec: { owner, strategy }, status },
    [`${path}/events`]: { items: [], metadata: {} },
    [`${path}/rollouts/2/targets`]: { items: [], metadata: {} },
  };
  return async <T>(asked: string) => {
    if (answers[asked] === undefined) throw new Refusal(404, "there is none");
    return answers[asked] as T;
  };
}

test.each<readonly [StageRunPhase, string]>([
  ["Gated", "busy"],
  ["Updating", "busy"],
  ["Baking", "busy"],
  ["Halted", "bad"],
  ["GateFailed", "bad"],
  ["Rejected", "bad"],
])("the page of a group marks a stage that is %s as %s", async (phase, tone) => {
  const { main } = await rolloutsPage(apiOf(phase), owner, pageHost(new Date("2026-11-20T08:00:00.000Z")));
  const stages = `${main}`.split("<caption>Stages in their order</caption>")[1] ?? "";
  expect(/class="state (\w+)"/.exec(stages)?.[1]).toBe(tone);
});
