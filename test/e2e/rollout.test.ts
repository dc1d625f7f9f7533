import type { InterceptedRequest } from "@starling/embedded-apiserver";
import { describe, expect, test } from "vitest";
import { awaitFullSlots } from "#test/support/await-full-slots.ts";
import {
  configMap,
  deployment,
  groupDocument,
  namespaceManifest,
  sourceDocument,
} from "#test/support/e2e-documents.ts";
import { namespace, type World } from "#test/support/e2e-world.ts";
import { fleetTargets, noRealServers, realServers, storyTargets } from "#test/support/fleet-targets.ts";
import { holdWrites } from "#test/support/hold-writes.ts";
import { untilIdle } from "#test/support/until-idle.ts";
import { webGroup, webWorldOn } from "#test/support/web-world.ts";

const configs = `/api/v1/namespaces/${namespace}/configmaps`;

function settings(color: string): Record<string, string> {
  return { "deploy/settings.yaml": namespaceManifest + configMap("settings", { color }) };
}

async function colorIn(world: World, cluster: string): Promise<string | undefined> {
  const { object } = await world.kubectl(cluster, { method: "GET", path: `${configs}/settings` });
  return (object.data as { readonly color?: string } | undefined)?.color;
}

async function colors(world: World): Promise<Record<string, string | undefined>> {
  const seen: Record<string, string | undefined> = {};
  for (const { name } of world.fleet.connections()) seen[name] = await colorIn(world, name);
  return seen;
}

const extraRings = { canary: 1, broad: 2 };

/** Rolls out a second template `extra` to every cluster. @returns the group with it, and without it. */
async function bringExtra(world: World) {
  const commit = await world.createRepository("extra", { "more/extra.yaml": configMap("extra", { from: "two" }) });
  const without = webGroup({ rings: extraRings, rollout: { maxConcurrent: 1 } });
  const extra = { name: "extra", source: "extra", path: "more", apply: { interval: "4h" } };
  const both = groupDocument("web", { ...without.spec, templates: [...without.spec.templates, extra] });
  const git = { url: world.git.url("extra"), ref: { branch: "main" } };
  await world.apply(sourceDocument("extra", { git, paths: ["more"] }), both);
  await untilBoth(world);
  return { both, without, commit };
}

async function untilBoth(world: World): Promise<void> {
  await world.waitFor("both templates are everywhere", async () => {
    const { status } = await world.group("web");
    const synced = await world.sync("broad-2", "web.extra");
    return status.state === "Complete" && status.clusters?.ready === 3 && synced?.status.state === "Ready";
  });
}

/** The uid of the object of `extra` in each cluster. */
async function extras(world: World): Promise<Record<string, string | undefined>> {
  const seen: Record<string, string | undefined> = {};
  for (const { name } of world.fleet.connections()) {
    const { status, object } = await world.kubectl(name, { method: "GET", path: `${configs}/extra` });
    seen[name] = status === 404 ? undefined : (object.metadata as { readonly uid: string }).uid;
  }
  return seen;
}

/** Clusters in the order in which Starling first wrote to them. */
function firstWrites(world: World): string[] {
  const writes = world.fleet.requests().filter(({ method }) => method === "PATCH");
  return [...new Set(writes.map(({ cluster }) => cluster))];
}

if (realServers === "missing") console.log(noRealServers);

