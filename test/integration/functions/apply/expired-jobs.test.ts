import { describe, expect, test } from "vitest";
import { clusterTargets } from "#test/contract/targets.ts";
import { clusterFixture, manifest, namespace } from "#test/support/cluster-fixture.ts";
import { forAllTests } from "#test/support/for-tests.ts";
import { WorkerWorld } from "#test/support/worker-world.ts";

describe.each(clusterTargets)("a Job that removes itself, on $name", ({ start }) => {
  const cluster = forAllTests(async () => clusterFixture(await start()));
  const pathOf = (name: string) => `/apis/batch/v1/namespaces/${name}/jobs/migrate`;
  const at = "2026-11-20T08:00:10Z";
  const condition = (type: string, reason: string) => ({ type, status: "True", reason, lastTransitionTime: at });

  async function applied(name: string): Promise<WorkerWorld> {
    const world = await new WorkerWorld({ connect: async () => cluster.client, distrust() {} }).begin();
    const template = { spec: { restartPolicy: "Never", containers: [{ name: "m", image: "m:1" }] } };
    const job = manifest({
      apiVersion: "batch/v1",
      kind: "Job",
      metadata: { name: "migrate", namespace: name },
      spec: { ttlSecondsAfterFinished: 30, backoffLimit: 0, template },
    });
    await world.assign(name, [namespace(name), job]);
    await world.work();
    expect(await world.phase(name)).toBe("Verifying");
    return world;
  }

  async function fail(name: string): Promise<void> {
    const reason = "BackoffLimitExceeded";
    const conditions = [condition("FailureTarget", reason), condition("Failed", reason)];
    const status = { startTime: "2026-11-20T08:00:00Z", failed: 1, conditions };
    await cluster.raw("PATCH", `${pathOf(name)}/status`, { as: "merge-patch", body: { status } });
  }

  async function lookAfter(world: WorkerWorld, seconds: number): Promise<void> {
    world.aheadMs += seconds * 1000;
    await world.work();
  }

  test("has failed when it had before it was gone", async () => {
    const world = await applied("job-failed");
    await fail("job-failed");
    await lookAfter(world, 5);
    expect((await world.sync("job-failed"))?.observed).toMatchObject({ phase: "Verifying", objects: { failed: 1 } });
    await cluster.raw("DELETE", `${pathOf("job-failed")}?propagationPolicy=Background`);
    for (let look = 0; look < 2; look++) await lookAfter(world, 32);
    const gone = (await world.sync("job-failed"))?.observed;
    expect(gone).toMatchObject({
      phase: "Failed",
      reason: "ObjectsFailed",
      troubles: [{ object: "Job job-failed/migrate", reason: "JobFailed", message: "Job Failed, and removed itself" }],
    });
    await lookAfter(world, 700);
    expect(await world.phase("job-failed")).toBe("Failed");
    expect(await cluster.statusOf(pathOf("job-failed"))).toBe(404);
  });

  test("is done when it had not failed", async () => {
    const world = await applied("job-done");
    await cluster.raw("DELETE", `${pathOf("job-done")}?propagationPolicy=Background`);
    await lookAfter(world, 32);
    expect(await world.phase("job-done")).toBe("Ready");
  });
});
