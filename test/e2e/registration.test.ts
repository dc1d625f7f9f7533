import { describe, expect, test } from "vitest";
import { configMap, namespaceManifest } from "#test/support/e2e-documents.ts";
import type { World } from "#test/support/e2e-world.ts";
import { embeddedFleet } from "#test/support/fleet.ts";
import { webWorldOn } from "#test/support/web-world.ts";

const withWebWorld = webWorldOn(embeddedFleet);

function settings(color: string): Record<string, string> {
  return { "deploy/settings.yaml": namespaceManifest + configMap("settings", { color }) };
}

async function clusterDocument(world: World, name: string, ring?: string) {
  const { apiVersion, kind, spec } = await world.cluster(name);
  return { apiVersion, kind, spec, metadata: { name, ...(ring === undefined ? {} : { labels: { ring } }) } };
}

async function untilSelected(world: World, selected: number): Promise<void> {
  await world.waitFor(`${selected} clusters in sync`, async () => {
    const { state, clusters } = (await world.group("web")).status;
    return state === "Complete" && clusters?.selected === selected && clusters.ready === selected;
  });
}

describe("a Cluster", () => {
  test("a Cluster that is deleted without its objects and registered again keeps its objects and gets new revisions", () =>
    withWebWorld(
      { rings: { all: 2 }, files: settings("blue"), rollout: { maxConcurrent: 2 } },
      async (world, commit) => {
        await world.untilInSync("web", commit);
        await world.untilInSync("web", await world.push("app", settings("red")));
        const document = await clusterDocument(world, "all-2", "all");
        await world.session.call("DELETE", "/v1/clusters/all-2?cascade=orphan&confirm=true");
        await untilSelected(world, 1);

        await world.apply(document);
        await untilSelected(world, 2);
        await world.untilInSync("web", await world.push("app", settings("green")));
        const path = "/api/v1/namespaces/shop/configmaps/settings";
        const { object } = await world.kubectl("all-2", { method: "GET", path });
        expect(object).toMatchObject({ data: { color: "green" } });
      },
    ));

  test("a Cluster that no group selects any more can be deleted", () =>
    withWebWorld(
      { rings: { all: 2 }, files: settings("blue"), rollout: { maxConcurrent: 2 } },
      async (world, commit) => {
        await world.untilInSync("web", commit);
        await expect(world.session.call("DELETE", "/v1/clusters/all-2?confirm=true")).rejects.toThrow(/assigned/);
        await world.apply(await clusterDocument(world, "all-2"));
        await untilSelected(world, 1);
        await world.session.call("DELETE", "/v1/clusters/all-2?confirm=true");
        await expect(world.cluster("all-2")).rejects.toThrow(/does not exist/);
      },
    ));
});
