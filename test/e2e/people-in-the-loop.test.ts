/** Requests that reach the API servers while people hold, reject or bake rollouts. The command gives their orders. */
import { describe, expect, test } from "vitest";
import { quiet } from "#local/aws/wire/fault-options.ts";
import { isOfType } from "#shared/fleet/rows/stored-row.ts";
import { configMap, namespaceManifest, ringStages } from "#test/support/e2e-documents.ts";
import type { World } from "#test/support/e2e-world.ts";
import { noRealServers, realServers, storyTargets } from "#test/support/fleet-targets.ts";
import { webGroup, webWorldOn } from "#test/support/web-world.ts";
import { openWorldCli, type WorldCli } from "#test/support/world-cli.ts";

const rings = { canary: 1, broad: 2 };
const bakeSeconds = 120;
const stages = (ringStages("canary", "broad") ?? []).map((stage, index) =>
  index === 0 ? { ...stage, after: [{ bake: `${bakeSeconds}s` }] } : stage,
);

const errors = "arn:aws:cloudwatch:us-east-1:000000000000:alarm:errors";
const alarmed = stages.map((stage, index) =>
  index === 0 ? { ...stage, after: [{ bake: `${bakeSeconds}s` }, { alarm: { arn: errors } }] } : stage,
);

const localUser = "arn:aws:iam::000000000000:user/local";
const checked = (ringStages("canary", "broad") ?? []).map((stage, index) =>
  index === 0 ? { ...stage, after: [{ check: { principal: localUser } }] } : stage,
);

const settings = (color: string) => ({
  "deploy/settings.yaml": namespaceManifest + configMap("settings", { color }),
});

/** The clusters that Starling wrote to since the requests were cleared. */
function writtenTo(world: World): readonly string[] {
  const writes = world.fleet.requests().filter(({ method }) => method !== "GET");
  const objects = writes.filter(({ path }) => path.includes("/configmaps/settings"));
  return [...new Set(objects.map(({ cluster }) => cluster))].sort();
}

async function run(cli: WorldCli, line: string | readonly string[]): Promise<string> {
  const { code, out, err } = await cli.run(line);
  expect({ line, code, err }).toMatchObject({ code: expect.toBeOneOf([0, 1]) });
  return `${out}${err}`;
}

const stateOf = async (world: World) => (await world.group("web")).status.state;
const untilState = (world: World, state: string) =>
  world.waitFor(`the group is ${state}`, async () => (await stateOf(world)) === state);

const untilBaking = (world: World) =>
  world.waitFor("the canary bakes", async () =>
    (await world.rows()).some((row) => isOfType(row, "StageRun") && row.phase === "Baking"),
  );

const refused = {
  status: 422,
  body: { kind: "Status", apiVersion: "v1", status: "Failure", reason: "Invalid", message: "no room", code: 422 },
};

if (realServers === "missing") console.log(noRealServers);

