import { describe, expect, test } from "vitest";
import type { ManifestObject } from "#shared/kube/kube-object.ts";
import { clusterTargets } from "#test/contract/targets.ts";
import { clusterFixture, configMap, manifest, namespace } from "#test/support/cluster-fixture.ts";
import { forAllTests } from "#test/support/for-tests.ts";
import { WorkerWorld } from "#test/support/worker-world.ts";

describe.each(clusterTargets)("a Job that removes itself, on $name", ({ start }) => {
  const cluster = forAllTests(async () => clusterFixture(await start()));
  const pathOf = (name: string) => `/apis/batch/v1/namespaces/${name}/jobs/migrate`;
  const at = "2026-11-20T08:00:10Z";
  const condition = (type: string, reason: string) => ({ type, status: "True", reason, lastTransitionTime: at });

  async function applied(name: string, ttlSecondsAfterFinished = 30): Promise<WorkerWorld> {
    const world = await new WorkerWorld({ connect: async () => cluster.client, distrust() {} }).begin();
    const template = { spec: { restartPolicy: "Never", containers: [{ name: "m", image: "m:1" }] } };
    const job = manifest({
      apiVersion: "batch/v1",
      kind: "Job",
      metadata: { name: "migrate", namespace: name },
      spec: { ttlSecondsAfterFinished, backoffLimit: 0, template },
    });
    objects = [namespace(name), job];
    await world.assign(name, objects);
    await world.work();
    expect(await world.phase(name)).toBe("Verifying");
    return world;
  }
  /** The objects that were assigned last. */
  let objects: readonly ManifestObject[] = [];

  async function complete(name: string): Promise<void> {
    const status = {
      startTime: "2026-11-20T08:00:00Z",
      completionTime: at,
      succeeded: 1,
      uncountedTerminatedPods: {},
      conditions: [condition("SuccessCriteriaMet", "CompletionsReached"), condition("Complete", "CompletionsReached")],
    };
    await cluster.raw("PATCH", `${pathOf(name)}/status`, { as: "merge-patch", body: { status } });
  }

  const aDay = 86_400;

  async function fail(name: string): Promise<void> {
    const reason = "BackoffLimitExceeded";
    const conditions = [condition("FailureTarget", reason), condition("Failed", reason)];
    const status = { startTime: "2026-11-20T08:00:00Z", failed: 1, conditions };
    await cluster.raw("PATCH", `${pathOf(name)}/status`, { as: "merge-patch", body: { status } });
  }

  async function checkAfter(world: WorkerWorld, seconds: number): Promise<void> {
    world.aheadMs += seconds * 1000;
    await world.work();
  }

  test("the Job counts as failed if a check saw it fail before it was gone", async () => {
    const world = await applied("job-failed");
    await fail("job-failed");
    await checkAfter(world, 5);
    expect((await world.sync("job-failed"))?.observed).toMatchObject({ phase: "Verifying", objects: { failed: 1 } });
    await cluster.raw("DELETE", `${pathOf("job-failed")}?propagationPolicy=Background`);
    for (let check = 0; check < 2; check++) await checkAfter(world, 32);
    const gone = (await world.sync("job-failed"))?.observed;
    expect(gone).toMatchObject({
      phase: "Failed",
      reason: "ObjectsFailed",
      problems: [
        { object: "Job job-failed/migrate", reason: "JobFailed", message: "the Job failed and removed itself" },
      ],
    });
    await checkAfter(world, 700);
    expect(await world.phase("job-failed")).toBe("Failed");
    expect(await cluster.statusOf(pathOf("job-failed"))).toBe(404);
  });

  test("the Job counts as lost if it was deleted before it began and before it can have removed itself", async () => {
    const world = await applied("job-lost", aDay);
    await cluster.raw("DELETE", `${pathOf("job-lost")}?propagationPolicy=Background`);
    for (let check = 0; check < 3; check++) await checkAfter(world, 40);
    expect((await world.sync("job-lost"))?.observed).toMatchObject({
      phase: "Failed",
      problems: [
        { object: "Job job-lost/migrate", reason: "JobLost", message: expect.stringContaining("the next attempt") },
      ],
    });
    expect(await cluster.statusOf(pathOf("job-lost"))).toBe(404);

    // Another attempt runs it again.
    await world.assign("job-lost", objects);
    await world.work();
    expect(await cluster.statusOf(pathOf("job-lost"))).toBe(200);
    await complete("job-lost");
    await checkAfter(world, 32);
    expect(await world.phase("job-lost")).toBe("Ready");
  });

  test("the Job counts as complete, also for the next attempt, if a check saw it complete before it was deleted", async () => {
    const world = await applied("job-seen", aDay);
    await complete("job-seen");
    await checkAfter(world, 32);
    expect(await world.phase("job-seen")).toBe("Ready");
    await cluster.raw("DELETE", `${pathOf("job-seen")}?propagationPolicy=Background`);
    await checkAfter(world, 700);
    expect(await world.phase("job-seen")).toBe("Ready");
    await world.assign("job-seen", [...objects, configMap("job-seen/more")]);
    await checkAfter(world, 1);
    await checkAfter(world, 32);
    expect(await world.phase("job-seen")).toBe("Ready");
    expect(await cluster.statusOf(pathOf("job-seen"))).toBe(404);
  });

  test("the Job counts as complete when its time to live can have passed", async () => {
    const world = await applied("job-late", aDay);
    await cluster.raw("DELETE", `${pathOf("job-late")}?propagationPolicy=Background`);
    await checkAfter(world, aDay);
    expect(await world.phase("job-late")).toBe("Ready");
  });

  test("the Job counts as complete if no check saw it fail", async () => {
    const world = await applied("job-done");
    await cluster.raw("DELETE", `${pathOf("job-done")}?propagationPolicy=Background`);
    await checkAfter(world, 32);
    expect(await world.phase("job-done")).toBe("Ready");
  });
});
