/** The steps of an apply on each API server of the tests: a step waits for the server's status of Jobs and workloads. */
import { describe, expect, test } from "vitest";
import type { JsonObject } from "#shared/base/json.ts";
import { type ManifestObject, stringAt } from "#shared/kube/kube-object.ts";
import { clusterTargets } from "#test/contract/targets.ts";
import { clusterFixture, configMap, definition, deployment, namespace, widget } from "#test/support/cluster-fixture.ts";
import { forAllTests } from "#test/support/for-tests.ts";
import { playControllers } from "#test/support/played-cluster.ts";
import { WorkerWorld } from "#test/support/worker-world.ts";

const name = "in-steps";
const kinds = [
  ["Job", `/apis/batch/v1/namespaces/${name}/jobs`],
  ["Deployment", `/apis/apps/v1/namespaces/${name}/deployments`],
] as const;

function annotated(object: ManifestObject, annotations: Readonly<Record<string, string>>): ManifestObject {
  return { ...object, metadata: { ...object.metadata, annotations } };
}

function job(jobName: string, annotations: Readonly<Record<string, string>>): ManifestObject {
  const template = { spec: { restartPolicy: "Never", containers: [{ name: "m", image: "m:1" }] } };
  const metadata = { name: jobName, namespace: name };
  return annotated({ apiVersion: "batch/v1", kind: "Job", metadata, spec: { template } }, annotations);
}

describe.each(clusterTargets)("an apply in steps on $name", ({ start }) => {
  const cluster = forAllTests(async () => clusterFixture(await start()));

  test("the apply goes from hook to wave to hook, runs each hook once, and deletes hooks by their policies", async () => {
    const world = await new WorkerWorld({ connect: async () => cluster.client, distrust() {} }).begin();
    const group = "steps.example.com";
    const rendering = (version: string) => [
      namespace(name),
      job("migrate", { "helm.sh/hook": "pre-install,pre-upgrade", "helm.sh/hook-weight": "-1" }),
      annotated(definition(group), { "argocd.argoproj.io/sync-wave": "9" }),
      annotated(widget(group, `${name}/w`), { "argocd.argoproj.io/sync-wave": "-1" }),
      deployment(`${name}/db`),
      annotated(configMap(`${name}/late`, { version }), {
        "config.kubernetes.io/depends-on": `apps/namespaces/${name}/Deployment/db`,
      }),
      job("notify", {
        "argocd.argoproj.io/hook": "PostSync",
        "argocd.argoproj.io/hook-delete-policy": "HookSucceeded",
      }),
    ];
    const uids = new Map<string, Set<string>>();
    const seen: string[] = [];

    async function check(): Promise<void> {
      await world.work();
      const late = await cluster.statusOf(`/api/v1/namespaces/${name}/configmaps/late`);
      if (late === 200 && !seen.includes("late")) seen.push("late");
      for (const [kind, path] of kinds) {
        const { items = [] } = (await cluster.raw("GET", path)) as { items?: JsonObject[] };
        const objects = items.map((item): JsonObject => ({ ...item, kind }));
        for (const object of objects) {
          const [named = "", uid = ""] = ["name", "uid"].map((member) => stringAt(object, "metadata", member));
          if (!seen.includes(named)) seen.push(named);
          uids.set(named, (uids.get(named) ?? new Set()).add(uid));
        }
        await playControllers(objects, (at, body) => cluster.raw("PATCH", at, { as: "merge-patch", body }));
      }
      world.aheadMs += 31_000;
    }
    async function untilReady(): Promise<void> {
      for (let turn = 0; turn < 30; turn++) {
        await check();
        if ((await world.phase(name)) === "Ready") return;
      }
      throw new Error(`it is not ready: ${JSON.stringify((await world.sync(name))?.observed)}`);
    }

    await world.assign(name, rendering("1"));
    await untilReady();
    expect(seen).toEqual(["migrate", "db", "late", "notify"]);
    await world.assign(name, rendering("1"));
    await untilReady();
    expect([uids.get("migrate")?.size, uids.get("notify")?.size]).toEqual([1, 1]);
    await world.assign(name, rendering("2"));
    await untilReady();
    expect([uids.get("migrate")?.size, uids.get("notify")?.size]).toEqual([2, 2]);
    expect(await cluster.statusOf(`${kinds[0][1]}/notify`)).toBe(404);
    expect(await cluster.statusOf(`${kinds[0][1]}/migrate`)).toBe(200);
  });
});
