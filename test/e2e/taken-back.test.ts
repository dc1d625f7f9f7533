/** A night: git does not answer, and people take a group back whose clusters are not all well. */
import { setTimeout } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { quiet } from "#local/aws/wire/fault-options.ts";
import { type PacedClock, pacedClock } from "#local/base/paced-clock.ts";
import type { HistoryItem } from "#shared/fleet/api/history-item.ts";
import type { ApiList } from "#shared/fleet/api/objects.ts";
import { clusterSecret } from "#shared/fleet/cluster-secret.ts";
import { configMap, namespaceManifest } from "#test/support/e2e-documents.ts";
import type { World } from "#test/support/e2e-world.ts";
import { noRealServers, realServers, storyTargets } from "#test/support/fleet-targets.ts";
import { webWorldOn } from "#test/support/web-world.ts";
import { openWorldCli } from "#test/support/world-cli.ts";

const rate = 20;
const rings = { canary: 1, production: 5 };
const settings = (color: string) => ({
  "deploy/settings.yaml": namespaceManifest + configMap("settings", { color }),
});
const path = "/api/v1/namespaces/shop/configmaps";

/** A clock that runs at `rate`, and like a wall clock from `slow` to `fast`. */
function clockOfTwoSpeeds(): { readonly clock: PacedClock; slow(): void; fast(): void } {
  const paced = pacedClock(rate);
  let [from, at, speed] = [paced.now().getTime(), paced.now().getTime(), 1];
  const nowMs = () => at + (paced.now().getTime() - from) * speed;
  const set = (next: number) => {
    [at, from, speed] = [nowMs(), paced.now().getTime(), next];
  };
  return {
    clock: {
      rate,
      now: () => new Date(nowMs()),
      async sleep(milliseconds) {
        const until = nowMs() + milliseconds;
        for (let left = milliseconds; left > 0; left = until - nowMs())
          await setTimeout(Math.min(100, Math.ceil(left / (rate * speed))));
      },
    },
    slow: () => set(1 / rate),
    fast: () => set(1),
  };
}

async function colorOf(world: World, cluster: string): Promise<string | undefined> {
  const { object } = await world.kubectl(cluster, { method: "GET", path: `${path}/settings` });
  return (object as { readonly data?: { readonly color?: string } }).data?.color;
}

const writesOf = (world: World) => world.fleet.requests().filter(({ method }) => method !== "GET" && method !== "HEAD");

/** The clusters whose settings Starling wrote since the requests were cleared, in their order. */
function writtenTo(world: World): readonly string[] {
  const writes = writesOf(world).filter((request) => request.path.startsWith(`${path}/settings`));
  return [...new Set(writes.map(({ cluster }) => cluster))];
}

if (realServers === "missing") console.log(noRealServers);