describe.each(storyTargets)("on $name", (fleet) => {
  const withWebWorld = webWorldOn(fleet);
  const workloads = fleet.controllers === "on";

  describe("a rollout", () => {
    test("a rollout takes the first revision and then the second through the rings, within its bounds", () =>
      withWebWorld(
        {
          rings: { canary: 1, early: 2, broad: 3 },
          files: { ...settings("blue"), ...(workloads ? { "deploy/web.yaml": deployment("web", "nginx:1.27") } : {}) },
          rollout: { maxConcurrent: 3 },
        },
        async (world, commit) => {
          const first = await world.untilInSync("web", commit);
          expect(first.status.clusters).toMatchObject({ selected: 6, ready: 6 });
          expect(world.monitor.most().length).toBeLessThanOrEqual(2);

          world.monitor.reset();
          world.fleet.clearRequests();
          // One of three slots is reserved for the first ring.
          awaitFullSlots(world, "broad", 2);
          const second = await world.push("app", settings("green"));
          await world.untilInSync("web", second);
          expect(world.monitor.most()).toHaveLength(2);
          const rings = firstWrites(world).map((name) => name.split("-")[0]);
          expect(rings).toEqual(["canary", "early", "early", "broad", "broad", "broad"]);
          expect(new Set(Object.values(await colors(world)))).toEqual(new Set(["green"]));
          expect(world.monitor.unasked()).toEqual([]);
        },
      ));

    test.runIf(workloads)(
      "a rollout with an image that cannot be pulled halts at the canary with the reason, and a fix is rolled out",
      () =>
        withWebWorld(
          {
            rings: { canary: 1, broad: 2 },
            files: { ...settings("blue"), "deploy/web.yaml": deployment("web", "nginx:1.27") },
            rollout: { maxConcurrent: 2, progressDeadline: "30s" },
          },
          async (world, commit) => {
            await world.untilInSync("web", commit);
            world.fleet.clearRequests();
            await world.push("app", { "deploy/web.yaml": deployment("web", "registry.invalid/web:2") });
            const halted = await world.waitFor("the rollout is halted", async () => {
              const group = await world.group("web");
              return group.status.state === "Halted" && group;
            });
            expect(firstWrites(world)).toEqual(["canary-1"]);
            expect(halted.status.conditions[0]?.message).toMatch(
              /1 of 1 cluster failed in stage canary \(allowed: 0\): canary-1: .*Image/,
            );
            const { status } = await world.rollout("web");
            expect(status.failures).toEqual([
              { stage: "canary", cluster: "canary-1", reason: expect.stringMatching(/Deployment shop\/web/) },
            ]);

            const fix = await world.push("app", { "deploy/web.yaml": deployment("web", "nginx:1.28") });
            const group = await world.untilInSync("web", fix);
            expect(group.status.clusters).toMatchObject({ ready: 3, failed: 0 });
          },
        ),
    );

    test("a rollout that is suspended between two rings stops there until it is resumed", () =>
      withWebWorld(
        { rings: { canary: 1, broad: 2 }, files: settings("blue"), rollout: { maxConcurrent: 2 } },
        async (world, commit) => {
          await world.untilInSync("web", commit);
          const canary = Promise.withResolvers<"pass">();
          const path = `${configs}/settings`;
          let holding = false;
          world.fleet.intercept((request: InterceptedRequest) => {
            if (request.method !== "PATCH" || request.path !== path || request.phase !== "before") return "pass";
            holding = true;
            return canary.promise;
          });
          const second = await world.push("app", settings("green"));
          await world.waitFor("the canary is changing", async () => holding);
          await world.session.call("POST", `/v1/namespaces/${namespace}/syncgroups/web/suspend`, { reason: "lunch" });
          canary.resolve("pass");
          await world.waitFor("the canary is done", async () => (await colorIn(world, "canary-1")) === "green");
          const suspended = await world.waitFor("the group says so", async () => {
            const group = await world.group("web");
            return group.status.state === "Suspended" && group;
          });
          expect(suspended.operations?.suspended).toMatchObject({ reason: "lunch" });
          await untilIdle(world);
          expect(await colors(world)).toEqual({ "canary-1": "green", "broad-1": "blue", "broad-2": "blue" });

          await world.session.call("POST", `/v1/namespaces/${namespace}/syncgroups/web/resume`, {});
          await world.untilInSync("web", second);
        },
      ));

    test("a push starts no rollout of a suspended group", () =>
      withWebWorld({ rings: { all: 2 }, files: settings("blue") }, async (world, commit) => {
        await world.untilInSync("web", commit);
        await world.session.call("POST", `/v1/namespaces/${namespace}/syncgroups/web/suspend`, {});
        world.fleet.clearRequests();
        const second = await world.push("app", settings("green"));
        await world.waitFor("the Source has it", async () =>
          (await world.source("app")).status.artifact?.revision.endsWith(second),
        );
        await untilIdle(world);
        expect(firstWrites(world)).toEqual([]);
        await world.session.call("POST", `/v1/namespaces/${namespace}/syncgroups/web/resume`, {});
        await world.untilInSync("web", second);
      }));

    test("the webhook starts a rollout at once", () =>
      withWebWorld({ rings: { all: 1 }, files: settings("blue") }, async (world, commit) => {
        await world.untilInSync("web", commit);
        // The Source's interval is an hour, which is six minutes of this test.
        await world.untilInSync("web", await world.push("app", settings("green")));
      }));

    test("a rollout starts at the Source's interval when no webhook calls", () =>
      withWebWorld(
        { rings: { all: 1 }, files: settings("blue"), source: { interval: "20s" }, world: { webhook: "silent" } },
        async (world, commit) => {
          await world.untilInSync("web", commit);
          await world.untilInSync("web", await world.push("app", settings("green")));
        },
      ));

    test("a rollout continues without an unreachable cluster within maxUnreachable, and the cluster catches up when it answers", () =>
      withWebWorld(
        { rings: { canary: 1, broad: 2 }, files: settings("blue"), rollout: { maxConcurrent: 2, maxUnreachable: 1 } },
        async (world, commit) => {
          await world.untilInSync("web", commit);
          world.fleet.intercept(({ cluster }) => (cluster === "broad-2" ? "reset" : "pass"));
          const second = await world.push("app", settings("green"));
          const done = await world.waitFor("the rollout is complete without it", async () => {
            const group = await world.group("web");
            return group.status.state === "Degraded" && group.status.revision?.endsWith(second) && group;
          });
          expect(done.status.clusters).toMatchObject({ selected: 3, ready: 2, unreachable: 1 });
          expect(done.status.conditions[0]).toMatchObject({ type: "Ready", status: "False" });
          expect((await world.cluster("broad-2")).status.conditions).toMatchObject([
            { type: "Reachable", status: "False" },
          ]);

          world.fleet.intercept(undefined);
          await world.untilInSync("web", second);
          expect(await colors(world)).toEqual({ "canary-1": "green", "broad-1": "green", "broad-2": "green" });
          expect((await world.cluster("broad-2")).status.conditions).toMatchObject([
            { type: "Reachable", status: "True" },
          ]);
        },
      ));

    test("a rollout stalls with the reason when too many clusters are unreachable, and continues when they answer", () =>
      withWebWorld(
        { rings: { canary: 2, broad: 1 }, files: settings("blue"), rollout: { maxConcurrent: 2, maxUnreachable: 0 } },
        async (world, commit) => {
          await world.untilInSync("web", commit);
          world.fleet.intercept(({ cluster }) => (cluster === "canary-2" ? "reset" : "pass"));
          const second = await world.push("app", settings("green"));
          await world.waitFor(
            "the group is stalled",
            async () => (await world.group("web")).status.state === "Stalled",
          );
          expect((await world.rollout("web")).status).toMatchObject({
            reason: "TooManyUnreachable",
            message: "1 of 2 clusters unreachable in stage canary (allowed: 0)",
          });
          await untilIdle(world);
          expect(await colorIn(world, "broad-1")).toBe("blue");
          world.fleet.intercept(undefined);
          await world.untilInSync("web", second);
        },
      ));
  });

  describe("a group", () => {
    test("a group brings a cluster that joins into sync, and keeps the objects of a cluster that leaves", () =>
      withWebWorld({ rings: { canary: 1, broad: 1 }, files: settings("blue") }, async (world, commit) => {
        await world.untilInSync("web", commit);
        world.fleet.clearRequests();
        await world.join({ name: "broad-9", labels: { ring: "broad" } });
        await world.waitFor("the joiner is in sync", async () => {
          const { clusters } = (await world.group("web")).status;
          return clusters?.selected === 3 && clusters.ready === 3;
        });
        expect(firstWrites(world)).toEqual(["broad-9"]);

        const { spec, metadata } = await world.cluster("broad-9");
        await world.apply({
          apiVersion: "starling.dev/v1alpha1",
          kind: "Cluster",
          metadata: { name: metadata.name },
          spec,
        });
        await world.waitFor("the group has two clusters left", async () => {
          const { clusters, state } = (await world.group("web")).status;
          return state === "Complete" && clusters?.selected === 2 && clusters.ready === 2;
        });
        const second = await world.push("app", settings("green"));
        await world.untilInSync("web", second);
        expect(await colors(world)).toEqual({ "canary-1": "green", "broad-1": "green", "broad-9": "blue" });
      }));
  });
});

