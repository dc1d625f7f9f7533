/**
 * Nights of an operator who types what `starling rollout status` prints, and nothing else. The API servers count what
 * reaches the clusters.
 */
import { describe, expect, test } from "vitest";
import { quiet } from "#local/aws/wire/fault-options.ts";
import { isOfType } from "#shared/fleet/rows/stored-row.ts";
import { configMap, namespaceManifest, ringStages } from "#test/support/e2e-documents.ts";
import type { World } from "#test/support/e2e-world.ts";
import { noRealServers, realServers, storyTargets } from "#test/support/fleet-targets.ts";
import { webWorldOn } from "#test/support/web-world.ts";
import { openWorldCli, type WorldCli } from "#test/support/world-cli.ts";

const path = "/api/v1/namespaces/shop/configmaps";
const settings = (color: string) => ({
  "deploy/settings.yaml": namespaceManifest + configMap("settings", { color }),
});
/** Applied after the settings, and refused where a test says so. */
const probe = { "deploy/zz-probe.yaml": configMap("probe", {}) };
const refused = {
  status: 422,
  body: { kind: "Status", apiVersion: "v1", status: "Failure", reason: "Invalid", message: "no room", code: 422 },
};
const errors = "arn:aws:cloudwatch:us-east-1:000000000000:alarm:errors";
const alarmed = (ringStages("canary", "broad") ?? []).map((stage, index) =>
  index === 0 ? { ...stage, after: [{ bake: "120s" }, { alarm: { arn: errors } }] } : stage,
);

async function colorsOf(world: World): Promise<Readonly<Record<string, string | undefined>>> {
  const names = world.fleet.connections().map(({ name }) => name);
  const colors = await Promise.all(
    names.map(async (name) => {
      const { object } = await world.kubectl(name, { method: "GET", path: `${path}/settings` });
      return [name, (object as { readonly data?: { readonly color?: string } }).data?.color] as const;
    }),
  );
  return Object.fromEntries(colors);
}

function writtenTo(world: World): readonly string[] {
  const writes = world.fleet.requests().filter(({ method }) => method !== "GET");
  return [...new Set(writes.filter((one) => one.path === `${path}/settings`).map(({ cluster }) => cluster))].sort();
}

/** Types each command that the status prints for the verb, with a reason in place of the dots. */
async function type(cli: WorldCli, verb: string): Promise<void> {
  const { out } = await cli.run("rollout status web");
  const lines = [...out.matchAll(/^ {2}(?:next:| {5}) starling (.*?)(?: {3}\(.*\))?$/gm)].map(([, line = ""]) => line);
  const commands = lines.filter((line) => line.startsWith(verb));
  expect({ out, commands }).toMatchObject({ commands: [expect.anything(), ...commands.slice(1)] });
  for (const line of commands) {
    const ran = await cli.run(line.split(" ").map((word) => (word === "…" ? "INC-4711" : word)));
    expect({ line, ...ran }).toMatchObject({ code: 0 });
  }
}

const untilState = (world: World, state: string) =>
  world.waitFor(`the group is ${state}`, async () => (await world.group("web")).status.state === state);
const untilPhase = (world: World, number: number, phase: string) =>
  world.waitFor(`rollout ${number} is ${phase}`, async () => {
    const { spec, status } = await world.rollout("web");
    return spec.number === number && status.phase === phase;
  });

if (realServers === "missing") console.log(noRealServers);

