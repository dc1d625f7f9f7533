import { describe, expect, test } from "vitest";
import { configMap, namespaceManifest, yaml } from "#test/support/e2e-documents.ts";
import { namespace, type World } from "#test/support/e2e-world.ts";
import { fleetTargets } from "#test/support/fleet-targets.ts";
import { handUserAgent } from "#test/support/kube-call.ts";
import { untilIdle } from "#test/support/until-idle.ts";
import { type WebSetup, webWorldOn } from "#test/support/web-world.ts";

const configs = `/api/v1/namespaces/${namespace}/configmaps`;
const cluster = "all-1";
const partOf = "applyset.kubernetes.io/part-of";

const files = {
  "deploy/namespace.yaml": namespaceManifest,
  "deploy/a.yaml": configMap("a", { color: "blue" }),
  "deploy/b.yaml": configMap("b", { color: "blue" }),
};

async function get(world: World, name: string) {
  const { status, object } = await world.kubectl(cluster, { method: "GET", path: `${configs}/${name}` });
  if (status === 404) return undefined;
  return object as unknown as {
    readonly data: Readonly<Record<string, string>>;
    readonly metadata: { readonly uid: string; readonly labels?: Readonly<Record<string, string>> };
  };
}

function deletedByStarling(world: World): readonly string[] {
  return world.fleet
    .requests()
    .filter(({ method, userAgent }) => method === "DELETE" && userAgent !== handUserAgent)
    .map(({ path }) => path);
}

/** Waits until the cluster's worker has reported this state for a commit. */
async function untilSync(world: World, what: { readonly state: string; readonly commit: string }) {
  return world.waitFor(`web.app ${what.state} at ${what.commit.slice(0, 8)}`, async () => {
    const sync = await world.sync(cluster, "web.app");
    const current = sync?.status.desired?.revision.endsWith(what.commit) === true;
    return current && sync?.status.state === what.state && sync;
  });
}

