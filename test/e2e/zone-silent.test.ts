/** The network of a zone falls silent: from its clusters to the alarm, and back. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { quiet } from "#local/aws/wire/fault-options.ts";
import { pacedClock } from "#local/base/paced-clock.ts";
import { registerClusters } from "#local/machine/register-clusters.ts";
import { alarmHistory, type TimedLine } from "#test/support/alarm-watch.ts";
import { type BlackHole, startBlackHole } from "#test/support/black-hole.ts";
import { beginColoredWeb, coloredFiles } from "#test/support/colored-web.ts";
import { startWorld, type World } from "#test/support/e2e-world.ts";
import type { EmbeddedLine } from "#test/support/embedded-metrics.ts";
import { openWorldCli, type WorldCli } from "#test/support/world-cli.ts";
import { synthesizeTemplates } from "#test/synth/synthesized.ts";

const rate = 30;
/** As in AWS, the functions' clock sees one tick a minute. */
const tickEveryMs = 60_000 / rate;
/** The functions' patience with a connection, by their clock. */
const silentMs = 10_000 / rate;
const subnets = { subnets: ["subnet-0a1b2c3d4e5f60718"], securityGroups: ["sg-0a1b2c3d4e5f60718"] };
const zones = JSON.stringify([{ name: "spoke", ...subnets }]);
const { resources } = await synthesizeTemplates({ zones });

const clock = pacedClock(rate);
const nowSeconds = () => clock.now().getTime() / 1000;
const lines: TimedLine[] = [];
let world: World;
/** The way of the zone's workers to its clusters. */
let way: BlackHole;
let cli: WorldCli;

beforeAll(async () => {
  const onLine = (_from: string, line: string) =>
    void lines.push({ atSeconds: nowSeconds(), line: JSON.parse(line) as EmbeddedLine });
  world = await startWorld({ faults: quiet, clock, tickEveryMs, zones, onLine });
  await world.join({ name: "c1" }, { name: "c2" });
  way = await startBlackHole(Number(new URL(world.fleet.connection("c1").server).port), { silentMs });
  const behind = ["s1", "s2"].map(async (name) => {
    const { server, ...rest } = await world.fleet.add(name);
    return { connection: { ...rest, server: server.replace(/:\d+/, `:${way.port}`) }, zone: "spoke" };
  });
  await registerClusters(await Promise.all(behind), world.machine, world.session);
  cli = openWorldCli(world);
});
afterAll(async () => {
  cli.close();
  await world.close();
  await way.stop();
});

const zoneAlarm = "ZoneWatchspokeDown";
const states = (alarm: string) =>
  alarmHistory(alarm, { resources, lines, nowSeconds: nowSeconds(), machine: world.machine });
const requestsTo = (...clusters: readonly string[]) =>
  world.fleet.requests().filter(({ cluster }) => clusters.includes(cluster)).length;

test("a zone whose network falls silent is one cause and one alarm, fails nothing, and catches up by itself", async () => {
  await beginColoredWeb(world, {
    maxConcurrent: "100%",
    maxUnreachable: "50%",
    progressDeadline: "3m",
    onFailure: "rollback",
  });

  way.swallow();
  const swallowedAt = nowSeconds();
  const before = requestsTo("s1", "s2");
  const second = await world.push("shop", coloredFiles("blue"));
  const left = await world.waitFor("home goes on without the zone", async () => {
    const group = await world.group("web");
    return group.status.state === "Degraded" && group.status.revision?.endsWith(second) && group;
  });
  expect(left.status.clusters).toMatchObject({ ready: 2, unreachable: 2, failed: 0 });
  await world.waitFor("the alarm", async () => states(zoneAlarm).at(-1) === "ALARM", 240);
  const surveys = () => lines.filter(({ line }) => line.zone === "spoke" && "SilentZones" in line).length;
  const surveyed = surveys();
  // An alarm of the fleet would ring now at the latest.
  await world.waitFor("another survey", async () => surveys() > surveyed);
  const silent = "ZoneSilent: no cluster of zone spoke answers since ([0-9T:.-]+)Z; ";
  const status = (await cli.run("rollout status web")).out;
  const [, since = ""] = new RegExp(
    `^ +2 of zone spoke +all +Unreachable .*${silent}its clusters catch up when it is repaired: \`starling get zones spoke\``,
    "m",
  ).exec(status) ?? [status];
  expect(Date.parse(`${since}Z`) / 1000).toBeGreaterThan(swallowedAt);
  const listed = await cli.run("get zones spoke");
  expect(listed.err).toMatch(new RegExp(`${silent}find the broken link: \`starling zone check spoke\``));
  expect(listed.out).toMatch(/^spoke .* 2 +2 +-$/m);
  expect(requestsTo("s1", "s2")).toBe(before);

  way.release();
  await world.untilInSync("web", second);
  await world.waitFor("the end of the alarm", async () => states(zoneAlarm).at(-1) === "OK", 240);
  expect((await cli.run("get zones spoke")).err).toBe("");
  expect(states(zoneAlarm).slice(0, 2)).toEqual(["OK", "ALARM"]);
  expect(states("FleetWatchUnreachable")).toEqual(["OK"]);
  expect(lines.filter(({ line }) => line.phase === "Failed" || line.state === "failed")).toEqual([]);
  // A dead letter would keep the alarm on until a person purges the queue.
  expect((await cli.run("doctor")).out).toMatch(/^ok +dead-letters +none$/m);
  expect((await world.rollout("web")).status.phase).toBe("Complete");
  expect((await world.group("web")).status.rollout).toBe(2);
});
