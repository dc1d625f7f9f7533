import { describe, expect, test } from "vitest";
import { ourApiVersion } from "#shared/fleet/kinds/metadata.ts";
import { configMap, namespaceManifest, sourceDocument } from "#test/support/e2e-documents.ts";
import { namespace, startWorld, type World } from "#test/support/e2e-world.ts";
import { storyTargets } from "#test/support/fleet-targets.ts";

const configs = `/api/v1/namespaces/${namespace}/configmaps`;

const files = (color: string) => ({ "deploy/settings.yaml": namespaceManifest + configMap("settings", { color }) });

async function colorOn(world: World, cluster: string): Promise<unknown> {
  const { status, object } = await world.kubectl(cluster, { method: "GET", path: `${configs}/settings` });
  const data = status === 404 ? undefined : (object.data as { readonly color?: unknown } | undefined);
  return data?.color;
}

const syncOn = (cluster: string, more: object = {}) => ({
  apiVersion: ourApiVersion,
  kind: "Sync",
  metadata: { name: `at-${cluster}`, namespace },
  spec: { cluster, source: "app", path: "deploy", ...more },
});

/** A world with one Source that follows `main`, and the commits of three pushes: blue, green and red. */
async function withThreePushes(
  target: (typeof storyTargets)[number],
  use: (world: World, commits: { readonly blue: string; readonly green: string }) => Promise<void>,
): Promise<void> {
  const world = await startWorld({ target });
  try {
    await world.join({ name: "one" }, { name: "two" }, { name: "three" });
    const blue = await world.createRepository("app", files("blue"));
    const git = { url: world.git.url("app"), ref: { branch: "main" } };
    await world.apply(sourceDocument("app", { git, paths: ["deploy"], interval: "1h" }));
    const green = await world.push("app", files("green"));
    await use(world, { blue, green });
  } finally {
    await world.close();
  }
}

describe.each(storyTargets)("on $name", (target) => {
  test("two Syncs stay at two revisions of one Source, and a third follows it", () =>
    withThreePushes(target, async (world, { blue, green }) => {
      await world.apply(
        syncOn("one", { revision: blue }),
        syncOn("two", { revision: `sha1:${green}` }),
        syncOn("three"),
      );
      const colors = () => Promise.all(["one", "two", "three"].map((cluster) => colorOn(world, cluster)));
      await world.waitFor("each has its own", async () => (await colors()).join() === "blue,green,green");
      world.fleet.clearRequests();
      await world.push("app", files("red"));
      await world.waitFor("one follows", async () => (await colors()).join() === "blue,green,red");
      await world.waitFor("all are ready", async () => {
        const syncs = await Promise.all(["one", "two", "three"].map((name) => world.sync(name, `at-${name}`)));
        return syncs.every((sync) => sync?.status.state === "Ready");
      });
      const written = world.fleet.requests().filter(({ method }) => method === "PATCH" || method === "POST");
      expect(new Set(written.map(({ cluster }) => cluster))).toEqual(new Set(["three"]));
      expect((await world.sync("one", "at-one"))?.status.observed?.applied?.revision).toContain(blue);
      expect((await world.sync("two", "at-two"))?.status.observed?.applied?.revision).toContain(green);
      // The one that stayed goes on to another revision when its spec says so.
      await world.apply(syncOn("one", { revision: green }));
      await world.waitFor("it goes on", async () => (await colors()).join() === "green,green,red");
    }));
});