describe.each(fleetTargets)("on $name", (fleet) => {
  const withWebWorld = webWorldOn(fleet);

  function one(setup: Partial<WebSetup>, use: (world: World) => Promise<void>): Promise<void> {
    return withWebWorld({ rings: { all: 1 }, files, ...setup }, async (world, commit) => {
      await world.untilInSync("web", commit);
      await use(world);
    });
  }

  describe("drift", () => {
    const drifts: Readonly<Record<string, (world: World) => Promise<unknown>>> = {
      "an object was deleted": (world) => world.kubectl(cluster, { method: "DELETE", path: `${configs}/a` }),
      "a field was edited": (world) =>
        world.kubectl(cluster, { method: "PATCH", path: `${configs}/a`, body: { data: { color: "red" } } }),
      "Starling's label was removed": (world) =>
        world.kubectl(cluster, {
          method: "PATCH",
          path: `${configs}/a`,
          body: { metadata: { labels: { [partOf]: null } }, data: { color: "red" } },
        }),
      "an object was replaced by another of its name": async (world) => {
        await world.kubectl(cluster, { method: "DELETE", path: `${configs}/a` });
        const body = { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "a" }, data: { color: "red" } };
        return world.kubectl(cluster, { method: "POST", path: configs, body });
      },
    };

    test.each(Object.entries(drifts))("drift is repaired when %s", (_name, drift) =>
      one({ apply: { interval: "10s" } }, async (world) => {
        await drift(world);
        const back = await world.waitFor("the object is as it was", async () => {
          const object = await get(world, "a");
          return object?.data.color === "blue" && object.metadata.labels?.[partOf] !== undefined && object;
        });
        expect(Object.keys(back.data)).toEqual(["color"]);
        await world.waitFor("the Sync tells of it", async () => {
          const sync = await world.sync(cluster, "web.app");
          return sync?.status.observed?.drift?.corrected === true && sync.status.state === "Ready";
        });
        expect((await get(world, "b"))?.data).toEqual({ color: "blue" });
        expect(deletedByStarling(world)).toEqual([]);
      }),
    );

    test("fields that others own are left alone", () =>
      one({ apply: { interval: "10s" } }, async (world) => {
        await world.kubectl(cluster, {
          method: "PATCH",
          path: `${configs}/a`,
          body: { metadata: { annotations: { "team/note": "mine" } }, data: { extra: "mine" } },
        });
        world.fleet.clearRequests();
        await world.waitFor("it was looked at twice", async () => {
          const lists = world.fleet
            .requests()
            .filter(({ method, path }) => method === "GET" && path.endsWith("/configmaps"));
          return lists.length >= 2;
        });
        expect((await get(world, "a"))?.data).toEqual({ color: "blue", extra: "mine" });
        expect(
          world.fleet.requests().filter(({ method, userAgent }) => method === "PATCH" && userAgent !== handUserAgent),
        ).toEqual([]);
      }));

    test("drift is only reported when the template says report", () =>
      one({ apply: { interval: "10s", drift: "report" } }, async (world) => {
        await world.kubectl(cluster, { method: "PATCH", path: `${configs}/a`, body: { data: { color: "red" } } });
        await world.waitFor("the Sync tells of it", async () => {
          const sync = await world.sync(cluster, "web.app");
          return sync?.status.conditions.some(({ type, status }) => type === "Drifted" && status === "True");
        });
        await untilIdle(world);
        expect((await get(world, "a"))?.data.color).toBe("red");
      }));
  });

  describe("an object that left git", () => {
    test("an object that left git is deleted", () =>
      one({}, async (world) => {
        await world.untilInSync("web", await world.push("app", { "deploy/b.yaml": null }));
        expect(await get(world, "b")).toBeUndefined();
        expect(await get(world, "a")).toBeDefined();
        expect(deletedByStarling(world)).toEqual([`${configs}/b`]);
      }));

    test("an object stays while the template says prune: false, and is deleted when that is withdrawn", () =>
      one({ apply: { prune: false } }, async (world) => {
        await world.untilInSync("web", await world.push("app", { "deploy/b.yaml": null }));
        expect(await get(world, "b")).toBeDefined();
        const { metadata, spec } = await world.group("web");
        const templates = spec.templates.map((template) => ({
          ...template,
          apply: { ...template.apply, prune: true },
        }));
        await world.apply({
          apiVersion: "starling.dev/v1alpha1",
          kind: "SyncGroup",
          metadata: { name: metadata.name, namespace },
          spec: { ...spec, templates },
        });
        await world.waitFor("it is pruned", async () => (await get(world, "b")) === undefined);
      }));

    test("an object stays after a failed apply, until an apply succeeds", () =>
      one({ rollout: { progressDeadline: "20s" } }, async (world) => {
        const broken = await world.push("app", {
          "deploy/b.yaml": null,
          "deploy/broken.yaml": yaml({
            apiVersion: "v1",
            kind: "ConfigMap",
            metadata: { name: "broken", namespace },
            dta: {},
          }),
        });
        const failed = await untilSync(world, { state: "Failed", commit: broken });
        expect(failed.status.observed).toMatchObject({ reason: "ApplyFailed" });
        await world.waitFor("the group is halted", async () => (await world.group("web")).status.state === "Halted");
        expect(await get(world, "b")).toBeDefined();
        await world.untilInSync("web", await world.push("app", { "deploy/broken.yaml": null }));
        expect(await get(world, "b")).toBeUndefined();
      }));

    test("all objects stay when git has none left, because an empty rendering is an error", () =>
      one({}, async (world) => {
        await world.push("app", {
          "deploy/namespace.yaml": null,
          "deploy/a.yaml": null,
          "deploy/b.yaml": null,
          "deploy/README.md": "Nothing here.",
        });
        const halted = await world.waitFor("the group is halted", async () => {
          const group = await world.group("web");
          return group.status.state === "Halted" && group;
        });
        expect(halted.status.conditions[0]?.message).toMatch(/RenderFailed.*no objects/);
        expect([(await get(world, "a"))?.data, (await get(world, "b"))?.data]).toEqual([
          { color: "blue" },
          { color: "blue" },
        ]);
        expect(deletedByStarling(world)).toEqual([]);
      }));

    const strangers: Readonly<Record<string, (world: World, setLabel: string) => Promise<unknown>>> = {
      "has a controller for an owner now": async (world) => {
        const owner = await get(world, "a");
        const reference = {
          apiVersion: "v1",
          kind: "ConfigMap",
          name: "a",
          uid: owner?.metadata.uid,
          controller: true,
        };
        return world.kubectl(cluster, {
          method: "PATCH",
          path: `${configs}/b`,
          body: { metadata: { ownerReferences: [reference] } },
        });
      },
      "is another object that took its name and its label": async (world, setLabel) => {
        await world.kubectl(cluster, { method: "DELETE", path: `${configs}/b` });
        const metadata = { name: "b", labels: { [partOf]: setLabel } };
        return world.kubectl(cluster, {
          method: "POST",
          path: configs,
          body: { apiVersion: "v1", kind: "ConfigMap", metadata, data: { color: "red" } },
        });
      },
    };

    test.each(Object.entries(strangers))("an object that left git stays when it %s", (_name, estrange) =>
      one({}, async (world) => {
        const setLabel = (await get(world, "b"))?.metadata.labels?.[partOf] ?? "";
        await estrange(world, setLabel);
        await world.untilInSync("web", await world.push("app", { "deploy/b.yaml": null }));
        expect(await get(world, "b")).toBeDefined();
        expect(deletedByStarling(world)).toEqual([]);
      }),
    );

    test("a prune deletes no object that only carries the label of the Sync", () =>
      one({ apply: { interval: "10s" } }, async (world) => {
        const setLabel = (await get(world, "b"))?.metadata.labels?.[partOf] ?? "";
        const metadata = { name: "copy", labels: { [partOf]: setLabel } };
        await world.kubectl(cluster, {
          method: "POST",
          path: configs,
          body: { apiVersion: "v1", kind: "ConfigMap", metadata, data: { color: "red" } },
        });
        await world.untilInSync("web", await world.push("app", { "deploy/b.yaml": null }));
        expect(deletedByStarling(world)).toEqual([`${configs}/b`]);
        expect((await get(world, "copy"))?.data).toEqual({ color: "red" });
      }));
  });
});
