/** A rollout that fails in a stage goes back there by itself; what happens is counted at the API servers. */
import { describe, expect, test } from "vitest";
import { quiet } from "#local/aws/wire/fault-options.ts";
import type { HistoryItem } from "#shared/fleet/api/history-item.ts";
import type { ApiList } from "#shared/fleet/api/objects.ts";
import { configMap, namespaceManifest } from "#test/support/e2e-documents.ts";
import type { World } from "#test/support/e2e-world.ts";
import { noRealServers, realServers, storyTargets } from "#test/support/fleet-targets.ts";
import { webWorldOn } from "#test/support/web-world.ts";
import { openWorldCli } from "#test/support/world-cli.ts";

const rings = { canary: 1, early: 2, production: 2 };
const path = "/api/v1/namespaces/shop/configmaps";
const settings = (color: string) => ({
  "deploy/settings.yaml": namespaceManifest + configMap("settings", { color }),
});

async function colorOf(world: World, cluster: string): Promise<string | undefined> {
  const { object } = await world.kubectl(cluster, { method: "GET", path: `${path}/settings` });
  return (object as { readonly data?: { readonly color?: string } }).data?.color;
}

/** By cluster, how often the settings were written there, and how often the probe was deleted. */
function writesIn(world: World): Readonly<Record<string, readonly [settings: number, deleted: number]>> {
  const done = world.fleet.requests().filter(({ dryRun, result }) => !dryRun && result >= 200 && result < 300);
  const count = (cluster: string, method: string, name: string) =>
    done.filter((one) => one.cluster === cluster && one.method === method && one.path === `${path}/${name}`).length;
  return Object.fromEntries(
    world.fleet
      .connections()
      .map(({ name }) => [name, [count(name, "PATCH", "settings"), count(name, "DELETE", "probe")] as const]),
  );
}

const refused = {
  status: 422,
  body: { kind: "Status", apiVersion: "v1", status: "Failure", reason: "Invalid", message: "no room", code: 422 },
};

if (realServers === "missing") console.log(noRealServers);

describe.each(storyTargets)("on $name", (fleet) => {
  test("the stage where a rollout fails goes back once; the stage before keeps it, and the one after never gets it", () => {
    const rollout = { maxConcurrent: 2, onFailure: "rollback", progressDeadline: "30s" } as const;
    return webWorldOn(fleet)(
      { rings, files: settings("blue"), rollout, world: { faults: quiet } },
      async (it, good) => {
        const cli = openWorldCli(it);
        await it.untilInSync("web", good);
        it.fleet.clearRequests();
        it.fleet.intercept(({ cluster, method, path: asked }) =>
          cluster === "early-2" && method === "PATCH" && asked.endsWith("/probe") ? refused : "pass",
        );
        await it.push("app", { ...settings("red"), "deploy/zz-probe.yaml": configMap("probe", {}) });
        await it.waitFor("the rollback has ended", async () => {
          const { spec, status } = await it.rollout("web");
          return spec.number === 3 && status.phase === "RolledBack";
        });
        expect(await Promise.all(it.fleet.connections().map(({ name }) => colorOf(it, name)))).toEqual(
          it.fleet.connections().map(({ name }) => (name === "canary-1" ? "red" : "blue")),
        );
        const back = {
          "canary-1": [1, 0],
          "early-1": [2, 1],
          "early-2": [2, 0],
          "production-1": [0, 0],
          "production-2": [0, 0],
        };
        expect(writesIn(it)).toEqual(back);

        const status = await cli.run("rollout status web");
        expect(status.out).toMatch(
          /rollout 2 rejected by Starling: 1 of 2 clusters failed in stage early \(allowed: 0\): early-2: .*no room/,
        );
        expect(status.out).toContain("starling rollout unreject web 2");
        const json = JSON.parse((await cli.run("rollout status web -o json")).out);
        expect(JSON.stringify(json)).toContain('"blocker":"Starling"');
        const { items } = JSON.parse((await cli.run("history syncgroup/web -o json")).out) as ApiList<HistoryItem>;
        expect(items.map(({ number, trigger, phase, asked }) => [number, trigger, phase, asked?.by])).toEqual([
          [3, "rollback", "RolledBack", "Starling"],
          [2, "plan", "Rejected", undefined],
          [1, "plan", "Complete", undefined],
        ]);

        // It happens once, and only a fix goes on.
        it.fleet.intercept(undefined);
        expect(await cli.run("reconcile sg/web --wait")).toMatchObject({
          code: 1,
          out: expect.stringMatching(/^syncgroup\/web Held rollout 2 rejected by Starling/m),
        });
        expect(writesIn(it)).toEqual(back);
        const fix = await it.push("app", settings("green"));
        await it.untilInSync("web", fix);
        expect(writesIn(it)).toMatchObject({ "canary-1": [2, 0], "early-2": [3, 0], "production-2": [1, 0] });
        cli.close();
      },
    );
  }, 180_000);
});
