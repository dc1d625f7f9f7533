/** The plan of the local machine has what the templates of the stacks have. */
import { describe, expect, test } from "vitest";
import { largeAccount } from "#local/machine/plan-overrides.ts";
import type { Template } from "#local/template/cloudformation.ts";
import { readPlan } from "#local/template/read-plan.ts";
import { gatewayRouteKeys } from "#shared/fleet/api/api-routes.ts";
import { synthesizeTemplates } from "#test/synth/synthesized.ts";

const { state, control } = await synthesizeTemplates(largeAccount);
const plan = readPlan({
  "starling-state": state.toJSON() as Template,
  "starling-control": control.toJSON() as Template,
});
const folderOf = (name: string) => plan.functions.find((lambda) => lambda.name === name)?.folder;

describe("the plan of the machine", () => {
  test("the plan has every function, and lets the functions in a circle of messages invoke each other again", () => {
    const limits = plan.functions.map(({ folder, timeoutSeconds, memoryMiB, recursiveLoop }) => [
      folder,
      timeoutSeconds,
      memoryMiB,
      recursiveLoop,
    ]);
    expect(limits).toEqual([
      ["tick", 55, 512, "terminate"],
      ["api", 29, 512, "terminate"],
      ["webhook", 10, 512, "terminate"],
      ["discover", 60, 1024, "terminate"],
      ["resolve", 180, 2048, "allow"],
      ["rollout", 30, 1769, "allow"],
      ["build", 100, 1769, "terminate"],
      ["render", 120, 512, "allow"],
      ["apply", 300, 1024, "allow"],
      ["report", 60, 512, "allow"],
      ["dashboard", 20, 1024, "terminate"],
    ]);
  });

  test("the plan has sandboxes per tenant only for the function that reads repositories", () => {
    expect(plan.functions.filter(({ tenancy }) => tenancy === "per tenant").map(({ folder }) => folder)).toEqual([
      "build",
    ]);
  });

  test("the plan feeds functions from queues with five tries or more, which hide a message longer than a timeout", () => {
    const fed = plan.eventSources.map((source) => {
      const queue = plan.queues.find(({ name }) => name === source.queue);
      const lambda = plan.functions.find(({ name }) => name === source.function);
      expect(queue?.visibilityTimeoutSeconds).toBeGreaterThan(lambda?.timeoutSeconds ?? 0);
      // These queues bring a message back after seconds, so they try more often.
      expect(queue?.redrive?.maxReceiveCount).toBe({ rollout: 12, apply: 7 }[lambda?.folder ?? ""] ?? 5);
      expect(plan.queues.some(({ name }) => name === queue?.redrive?.queue)).toBe(true);
      return [lambda?.folder, queue?.fifo, source.batchSize, source.batchingWindowSeconds, source.maximumConcurrency];
    });
    expect(fed).toEqual([
      ["discover", false, 1, 0, 2],
      ["resolve", false, 1, 0, 10],
      ["rollout", true, 10, 0, 20],
      ["render", false, 1, 0, 10],
      ["apply", false, 1, 0, 200],
      ["apply", false, 1, 0, 50],
      ["report", false, 100, 1, 5],
    ]);
  });

  test("the plan lets another planner continue with an owner 40 seconds after a planner has died", () => {
    const queue = plan.queues.find(({ fifo, redrive }) => fifo && redrive !== undefined);
    expect(queue?.visibilityTimeoutSeconds).toBe(40);
  });

  test("the plan has the routes and the schedule", () => {
    expect(plan.routes.map((route) => [route.routeKey, folderOf(route.function), route.authorization])).toEqual([
      ...gatewayRouteKeys().map((key) => [key, "api", "iam"]),
      ["POST /hook/{host}", "webhook", "none"],
      ["POST /hook/r/{receiver}", "webhook", "none"],
    ]);
    expect(
      plan.schedules.map((schedule) => [folderOf(schedule.function), schedule.everySeconds, schedule.input]),
    ).toEqual([["tick", 60, {}]]);
    const dead = expect.stringMatching(/EveryMinuteDeadLetters/);
    expect(plan.schedules.map(({ failures }) => failures)).toEqual([dead]);
  });

  test("the plan has one table, one bucket and one secret", () => {
    expect(plan.tables.map(({ name }) => name)).toEqual([expect.stringMatching(/^starling-state-Table/)]);
    expect(plan.buckets.map(({ name }) => name)).toEqual([expect.stringMatching(/^starling-state-blobs[0-9a-f]+$/)]);
    expect(plan.secrets.map(({ secretName }) => secretName)).toEqual(["starling/webhook"]);
  });
});