describe.each(storyTargets)("on $name", (fleet) => {
  test("a bad rollout is taken back within 30 s without git, and the fix goes through the stages after its release", () => {
    const { clock, slow, fast } = clockOfTwoSpeeds();
    let isGitDown = false;
    const disturbGit = () => (isGitDown ? ({ when: "before", as: "serverError" } as const) : undefined);
    const rollout = { maxConcurrent: 2, maxUnreachable: 5 };
    const world = { faults: quiet, rate, clock, disturbGit };
    return webWorldOn(fleet)({ rings, files: settings("blue"), rollout, world }, async (it, good) => {
      const cli = openWorldCli(it);
      const run = async (line: string, reason?: string) => {
        const words = [...line.split(" "), ...(reason === undefined ? [] : ["--reason", reason])];
        const { code, out, err } = await cli.run(words);
        expect({ line, code, err }).toMatchObject({ code: expect.toBeOneOf([0, 1]) });
        return `${out}${err}`;
      };
      const others = ["canary-1", "production-1", "production-5"];
      const untilColor = (color: string, ...clusters: readonly string[]) =>
        it.waitFor(`${color} on ${clusters.join(", ")}`, async () => {
          const colors = await Promise.all(clusters.map((cluster) => colorOf(it, cluster)));
          return colors.every((one) => one === color);
        });
      await it.untilInSync("web", good);
      const bad = await it.push("app", { ...settings("bad"), "deploy/extra.yaml": configMap("extra", {}) });
      await it.untilInSync("web", bad);

      // The night: nothing of this keeps the others from going back.
      isGitDown = true;
      await it.apply({
        apiVersion: "starling.dev/v1alpha1",
        kind: "Window",
        metadata: { name: "closed" },
        spec: {
          clusters: { selector: { matchLabels: { ring: "production" } } },
          deny: [{ start: "2020-01-01T00:00:00Z", end: "2099-01-01T00:00:00Z" }],
        },
      });
      await run("cordon production-2", "its disk is exchanged");
      it.fleet.intercept(({ cluster }) => (cluster === "production-3" ? "reset" : "pass"));
      const rebuilt = await it.fleet.replace("production-4");
      await it.machine.putSecret("starling/clusters/production-4", clusterSecret(rebuilt));

      it.fleet.clearRequests();
      slow();
      const [askedAt, asked] = [performance.now(), clock.now().getTime()];
      expect(await run("rollout rollback web", "INC-4711")).toContain("web goes back to rollout 1");
      const isBack = async () => (await Promise.all(others.map((cluster) => colorOf(it, cluster)))).includes("blue");
      await it.waitFor("the first cluster has the old content", isBack, 30);
      const took = [performance.now() - askedAt, clock.now().getTime() - asked].map((ms) => (ms / 1000).toFixed(1));
      console.log(`the first cluster was back after ${took[0]} s, and ${took[1]} s of the functions' clock`);
      expect(performance.now() - askedAt).toBeLessThan(30_000);
      fast();
      await untilColor("blue", ...others);
      await it.waitFor("the rollback ends", async () => (await it.rollout("web", 3)).status.phase === "RolledBack");
      const status = await run("rollout status web");
      for (const named of ["production-2", "production-3", "INC-4711", "starling rollout release web"])
        expect(status).toContain(named);

      // The rebuilt cluster gets what its stage went back to, and the others as soon as they can.
      const accept = /starling (cluster accept production-4 --uid \S+?);/;
      const command = await it.waitFor("the other cluster is named", async () => {
        const sync = await it.sync("production-4", "web.app");
        return accept.exec(sync?.status.observed?.message ?? "")?.[1];
      });
      await run(`${command} --yes`, "rebuilt");
      await untilColor("blue", "production-4");
      expect(writtenTo(it)).not.toContain("production-2");
      await run("uncordon production-2", "its disk is exchanged");
      it.fleet.intercept(undefined);
      await untilColor("blue", "production-2", "production-3");
      const deleted = writesOf(it).filter(({ method }) => method === "DELETE");
      expect([...new Set(deleted.map((request) => request.path.split("?")[0]))]).toEqual([`${path}/extra`]);

      // The morning: the fix waits for its release, goes through the stages, and obeys the window.
      isGitDown = false;
      it.fleet.clearRequests();
      const fix = await it.push("app", settings("fixed"));
      await it.waitFor("the fix has a number", async () =>
        (await run("rollout status web")).includes("rollout 4 waits"),
      );
      expect(writtenTo(it)).toEqual([]);
      await run("rollout release web --to 4");
      await untilColor("fixed", "canary-1");
      await it.waitFor("it waits for the window", async () => /closed/.test(await run("rollout status web")));
      expect(writtenTo(it)).toEqual(["canary-1"]);
      await run("delete window/closed --yes");
      await it.waitFor("the fix is everywhere", async () => (await it.rollout("web", 4)).status.phase === "Complete");
      expect([...writtenTo(it)].sort()).toEqual([...others, "production-2", "production-3", "production-4"].sort());
      expect(writtenTo(it)[0]).toBe("canary-1");

      const { items } = JSON.parse(await run("history syncgroup/web -o json")) as ApiList<HistoryItem>;
      expect(items.map(({ number, trigger, phase }) => [number, trigger, phase])).toEqual([
        [4, "plan", "Complete"],
        [3, "rollback", "RolledBack"],
        [2, "plan", "Rejected"],
        [1, "plan", "Complete"],
      ]);
      const text = await run("history syncgroup/web");
      for (const words of ["INC-4711", "trigger: rollback"]) expect(text).toContain(words);
      expect(fix).not.toBe(bad);
      cli.close();
    });
  }, 280_000);
});