/** The end of objects depends on the API server, so these run on every kind. */
describe.each(fleetTargets)("on $name", (fleet) => {
  const withWebWorld = webWorldOn(fleet);

  describe("a group", () => {
    test.each(fleet.controllers === "on" ? (["delete", "orphan"] as const) : (["orphan"] as const))(
      "the deletion of a group with cascade=%s does that with its objects",
      (cascade) =>
        withWebWorld({ rings: { canary: 1, broad: 1 }, files: settings("blue") }, async (world, commit) => {
          await world.untilInSync("web", commit);
          const path = `/v1/namespaces/${namespace}/syncgroups/web`;
          await expect(world.session.call("DELETE", `${path}?cascade=${cascade}`)).rejects.toThrow(
            "ConfirmationRequired",
          );
          await world.session.call("DELETE", `${path}?cascade=${cascade}&confirm=true`);
          await world.waitFor("the group is gone", () =>
            world.group("web").then(
              () => false,
              (error: Error) => error.message.includes("404"),
            ),
          );
          const kept = cascade === "orphan" ? "blue" : undefined;
          expect(await colors(world)).toEqual({ "canary-1": kept, "broad-1": kept });
          if (cascade === "delete")
            expect((await world.rows()).filter(({ type }) => type === "SyncOnCluster")).toEqual([]);
        }),
    );

    test("a group applies both of its templates to a cluster, and deletes the objects of a removed template", () =>
      withWebWorld({ rings: extraRings, files: settings("blue") }, async (world) => {
        const { without, commit } = await bringExtra(world);
        expect((await world.sync("broad-2", "web.extra"))?.status.desired?.revision).toContain(commit);
        expect(world.monitor.most()).toHaveLength(1);
        await world.apply(without);
        await world.waitFor("the dropped one is gone everywhere", async () => {
          const left = Object.values(await extras(world)).filter((uid) => uid !== undefined);
          return left.length === 0 && (await world.group("web")).status.state === "Complete";
        });
        expect(await colorIn(world, "broad-2")).toBe("blue");
      }));

    test("a template that is restored while the canary deletes it is deleted nowhere else", () =>
      withWebWorld({ rings: extraRings, files: settings("blue") }, async (world) => {
        const { both, without } = await bringExtra(world);
        const before = await extras(world);
        const canary = holdWrites(world, "canary-1", `${configs}/extra`);
        try {
          await world.apply(without);
          await world.waitFor("the canary deletes it", async () => canary.isHeld());
          await world.apply(both);
        } finally {
          canary.release();
        }
        await untilBoth(world);
        const after = await extras(world);
        expect(after).toEqual({ ...before, "canary-1": expect.any(String) });
        const deleted = world.fleet
          .requests()
          .filter(({ method, path }) => method === "DELETE" && path.startsWith(configs));
        expect([...new Set(deleted.map(({ cluster }) => cluster))]).toEqual(["canary-1"]);
      }));
  });
});
