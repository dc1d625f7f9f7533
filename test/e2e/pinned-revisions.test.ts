import { describe, expect, test } from "vitest";
import { quiet } from "#local/aws/wire/fault-options.ts";
import { ourApiVersion } from "#shared/fleet/kinds/metadata.ts";
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
import { openWorldCli } from "#test/support/world-cli.ts";

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
  test("two Syncs stay at two revisions of one Source, and a third follows it [source.pin.two]", () =>
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

  test("a Sync that returns gets nothing of the former place of its Source, also while the new one is away", async () => {
    let isAway = false;
    const disturbGit = ({ path }: { readonly path: string }) =>
      isAway && path.startsWith("/other") ? ({ when: "before", as: "serverError" } as const) : undefined;
    const world = await startWorld({ target, faults: quiet, disturbGit });
    try {
      await world.join({ name: "one" });
      for (const [repository, color] of [
        ["app", "green"],
        ["other", "red"],
      ] as const) {
        await world.createRepository(repository, files("white"));
        await world.git.commitFiles(repository, files(color), { message: color, tag: "v1" });
      }
      const sourceOf = (repository: string) =>
        sourceDocument("app", { git: { url: world.git.url(repository), ref: { branch: "main" } }, interval: "1h" });
      await world.apply(sourceOf("app"), syncOn("one", { revision: "v1" }));
      await world.waitFor("it has its revision", async () => (await colorOn(world, "one")) === "green");
      await world.session.call("DELETE", `/v1/namespaces/${namespace}/syncs/at-one?confirm=true`);
      await world.waitFor("it is gone", async () => !(await world.rows()).some(({ type }) => type === "Sync"));
      await world.session.call("DELETE", `/v1/namespaces/${namespace}/sources/app?confirm=true`);
      world.fleet.clearRequests();

      isAway = true;
      await world.apply(sourceOf("other"), syncOn("one", { revision: "v1" }));
      await world.waitFor("the new place was asked", async () =>
        (await world.rows()).some((row) => row.type === "Pin" && "failure" in row),
      );
      isAway = false;
      await world.waitFor("it has the revision of the new place", async () => (await colorOn(world, "one")) === "red");
      const written = world.fleet
        .requests()
        .filter(({ method, path, dryRun }) => method === "PATCH" && !dryRun && path === `${configs}/settings`);
      expect(written).toHaveLength(1);
    } finally {
      await world.close();
    }
  });

  test("another revision of a template goes through two stages, and reaches the second one with its approval only [source.pin.two]", async () => {
    const world = await startWorld({ target, faults: quiet });
    const cli = openWorldCli(world);
    try {
      await world.join(...ringsOf({ canary: 1, production: 2 }));
      const blue = await world.createRepository("app", files("blue"));
      const green = await world.push("app", files("green"));
      await world.push("app", files("red"));
      const approval = { by: ["arn:aws:iam::000000000000:user/local"], count: 1 };
      const stages = ringStages("canary", "production")?.map((stage) =>
        stage.name === "production" ? { ...stage, before: [{ approval }] } : stage,
      );
      const group = (revision: string) =>
        groupDocument("web", {
          clusters: { all: true },
          templates: [{ name: "web", source: "app", path: "deploy", revision }],
          rollout: { stages },
        });
      const colors = () =>
        Promise.all(["canary-1", "production-1", "production-2"].map((name) => colorOn(world, name)));
      const written = () =>
        world.fleet
          .requests()
          .filter(({ method, path, dryRun }) => method === "PATCH" && !dryRun && path === `${configs}/settings`)
          .map(({ cluster }) => cluster)
          .toSorted();
      const approve = async () => {
        const plan = await world.waitFor("the second stage asks", async () => {
          const { out } = await cli.run("rollout status web");
          return /--stage production --plan ([0-9a-f]+)/.exec(out)?.[1];
        });
        const line = [
          "rollout",
          "approve",
          "web",
          "--stage",
          "production",
          "--plan",
          plan,
          "--reason",
          "it looks well",
        ];
        expect(await cli.run(line)).toMatchObject({ code: 0 });
      };
      const git = { url: world.git.url("app"), ref: { branch: "main" } };
      await world.apply(sourceDocument("app", { git, paths: ["deploy"], interval: "1h" }), group(blue));
      await approve();
      await world.waitFor("all have the first revision", async () => (await colors()).join() === "blue,blue,blue");
      await world.waitFor("it is complete", async () => (await world.rollout("web")).status.phase === "Complete");
      world.fleet.clearRequests();

      await world.apply(group(green));
      await world.waitFor("the canary has the next one", async () => (await colors()).join() === "green,blue,blue");
      // A push to the Source concerns no template that stays.
      await world.push("app", files("white"));
      await world.waitFor("the second stage asks", async () =>
        (await cli.run("rollout status web")).out.includes("--stage production --plan"),
      );
      expect(written()).toEqual(["canary-1"]);
      expect((await world.rollout("web")).spec.number).toBe(2);
      await approve();
      await world.waitFor("all have the next one", async () => (await colors()).join() === "green,green,green");
      await world.waitFor("it is complete", async () => (await world.rollout("web")).status.phase === "Complete");
      expect(written()).toEqual(["canary-1", "production-1", "production-2"]);
    } finally {
      cli.close();
      await world.close();
    }
  });
});