describe.each(storyTargets)("on $name", (fleet) => {
  const withWebWorld = webWorldOn(fleet);
  const world = { faults: quiet, rate: 20 };

  test("a bad version that fails on the canary goes back, is held, and the next push goes out after the release", () => {
    const rollout = { progressDeadline: "30s" };
    return withWebWorld(
      { rings: { canary: 1, broad: 2 }, files: settings("blue"), rollout, world },
      async (it, good) => {
        const cli = openWorldCli(it);
        await it.untilInSync("web", good);
        it.fleet.clearRequests();
        it.fleet.intercept((one) => (one.method === "PATCH" && one.path.endsWith("/probe") ? refused : "pass"));
        await it.push("app", { ...settings("red"), ...probe });
        await untilState(it, "Halted");
        expect((await cli.run("rollout status web")).code).toBe(1);
        expect(await colorsOf(it)).toEqual({ "canary-1": "red", "broad-1": "blue", "broad-2": "blue" });

        await type(cli, "rollout rollback");
        await untilPhase(it, 3, "RolledBack");
        expect(await colorsOf(it)).toEqual({ "canary-1": "blue", "broad-1": "blue", "broad-2": "blue" });
        expect(writtenTo(it)).toEqual(["canary-1"]);

        it.fleet.intercept(undefined);
        const fix = await it.push("app", settings("green"));
        await it.waitFor("the fix is held", async () =>
          (await cli.run("rollout status web")).out.includes("INC-4711; rollout 4 waits"),
        );
        expect(writtenTo(it)).toEqual(["canary-1"]);
        await type(cli, "rollout release");
        await it.untilInSync("web", fix);
        expect((await cli.run("rollout status web")).code).toBe(0);
        cli.close();
      },
    );
  });

  test("a version whose alarm rings at night is rejected, then taken back from the canary, and the next push goes out", () =>
    withWebWorld(
      { rings: { canary: 1, broad: 2 }, files: settings("blue"), rollout: { stages: alarmed }, world },
      async (it, good) => {
        const { alarms } = it.machine;
        alarms.set({ name: "errors", state: "OK" });
        const cli = openWorldCli(it);
        await it.untilInSync("web", good);
        it.fleet.clearRequests();
        await it.push("app", settings("red"));
        await it.waitFor("the canary bakes", async () =>
          (await it.rows()).some((row) => isOfType(row, "StageRun") && row.phase === "Baking" && row.rollout === 2),
        );
        alarms.set({ name: "errors", state: "ALARM" });
        await untilState(it, "Stalled");

        await type(cli, "rollout reject");
        await untilPhase(it, 2, "Rejected");
        await type(cli, "rollout rollback");
        await untilPhase(it, 3, "RolledBack");
        expect(await colorsOf(it)).toEqual({ "canary-1": "blue", "broad-1": "blue", "broad-2": "blue" });
        expect(writtenTo(it)).toEqual(["canary-1"]);

        alarms.set({ name: "errors", state: "OK" });
        await type(cli, "rollout release");
        await it.untilInSync("web", await it.push("app", settings("green")));
        cli.close();
      },
    ));

  test("two broken clusters are skipped, the others go on without them, and each gets its turn in the morning", () => {
    const rollout = { maxConcurrent: "100%", progressDeadline: "30s" } as const;
    const rings = { canary: 1, broad: 4, last: 1 };
    return withWebWorld({ rings, files: settings("blue"), rollout, world }, async (it, good) => {
      const cli = openWorldCli(it);
      await it.untilInSync("web", good);
      it.fleet.intercept(({ cluster, method, path: asked }) =>
        ["broad-1", "broad-2"].includes(cluster) && method === "PATCH" && asked.endsWith("/settings")
          ? refused
          : "pass",
      );
      const pushed = await it.push("app", settings("green"));
      await untilState(it, "Halted");
      await it.waitFor("both have failed", async () =>
        (await cli.run("rollout status web")).out.includes("2 of 4 clusters failed"),
      );
      await type(cli, "rollout skip");
      await untilPhase(it, 2, "Complete");
      expect(await colorsOf(it)).toMatchObject({ "broad-2": "blue", "broad-3": "green", "last-1": "green" });
      it.fleet.intercept(undefined);
      await type(cli, "rollout retry");
      await it.untilInSync("web", pushed);
      cli.close();
    });
  });
});
