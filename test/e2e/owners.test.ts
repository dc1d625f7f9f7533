import { describe, expect, test } from "vitest";
import { ourApiVersion } from "#shared/fleet/kinds/metadata.ts";
import { configMap, namespaceManifest } from "#test/support/e2e-documents.ts";
import { namespace, type World } from "#test/support/e2e-world.ts";
import { storyTargets } from "#test/support/fleet-targets.ts";
import { webGroup, webWorldOn } from "#test/support/web-world.ts";

const configs = `/api/v1/namespaces/${namespace}/configmaps`;

function settings(color: string): Record<string, string> {
  return { "deploy/settings.yaml": namespaceManifest + configMap("settings", { color }) };
}

/** The folder that the group rolls out, and a folder that it does not use. */
const besideOwn = {
  rings: { all: 2 },
  source: { paths: ["deploy", "own"] },
  files: { ...settings("blue"), "own/extra.yaml": configMap("extra", { from: "own" }) },
};

async function dataOf(world: World, cluster: string, name: string) {
  const { status, object } = await world.kubectl(cluster, { method: "GET", path: `${configs}/${name}` });
  return status === 404 ? undefined : object.data;
}

describe.each(storyTargets)("on $name", (fleet) => {
  const withWebWorld = webWorldOn(fleet);

  test("a Sync that a user wrote applies one folder to one cluster, and its deletion deletes the objects", () =>
    withWebWorld(besideOwn, async (world, commit) => {
      await world.untilInSync("web", commit);
      await world.apply({
        apiVersion: ourApiVersion,
        kind: "Sync",
        metadata: { name: "own", namespace },
        spec: { cluster: "all-2", source: "app", path: "own" },
      });
      await world.waitFor("it is there", async () => (await dataOf(world, "all-2", "extra")) !== undefined);
      await world.waitFor("it says so", async () => (await world.sync("all-2", "own"))?.status.state === "Ready");
      expect(await world.sync("all-1", "own")).toBeUndefined();
      await world.session.call("DELETE", `/v1/namespaces/${namespace}/syncs/own?confirm=true`);
      await world.waitFor("it is gone", async () => (await world.sync("all-2", "own")) === undefined);
      expect(await dataOf(world, "all-2", "extra")).toBeUndefined();
    }));

  test("a Source whose branch is gone reports that and keeps its last revision until the branch is back", () =>
    withWebWorld({ rings: { all: 1 }, files: settings("blue") }, async (world, commit) => {
      await world.untilInSync("web", commit);
      world.fleet.clearRequests();
      await world.git.deleteRef("app", "refs/heads/main");
      await world.session.call("POST", `/v1/namespaces/${namespace}/sources/app/reconcile`, {});
      const failing = await world.waitFor("the Source says so", async () => {
        const source = await world.source("app");
        return source.status.conditions.some(({ type, status }) => type === "Ready" && status === "False") && source;
      });
      expect(failing.status.conditions).toContainEqual(
        expect.objectContaining({ type: "Ready", reason: "EmptyGitRepository" }),
      );
      expect(failing.status.artifact?.revision).toContain(commit);
      expect(await dataOf(world, "all-1", "settings")).toEqual({ color: "blue" });
      expect(world.fleet.requests().filter(({ method }) => method === "DELETE")).toEqual([]);
      await world.untilInSync("web", await world.push("app", settings("green")));
    }));

  test("a changed value of a cluster renders that cluster again, and no other", () =>
    withWebWorld(
      {
        rings: { all: 2 },
        files: {
          "deploy/red/settings.yaml": namespaceManifest + configMap("settings", { color: "red" }),
          "deploy/blue/settings.yaml": namespaceManifest + configMap("settings", { color: "blue" }),
        },
      },
      async (world) => {
        const group = webGroup({ rings: { all: 2 } });
        const templates = group.spec.templates.map((template) => ({
          ...template,
          path: "deploy/{{ cluster.values.color }}",
        }));
        const paint = async (name: string, color: string) => {
          const { metadata, spec } = await world.cluster(name);
          const labelled = { name, labels: metadata.labels };
          await world.apply({
            apiVersion: ourApiVersion,
            kind: "Cluster",
            metadata: labelled,
            spec: { ...spec, values: { color } },
          });
        };
        await paint("all-1", "red");
        await paint("all-2", "red");
        await world.apply({ ...group, spec: { ...group.spec, templates } });
        const both = async (one: string, two: string) => {
          const first = await dataOf(world, "all-1", "settings");
          const second = await dataOf(world, "all-2", "settings");
          const { state } = (await world.group("web")).status;
          return (
            JSON.stringify([first, second]) === JSON.stringify([{ color: one }, { color: two }]) && state === "Complete"
          );
        };
        await world.waitFor("both are red", () => both("red", "red"));
        world.fleet.clearRequests();
        await paint("all-2", "blue");
        await world.waitFor("one is blue", () => both("red", "blue"));
        const touched = world.fleet.requests().filter(({ method }) => method === "PATCH");
        expect(new Set(touched.map(({ cluster }) => cluster))).toEqual(new Set(["all-2"]));
      },
    ));

  test("a reconcile checks every cluster now, whatever the interval", () =>
    withWebWorld({ rings: { all: 2 }, files: settings("blue") }, async (world, commit) => {
      await world.untilInSync("web", commit);
      await world.kubectl("all-2", { method: "DELETE", path: `${configs}/settings` });
      await world.session.call("POST", `/v1/namespaces/${namespace}/syncgroups/web/reconcile`, {});
      await world.waitFor("it is back", async () => (await dataOf(world, "all-2", "settings")) !== undefined);
    }));

  test("a revision that changes no rendering sends no request to a cluster", () =>
    withWebWorld({ rings: { canary: 1, broad: 1 }, files: settings("blue") }, async (world, commit) => {
      await world.untilInSync("web", commit);
      world.fleet.clearRequests();
      const comment = await world.push("app", { "deploy/NOTES.md": "Only a note." });
      await world.waitFor("the plan is through", async () => {
        const { state, revision } = (await world.group("web")).status;
        return state === "Complete" && revision?.endsWith(comment);
      });
      expect((await world.targets("web")).map(({ state }) => state)).toEqual(["Unchanged", "Unchanged"]);
      expect(world.fleet.requests()).toEqual([]);
    }));
});