describe.each(storyTargets)("on $name", (fleet) => {
  const withWebWorld = webWorldOn(fleet);
  const world = { faults: quiet, rate: 20 };

  test("a held group writes nothing of a push, and a release rolls it out", () =>
    withWebWorld({ rings, files: settings("blue"), world }, async (it, commit) => {
      const cli = openWorldCli(it);
      await it.untilInSync("web", commit);
      expect(await run(cli, ["rollout", "hold", "web", "--reason", "INC-4711"])).toContain("web held");
      it.fleet.clearRequests();
      const pushed = await it.push("app", settings("green"));
      await untilState(it, "Held");
      const status = await run(cli, "rollout status web");
      expect(status).toContain("INC-4711; rollout 2 waits");
      expect(status).toContain("starling rollout release web");
      expect(writtenTo(it)).toEqual([]);
      await run(cli, "rollout release web");
      await it.untilInSync("web", pushed);
      expect(writtenTo(it)).toEqual(["broad-1", "broad-2", "canary-1"]);
      cli.close();
    }));

  test("a cordoned cluster gets nothing of a push, its drift is corrected, and it catches up after the uncordon", () =>
    withWebWorld({ rings, files: settings("blue"), world }, async (it, commit) => {
      const cli = openWorldCli(it);
      await it.untilInSync("web", commit);
      await run(cli, ["cordon", "broad-1", "--reason", "INC-4711"]);
      it.fleet.clearRequests();
      const pushed = await it.push("app", settings("green"));
      await untilState(it, "Held");
      expect(writtenTo(it)).toEqual(["broad-2", "canary-1"]);
      // Between the stage that passed without it and its catch-up, nothing waits for a moment.
      await it.waitFor("the status names the cordon", async () =>
        (await run(cli, "rollout status web")).includes("starling uncordon broad-1"),
      );
      expect(await run(cli, "get clusters")).toMatch(/broad-1 .*Cordoned/);
      const at = "/api/v1/namespaces/shop/configmaps/settings";
      await it.kubectl("broad-1", { method: "DELETE", path: at });
      const color = async () => {
        const { object } = await it.kubectl("broad-1", { method: "GET", path: at });
        return (object as { readonly data?: { readonly color?: string } }).data?.color;
      };
      await run(cli, "reconcile syncgroup/web");
      await it.waitFor("the deleted object is back", async () => (await color()) === "blue");
      await run(cli, "uncordon broad-1");
      await it.untilInSync("web", pushed);
      expect(await color()).toBe("green");
      cli.close();
    }));

  test("a failing cluster that is skipped gets no write, the others go on without it, and a retry brings it", () => {
    const rollout = { maxConcurrent: 1, progressDeadline: "30s" };
    const three = { canary: 1, broad: 2, last: 1 };
    return withWebWorld({ rings: three, files: settings("blue"), rollout, world }, async (it, commit) => {
      await it.untilInSync("web", commit);
      const cli = openWorldCli(it);
      it.fleet.intercept(({ cluster, method, path }) =>
        cluster === "broad-1" && method === "PATCH" && path.endsWith("/settings") ? refused : "pass",
      );
      const pushed = await it.push("app", settings("green"));
      await untilState(it, "Halted");
      expect(await run(cli, "rollout status web")).toContain("starling rollout skip web");
      it.fleet.clearRequests();
      const options = ["--cluster", "broad-1", "--reason", "INC-4711"];
      expect(await run(cli, ["rollout", "skip", "web", ...options])).toContain("web broad-1 skipped");
      await it.waitFor("it is complete", async () => (await it.rollout("web", 2)).status.phase === "Complete");
      it.fleet.intercept(undefined);
      // Every Sync is checked, and the skipped cluster still has no turn to begin.
      expect(await run(cli, "reconcile sg/web --wait")).toContain("broad-1 has not got rollout 2 (skipped by");
      expect(writtenTo(it)).toEqual(["broad-2", "last-1"]);
      expect(await run(cli, "rollout status web")).toMatch(/broad-1.*INC-4711[\s\S]*starling rollout retry web/);
      await run(cli, ["rollout", "retry", "web", ...options]);
      await it.untilInSync("web", pushed);
      expect(writtenTo(it)).toEqual(["broad-1", "broad-2", "last-1"]);
      cli.close();
    });
  });

  test("no cluster of the next stage is written to before the canary has baked, whatever is pushed meanwhile", () =>
    withWebWorld({ rings, files: settings("blue"), rollout: { stages }, world }, async (it, commit) => {
      await it.untilInSync("web", commit);
      const at = new Map<string, number>();
      it.fleet.onRequest(({ cluster, method, path, userAgent }) => {
        const isWrite = method === "PATCH" && path.includes("/configmaps/settings");
        if (isWrite && userAgent !== undefined && !at.has(cluster)) at.set(cluster, it.clock.now().getTime());
      });
      const cli = openWorldCli(it);
      const pushed = await it.push("app", settings("green"));
      await untilBaking(it);
      expect(await run(cli, "rollout status web")).toContain("baking");
      const next = await it.push("app", settings("red"));
      await it.waitFor("the broad stage has the first push", async () => at.has("broad-1") && at.has("broad-2"));
      const [canary = 0, ...broad] = ["canary-1", "broad-1", "broad-2"].map((name) => at.get(name));
      for (const time of broad) expect((time ?? 0) - canary).toBeGreaterThanOrEqual(bakeSeconds * 1000);
      await it.untilInSync("web", next);
      expect(pushed).not.toBe(next);
      cli.close();
    }));

  test("a rollout that is rejected while its canary bakes reaches no further cluster, and the fix reaches all", () =>
    withWebWorld({ rings, files: settings("blue"), rollout: { stages }, world }, async (it, commit) => {
      await it.untilInSync("web", commit);
      const cli = openWorldCli(it);
      it.fleet.clearRequests();
      await it.push("app", settings("bad"));
      await untilBaking(it);
      await run(cli, ["rollout", "reject", "web", "2", "--reason", "payments fail"]);
      await it.waitFor("it is rejected", async () => (await it.rollout("web", 2)).status.phase === "Rejected");
      expect(writtenTo(it)).toEqual(["canary-1"]);
      await it.untilInSync("web", await it.push("app", settings("good")));
      expect(writtenTo(it)).toEqual(["broad-1", "broad-2", "canary-1"]);
      const { data } = (
        await it.kubectl("broad-1", { method: "GET", path: "/api/v1/namespaces/shop/configmaps/settings" })
      ).object as { readonly data?: { readonly color?: string } };
      expect(data?.color).toBe("good");
      cli.close();
    }));

  test("a rollout whose alarm rings while its canary bakes reaches no further cluster, and the next one passes", () =>
    withWebWorld({ rings, files: settings("blue"), rollout: { stages: alarmed }, world }, async (it, commit) => {
      const { alarms } = it.machine;
      alarms.set({ name: "errors", state: "OK" });
      await it.untilInSync("web", commit);
      const cli = openWorldCli(it);
      it.fleet.clearRequests();
      await it.push("app", settings("bad"));
      await untilBaking(it);
      // It is over before anybody looks.
      alarms.set({ name: "errors", state: "ALARM" });
      alarms.set({ name: "errors", state: "OK" });
      await untilState(it, "Stalled");
      const status = await run(cli, "rollout status web");
      expect(status).toContain("alarm errors was in ALARM at ");
      expect(status).toContain("starling rollout retry web");
      expect(writtenTo(it)).toEqual(["canary-1"]);
      await it.untilInSync("web", await it.push("app", settings("good")));
      expect(writtenTo(it)).toEqual(["broad-1", "broad-2", "canary-1"]);
      cli.close();
    }));

  test("a rollout that a program rejects reaches no further cluster, and the one that it approves reaches all", () =>
    withWebWorld({ rings, files: settings("blue"), world }, async (it, commit) => {
      await it.untilInSync("web", commit);
      await it.apply(webGroup({ rings, rollout: { stages: checked } }));
      const cli = openWorldCli(it);
      const answer = async (verb: "approve" | "reject", number: number) => {
        const { out } = await cli.run("rollout status web");
        const plan = new RegExp(`rollout ${number} is checked .* about plan ([0-9a-f]+)`).exec(out)?.[1];
        if (plan === undefined) return false;
        const done = await run(cli, [
          "rollout",
          verb,
          "web",
          "--stage",
          "canary",
          "--plan",
          plan,
          "--reason",
          "errors",
        ]);
        expect(done).toContain(verb === "approve" ? `approved: plan ${plan}` : `rejected: plan ${plan}`);
        return true;
      };
      it.fleet.clearRequests();
      await it.push("app", settings("bad"));
      await it.waitFor("the program is asked", () => answer("reject", 2));
      await untilState(it, "Stalled");
      expect(writtenTo(it)).toEqual(["canary-1"]);
      const good = await it.push("app", settings("good"));
      await it.waitFor("the program is asked again", () => answer("approve", 3));
      await it.untilInSync("web", good);
      expect(writtenTo(it)).toEqual(["broad-1", "broad-2", "canary-1"]);
      cli.close();
    }));
});
