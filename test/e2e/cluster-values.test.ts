/** ClusterValues give values to the clusters that they select, from the document to the applied folder. */
import { describe, expect, test } from "vitest";
import { ourApiVersion } from "#shared/fleet/kinds/metadata.ts";
import { configMap, namespaceManifest } from "#test/support/e2e-documents.ts";
import { namespace, type World } from "#test/support/e2e-world.ts";
import { storyTargets } from "#test/support/fleet-targets.ts";
import { webGroup, webWorldOn } from "#test/support/web-world.ts";
import { openWorldCli } from "#test/support/world-cli.ts";

const settings = `/api/v1/namespaces/${namespace}/configmaps/settings`;
const rings = { canary: 1, broad: 3 };
const names = ["broad-1", "broad-2", "broad-3", "canary-1"] as const;

function folders(...colors: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    colors.map((color) => [`deploy/${color}/settings.yaml`, namespaceManifest + configMap("settings", { color })]),
  );
}

function values(name: string, clusters: object, said: object, priority = 0) {
  return {
    apiVersion: ourApiVersion,
    kind: "ClusterValues",
    metadata: { name },
    spec: { clusters, priority, values: said },
  };
}

const broad = { selector: { matchLabels: { ring: "broad" } } };

function group() {
  const { spec, ...rest } = webGroup({ rings });
  const templates = spec.templates.map((template) => ({
    ...template,
    path: "deploy/{{ cluster.values.theme.color }}",
  }));
  return { ...rest, spec: { ...spec, templates } };
}

/** The color of each cluster, in the order of names. */
async function colors(world: World): Promise<string> {
  const found = names.map(async (name) => {
    const { status, object } = await world.kubectl(name, { method: "GET", path: settings });
    return status === 404 ? "none" : (object.data as { readonly color: string }).color;
  });
  return (await Promise.all(found)).join(" ");
}

async function untilColors(world: World, expected: string): Promise<void> {
  await world.waitFor(`the colors ${expected}`, async () => {
    return (await colors(world)) === expected && (await world.group("web")).status.state === "Complete";
  });
}

/** The clusters that were written to since the requests were cleared. */
function touched(world: World): readonly string[] {
  const written = world.fleet.requests().filter(({ method }) => method !== "GET");
  return [...new Set(written.map(({ cluster }) => cluster))].sort();
}

async function renderings(world: World): Promise<number> {
  return (await world.rows()).filter(({ type }) => type === "Rendering").length;
}

describe.each(storyTargets)("on $name", (fleet) => {
  const withWebWorld = webWorldOn(fleet);

  test("higher priorities override lower ones, and a changed value is rendered only for the clusters that use it", () =>
    withWebWorld({ rings, files: folders("red", "blue", "green") }, async (world) => {
      await world.apply(values("every", { all: true }, { theme: { color: "red" }, size: 3 }), group());
      await untilColors(world, "red red red red");
      const rendered = await renderings(world);

      world.fleet.clearRequests();
      await world.apply(values("late", { names: ["broad-2"] }, { theme: { color: "blue" } }, 10));
      await untilColors(world, "red blue red red");
      expect(touched(world)).toEqual(["broad-2"]);
      expect(await renderings(world)).toBe(rendered + 1);

      // No template uses the value, or it is the same as before.
      world.fleet.clearRequests();
      const before = (await world.group("web")).status.rollout;
      await world.apply(
        values("every", { all: true }, { theme: { color: "red" }, size: 4 }),
        values("again", broad, { theme: { color: "green" } }, 0),
        values("under", { names: ["broad-1", "broad-3"] }, { theme: { color: "red" } }, 5),
      );
      await untilColors(world, "red blue red red");
      expect(touched(world)).toEqual([]);
      expect(await renderings(world)).toBe(rendered + 1);
      expect((await world.group("web")).status.rollout).toBe(before);

      const { metadata, spec } = await world.cluster("broad-2");
      const labelled = { name: "broad-2", labels: metadata.labels };
      const own = { ...spec, values: { theme: { color: "green" } } };
      await world.apply({ apiVersion: ourApiVersion, kind: "Cluster", metadata: labelled, spec: own });
      await untilColors(world, "red green red red");
      expect(touched(world)).toEqual(["broad-2"]);
      const cli = openWorldCli(world);
      const described = await cli.run("describe cluster broad-2");
      expect(described.out).toMatch(/size +4 +clustervalues\/every\n +theme +\{"color":"green"\} +cluster\/broad-2/);
      const other = await cli.run("describe cluster broad-1");
      expect(other.out).toMatch(/theme +\{"color":"red"\} +clustervalues\/under/);
      const list = await cli.run("get clustervalues");
      expect(list.out).toMatch(/late +10 +1 +broad-2 +Ready +theme/);
      cli.close();
    }));

  test("a value of the whole fleet is rolled out stage by stage, and a value that breaks the rendering stops at the first stage", () =>
    withWebWorld({ rings, files: folders("red") }, async (world) => {
      await world.apply(values("every", { all: true }, { theme: { color: "red" } }), group());
      await untilColors(world, "red red red red");
      world.fleet.clearRequests();
      await world.apply(values("every", { all: true }, { theme: { color: "blue" } }));
      await world.waitFor("the halt", async () => (await world.group("web")).status.state === "Halted");
      expect(await colors(world)).toBe("red red red red");
      await world.push("app", folders("blue"));
      await untilColors(world, "blue blue blue blue");
      const first = (cluster: string) =>
        world.fleet.requests().findIndex((request) => request.method === "PATCH" && request.cluster === cluster);
      for (const name of ["broad-1", "broad-2", "broad-3"]) expect(first(name)).toBeGreaterThan(first("canary-1"));
    }));

  test("deleting ClusterValues needs a confirmation, and a cluster that lacks the value then is named with the key and the remedy", () =>
    withWebWorld({ rings, files: folders("red") }, async (world) => {
      await world.apply(values("every", { all: true }, { theme: { color: "red" } }), group());
      await untilColors(world, "red red red red");
      world.fleet.clearRequests();
      const path = "/v1/clustervalues/every";
      await expect(world.session.call("DELETE", path)).rejects.toThrow(
        /deleting ClusterValues every takes its values \(theme\) from 4 clusters/,
      );
      await world.session.call("DELETE", `${path}?confirm=true`);
      await world.waitFor("the halt", async () => (await world.group("web")).status.state === "Halted");
      expect(JSON.stringify(await world.targets("web"))).toContain(
        "path: cluster canary-1 has no cluster.values.theme.color; set the value on the Cluster (spec.values) or in a ClusterValues that selects it, or take it from a tag (spec.values.fromTags of its ClusterDiscovery); or add | default(text)",
      );
      expect(await colors(world)).toBe("red red red red");
      expect(touched(world)).toEqual([]);
      await world.apply(values("every", { all: true }, { theme: { color: "red" } }));
      await untilColors(world, "red red red red");
    }));

  test("a cluster that joins or changes labels gets the values of the ClusterValues that select it now", () =>
    withWebWorld({ rings, files: folders("red", "blue") }, async (world) => {
      await world.apply(
        values("every", { all: true }, { theme: { color: "red" } }),
        values("ring", broad, { theme: { color: "blue" } }, 1),
        group(),
      );
      await untilColors(world, "blue blue blue red");
      await world.join({ name: "late", labels: { ring: "broad" } });
      await world.waitFor("the newcomer", async () => {
        const { status, object } = await world.kubectl("late", { method: "GET", path: settings });
        return status !== 404 && JSON.stringify(object.data) === '{"color":"blue"}';
      });
    }));
});
