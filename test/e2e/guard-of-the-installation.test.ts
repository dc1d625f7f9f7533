/** Requests that reach the API servers when a push loses most of a Sync's objects, in a group that names no guard. */
import { describe, expect, test } from "vitest";
import { quiet } from "#local/aws/wire/fault-options.ts";
import { configMap, namespaceManifest } from "#test/support/e2e-documents.ts";
import type { World } from "#test/support/e2e-world.ts";
import { noRealServers, realServers, storyTargets } from "#test/support/fleet-targets.ts";
import { webWorldOn } from "#test/support/web-world.ts";
import { openWorldCli } from "#test/support/world-cli.ts";

const names = Array.from({ length: 8 }, (_, index) => `settings-${index}`);
const fileOf = (name: string) => `deploy/${name}.yaml`;
const files = {
  "deploy/namespace.yaml": namespaceManifest,
  ...Object.fromEntries(names.map((name) => [fileOf(name), configMap(name, { color: "blue" })])),
};

/** The ConfigMaps that Starling deleted, by cluster. */
function deleted(world: World): readonly string[] {
  const requests = world.fleet
    .requests()
    .filter(({ method, path }) => method === "DELETE" && path.includes("/configmaps/"));
  return requests.map(({ cluster, path }) => `${cluster} ${path.split("/").at(-1)}`).sort();
}

if (realServers === "missing") console.log(noRealServers);

describe.each(storyTargets)("on $name", (fleet) => {
  test("the canary deletes nothing before somebody has approved it, and then each cluster deletes exactly that", () =>
    webWorldOn(fleet)(
      { rings: { canary: 1, broad: 1 }, files, world: { faults: quiet, rate: 20, guard: '{"additions":100}' } },
      async (it, commit) => {
        await it.untilInSync("web", commit);
        const cli = openWorldCli(it);
        const lost = names.slice(0, 6);
        const pushed = await it.push("app", Object.fromEntries(lost.map((name) => [fileOf(name), null])));
        const statusNow = async () => (await cli.run("rollout status web")).out;
        await it.waitFor("the guard asks", async () => (await statusNow()).includes("guard approve"));
        const [hash = ""] = /(?<=--hash )\w+/.exec(await statusNow()) ?? [];
        expect(deleted(it)).toEqual([]);
        const approve = ["guard", "approve", "web", "--hash", hash, "--reason", "the settings moved"];
        expect(await cli.run(approve)).toMatchObject({ code: 0 });
        await it.untilInSync("web", pushed);
        expect(deleted(it)).toEqual(
          ["broad-1", "canary-1"].flatMap((cluster) => lost.map((name) => `${cluster} ${name}`)),
        );
        cli.close();
      },
    ));
});
