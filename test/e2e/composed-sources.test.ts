/** A Source that includes another one, from a push to the clusters; what happens is counted at the API servers. */
import { describe, expect, test } from "vitest";
import { quiet } from "#local/aws/wire/fault-options.ts";
import {
  configMap,
  groupDocument,
  namespaceManifest,
  ringStages,
  ringsOf,
  sourceDocument,
} from "#test/support/e2e-documents.ts";
import { namespace, startWorld, type World } from "#test/support/e2e-world.ts";
import { storyTargets } from "#test/support/fleet-targets.ts";

const configs = `/api/v1/namespaces/${namespace}/configmaps`;
const rings = { canary: 1, production: 2 };

const shared = (color: string) => ({ "base/shared.yaml": configMap("shared", { color }) });

/** The clusters in which the included object was written, in the order of the writes. */
function writtenIn(world: World): readonly string[] {
  return world.fleet
    .requests()
    .filter(({ dryRun, method, path }) => !dryRun && method === "PATCH" && path === `${configs}/shared`)
    .map(({ cluster }) => cluster);
}

/** The versions of an object in each cluster. A write without a change makes no other version. */
async function versionsOf(world: World, name: string): Promise<readonly string[]> {
  const answers = await Promise.all(
    world.fleet.connections().map((one) => world.kubectl(one.name, { method: "GET", path: `${configs}/${name}` })),
  );
  return answers.map(({ object }) => (object.metadata as { readonly resourceVersion: string }).resourceVersion);
}

/** A group in two stages of a Source `app`, which includes the folder `base` of the Source `base`. */
async function start(world: World): Promise<string> {
  await world.join(...ringsOf(rings));
  await world.createRepository("base", { ...shared("blue"), "notes/readme.txt": "one" });
  const commit = await world.createRepository("app", {
    "deploy/own.yaml": namespaceManifest + configMap("own", { color: "white" }),
  });
  const git = (name: string) => ({ url: world.git.url(name), ref: { branch: "main" } });
  const include = [{ source: "base", fromPath: "base", toPath: "deploy/base" }];
  await world.apply(
    sourceDocument("base", { git: git("base"), interval: "1h" }),
    sourceDocument("app", { git: git("app"), include, interval: "1h" }),
    groupDocument("web", {
      clusters: { all: true },
      templates: [{ name: "web", source: "app", path: "deploy" }],
      rollout: { stages: ringStages("canary", "production") },
    }),
  );
  await world.untilInSync("web", commit);
  return commit;
}

async function untilColor(world: World, color: string): Promise<void> {
  await world.waitFor(`all clusters have ${color}`, async () => {
    const { status } = await world.rollout("web");
    const answers = await Promise.all(
      world.fleet.connections().map(({ name }) => world.kubectl(name, { method: "GET", path: `${configs}/shared` })),
    );
    const colors = answers.map(({ object }) => (object.data as { readonly color?: string } | undefined)?.color);
    return status.phase === "Complete" && colors.every((each) => each === color);
  });
}

describe.each(storyTargets)("on $name", (target) => {
  test("a change of an included Source goes through the stages at the same revision, and one beside it writes nothing [source.include.stages]", async () => {
    const world = await startWorld({ target, faults: quiet });
    try {
      const commit = await start(world);
      await untilColor(world, "blue");
      const before = await world.source("app");
      const own = await versionsOf(world, "own");
      world.fleet.clearRequests();

      // The webhook of the included repository wakes both Sources: each has an interval of an hour.
      await world.push("base", shared("red"));
      await untilColor(world, "red");
      const after = await world.source("app");
      expect(after.status.artifact?.revision).toBe(before.status.artifact?.revision);
      expect(after.status.artifact?.revision).toContain(commit);
      expect(after.status.artifact?.digest).not.toBe(before.status.artifact?.digest);
      const writes = writtenIn(world);
      expect(writes[0]).toBe("canary-1");
      expect(writes.toSorted()).toEqual(["canary-1", "production-1", "production-2"]);
      expect(await versionsOf(world, "own")).toEqual(own);
      expect((await world.rollout("web")).spec.number).toBe(2);

      // Its new commit has nothing that is included: the artifact names it, and stays.
      world.fleet.clearRequests();
      const beside = await world.push("base", { "notes/readme.txt": "two" });
      const unmoved = await world.waitFor("the poll", async () => {
        const source = await world.source("app");
        return source.status.artifact?.included?.[0]?.revision.endsWith(beside) === true && source;
      });
      expect(unmoved.status.artifact?.digest).toBe(after.status.artifact?.digest);
      // Had it begun a rollout, the next one would have another number, and more writes.
      await world.push("base", shared("green"));
      await untilColor(world, "green");
      expect((await world.rollout("web")).spec.number).toBe(3);
      expect(writtenIn(world).toSorted()).toEqual(["canary-1", "production-1", "production-2"]);

      const path = `/v1/namespaces/${namespace}/sources/base?confirm=true`;
      await expect(world.session.call("DELETE", path)).rejects.toThrow(
        `Source ${namespace}/base is used by Source/app; point them at another Source or delete them first`,
      );
    } finally {
      await world.close();
    }
  });
});
