/** Objects that another Sync, or another tool, has taken over since they were applied: refused, and never deleted. */
import { describe, expect, test } from "vitest";
import { labelsOf, stringAt, valueAt } from "#shared/kube/kube-object.ts";
import { partOfLabel } from "#shared/kube/membership.ts";
import { setIdOf } from "#shared/kube/parent-object.ts";
import { clusterTargets } from "#test/contract/targets.ts";
import { clusterFixture, configMap, deployment, namespace } from "#test/support/cluster-fixture.ts";
import { forAllTests } from "#test/support/for-tests.ts";
import { watchedClient } from "#test/support/watched-client.ts";
import { WorkerWorld } from "#test/support/worker-world.ts";

describe.each(clusterTargets)("an object that somebody else has taken over, on $name", ({ start }) => {
  const cluster = forAllTests(async () => clusterFixture(await start()));
  const begin = () => new WorkerWorld({ connect: async () => cluster.client, distrust() {} }).begin();
  const pathOf = (inNamespace: string) => `/api/v1/namespaces/${inNamespace}/configmaps/c`;

  async function liveOf(inNamespace: string) {
    const live = await cluster.raw("GET", pathOf(inNamespace));
    return { set: labelsOf(live)[partOfLabel], data: live.data, uid: stringAt(live, "metadata", "uid") };
  }

  async function work(world: WorkerWorld, name: string) {
    await world.work();
    const observed = (await world.sync(name))?.observed;
    return { phase: observed?.phase, reasons: observed?.problems.map(({ reason }) => reason) };
  }

  test("an object that another Sync adopted, as the refusal explains, belongs to that Sync", async () => {
    const world = await begin();
    const [ofA, ofB] = ["a", "b"].map((owner) => configMap("two/c", { k: `of ${owner}` }));
    if (ofA === undefined || ofB === undefined) throw new Error("both are there");
    const refused = { phase: "Failed", reasons: ["ForeignOwner"] };
    await world.assign("a", [namespace("two"), ofA]);
    expect(await work(world, "a")).toMatchObject({ phase: "Ready" });
    await world.assign("b", [ofB]);
    expect(await work(world, "b")).toEqual(refused);

    await cluster.raw("PATCH", pathOf("two"), {
      as: "merge-patch",
      body: { metadata: { labels: { [partOfLabel]: null } } },
    });
    await world.assign("b", [ofB]);
    expect(await work(world, "b")).toMatchObject({ phase: "Ready" });
    const adopted = await liveOf("two");
    expect(adopted).toMatchObject({ set: setIdOf({ syncNamespace: "tests", syncName: "b" }), data: { k: "of b" } });

    // The object stays with the Sync that adopted it, also when both Syncs are assigned again.
    for (const round of ["1", "2"]) {
      await world.assign("a", [namespace("two"), ofA, configMap("two/of-a", { round })]);
      expect(await work(world, "a")).toEqual(refused);
      await world.assign("b", [ofB, configMap("two/of-b", { round })]);
      expect(await work(world, "b")).toMatchObject({ phase: "Ready" });
      expect(await liveOf("two")).toEqual(adopted);
    }
    await world.assign("a", [namespace("two")]);
    expect(await work(world, "a")).toMatchObject({ phase: "Ready" });
    expect(await liveOf("two")).toEqual(adopted);
  });

  test.each([
    { tool: "apply sets", inNamespace: "sets", labels: { [partOfLabel]: "applyset-of-another-v1" } },
    {
      tool: "Flux",
      inNamespace: "flux",
      labels: { [partOfLabel]: "", "kustomize.toolkit.fluxcd.io/name": "apps" },
    },
  ])("an object that $tool took over is not applied, and not deleted", async ({ inNamespace, labels }) => {
    const world = await begin();
    const ours = configMap(`${inNamespace}/c`, { k: "ours" });
    await world.assign(inNamespace, [namespace(inNamespace), ours]);
    await world.work();
    const theirs = { ...ours, metadata: { ...ours.metadata, labels }, data: { k: "theirs" } };
    await cluster.raw("PATCH", `${pathOf(inNamespace)}?fieldManager=another&force=true`, {
      as: "apply-patch",
      body: theirs,
    });
    const taken = await liveOf(inNamespace);
    expect(taken.data).toEqual({ k: "theirs" });

    await world.assign(inNamespace, [namespace(inNamespace), ours, configMap(`${inNamespace}/d`)]);
    expect(await work(world, inNamespace)).toEqual({ phase: "Failed", reasons: ["ForeignOwner"] });
    expect(await liveOf(inNamespace)).toEqual(taken);
    await world.assign(inNamespace, [namespace(inNamespace)]);
    expect(await work(world, inNamespace)).toMatchObject({ phase: "Ready" });
    expect(await liveOf(inNamespace)).toEqual(taken);
  });

  test("the worker searches for the other owner only where an object changed", async () => {
    const calls: string[] = [];
    const watched = watchedClient(cluster.client, async ({ method, name }) => {
      if (name === "web" || name === "c") calls.push(`${method} ${name}`);
    });
    const world = await new WorkerWorld({ connect: async () => watched, distrust() {} }).begin();
    const web = (replica: string) => [
      namespace("moved"),
      configMap("moved/c", { replica }),
      deployment("moved/web", [{ name: "REPLICA", value: replica }]),
    ];
    await world.assign("moved", web("1"));
    await world.work();
    calls.length = 0;
    await world.assign("moved", web("2"));
    await world.work();
    expect(calls.sort()).toEqual(["apply c", "apply web"]);

    const path = "/apis/apps/v1/namespaces/moved/deployments/web";
    await cluster.raw("PATCH", `${path}/status`, { as: "merge-patch", body: { status: { replicas: 1 } } });
    calls.length = 0;
    await world.assign("moved", web("3"));
    await world.work();
    expect(calls.sort()).toEqual(["apply c", "apply web", "apply web", "get web"]);
    expect(JSON.stringify(valueAt(await cluster.raw("GET", path), "spec", "template", "spec"))).toContain(
      '"value":"3"',
    );
  });
});
