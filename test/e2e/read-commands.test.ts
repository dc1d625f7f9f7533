/** The real command shows objects, drift and commits after a push and an edit by hand. */
import { describe, expect, test } from "vitest";
import { configMap, namespaceManifest } from "#test/support/e2e-documents.ts";
import { namespace } from "#test/support/e2e-world.ts";
import { fleetTargets } from "#test/support/fleet-targets.ts";
import { webWorldOn } from "#test/support/web-world.ts";
import { openWorldCli } from "#test/support/world-cli.ts";

const cluster = "all-1";
const files = {
  "deploy/namespace.yaml": namespaceManifest,
  "deploy/a.yaml": configMap("a", { color: "blue" }),
  "deploy/b.yaml": configMap("b", { color: "blue" }),
};

describe.each(fleetTargets)("on $name", (fleet) => {
  test("commands show objects, drift by field, history and trees of a fleet that somebody edited", () =>
    webWorldOn(fleet)(
      { rings: { all: 1 }, files, apply: { interval: "10s", drift: "report" } },
      async (world, commit) => {
        await world.untilInSync("web", commit);
        const cli = openWorldCli(world);
        try {
          expect((await cli.run("wait sync/web.app --cluster all-1 --for=condition=Ready --timeout 60s")).code).toBe(0);
          const before = (await cli.run("describe sync/web.app --cluster all-1")).out;
          expect(before).toMatch(/ConfigMap \S+\/a +Ready +\d+s/);
          expect(before).toMatch(/Namespace \S+ +Ready +\d+s/);

          const path = `/api/v1/namespaces/${namespace}/configmaps/a`;
          await world.kubectl(cluster, { method: "PATCH", path, body: { data: { color: "vermilion" } } });
          await world.waitFor("the drift is told of", async () => {
            const sync = await world.sync(cluster, "web.app");
            return sync?.status.observed?.drift?.corrected === false;
          });
          const drifted = await cli.run("describe sync/web.app --cluster all-1");
          expect(drifted.out).toMatch(
            /Drift: 1 object at .*, not corrected\n +ConfigMap \S+\/a +Changed: data\.color, by /,
          );
          const [worst] = JSON.parse((await cli.run("tree sync/web.app --cluster all-1 -o json")).out).children;
          expect(worst.about[0]).toBe("Drifted");
          expect(drifted.out).not.toContain("vermilion");

          const history = (await cli.run("history web -o json")).out;
          const [newest] = JSON.parse(history).items;
          expect(newest.templates[0].commit).toMatchObject({ id: commit, author: expect.stringContaining("@") });
          expect((await cli.run(`get versions`)).out).toContain(commit.slice(0, 7));
          expect((await cli.run(`tree cluster/${cluster} --objects`)).out).toMatch(/├─ ConfigMap \S+\/a +Drifted/);
        } finally {
          cli.close();
        }
      },
    ));
});
