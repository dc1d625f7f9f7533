/** A version that has zones, too, runs beside this one: in the zone, or in `home`. Effects are counted at the API servers. */

import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { ClusterCheck } from "#shared/fleet/cluster-links.ts";
import type { RolloutStateRow } from "#shared/fleet/rows/rollout-rows.ts";
import { keyText } from "#shared/fleet/rows/row.ts";
import { configMap } from "#test/support/e2e-documents.ts";
import { type MixedWorld, startMixedWorld } from "#test/support/mixed-world.ts";
import { hasVersionBefore, withZones } from "#test/support/version-before.ts";
import { openWorldCli } from "#test/support/world-cli.ts";

const clusters = ["c1", "s1", "s2"];
const zoneAlone = (folder: string, zone: string) => folder === "apply" && zone === "spoke";
const homeAlone = (folder: string, zone: string) => !zoneAlone(folder, zone);
const none = () => false;
/** Rows that no rollout removes. */
const lasting = /^(Cluster|Fleet|FleetVersion|Source|SyncGroup|SyncOnCluster|RolloutState|Lease|Zone|ZoneCheck|Check)$/;

describe.runIf(hasVersionBefore(withZones))("beside a version with zones", () => {
  let mixed: MixedWorld;
  beforeAll(async () => {
    mixed = await startMixedWorld(withZones);
    await mixed.begin(...clusters);
  });
  beforeEach(() => mixed.forget());
  afterAll(() => mixed.close());

  /** The changes of these ConfigMaps since the versions were chosen, sorted. */
  const changesOf = (...names: readonly string[]) =>
    mixed
      .changes()
      .filter((change) => names.some((name) => change.endsWith(`/ConfigMap shop/${name}`)))
      .sort();
  const inAll = (method: string, name: string) =>
    clusters.map((cluster) => `${cluster} ${method} /ConfigMap shop/${name}`);
  const zoneChecks = async (method: "GET" | "POST") =>
    mixed.world.session.call<{ readonly id?: string; readonly answer?: { readonly id: string } }>(
      method,
      "/v1/zones/spoke/check",
    );

  /** Whether the workers of the cluster's zone find all links in order. */
  async function checkOf(cluster: string): Promise<boolean> {
    const path = `/v1/clusters/${cluster}/check`;
    const { id } = await mixed.world.session.call<{ readonly id: string }>("POST", path);
    const { links } = await mixed.world.waitFor("the check", async () => {
      const { answer } = await mixed.world.session.call<{ readonly answer?: ClusterCheck }>("GET", path);
      return answer?.id === id && answer;
    });
    return links.every(({ state }) => state !== "broken");
  }

  /** Every mixture must keep this. */
  async function expectNothingLost(): Promise<void> {
    expect(mixed.thrown).toEqual([]);
    expect(await mixed.deadLetters()).toBe(0);
    // Checks of a cluster ask for their own rights.
    expect(mixed.world.monitor.unasked().filter(({ object }) => object !== undefined)).toEqual([]);
  }

  test("its workers in the zone apply, prune and check as before, each change once, and drop the check of a zone", async () => {
    const { world } = mixed;
    mixed.run(zoneAlone);
    const extra = { "deploy/extra.yaml": configMap("extra", {}) };
    await world.untilInSync("web", await mixed.push("blue", extra));
    expect(changesOf("web", "extra")).toEqual([...inAll("PATCH", "extra"), ...inAll("PATCH", "web")].sort());
    mixed.forget();
    await world.untilInSync("web", await mixed.push("green", { "deploy/extra.yaml": null }));
    expect(changesOf("web", "extra")).toEqual([...inAll("DELETE", "extra"), ...inAll("PATCH", "web")].sort());
    expect(await checkOf("s1")).toBe(true);
    const { id } = await zoneChecks("POST");
    const messages = () => mixed.calls().flatMap((call) => call.messages);
    await world.waitFor("the check was taken", async () => messages().some((body) => body.includes('"zone"')));
    expect((await zoneChecks("GET")).answer?.id).not.toBe(id);
    expect(messages().filter((body) => !/"cluster":"s[12]"|"zone"/.test(body))).toEqual([]);
    expect(messages().filter((body) => body.includes('"check":true'))).toHaveLength(1);
    await expectNothingLost();
  });

  test("its home reads the rows of this version, removes none, and gives workers of this version in the zone each change once", async () => {
    const { world } = mixed;
    const eks = {
      arn: "arn:aws:eks:eu-west-1:444455556666:cluster/far",
      endpointOverride: { server: "https://far.example" },
    };
    const access = { role: { name: "starling/clusters/far" }, zone: "spoke" };
    const metadata = { name: "s9", labels: { spare: "yes" } };
    await world.apply({ apiVersion: "starling.dev/v1alpha1", kind: "Cluster", metadata, spec: { eks, access } });
    const before = (await world.rows()).filter(({ type }) => lasting.test(type)).map(keyText);
    mixed.run(homeAlone);
    await world.untilInSync("web", await mixed.push("white"));
    expect(changesOf("web")).toEqual(inAll("PATCH", "web"));
    expect(await checkOf("s2")).toBe(true);
    for (const operation of ["cordon", "uncordon"])
      await world.session.call("POST", `/v1/clusters/s9/${operation}`, { reason: "to see what is written" });
    expect((await world.cluster("s9")).spec).toMatchObject({ eks, access });
    const cli = openWorldCli(world);
    const run = async (line: string) => ({ line, ...(await cli.run(line)) });
    expect(await run("get zones")).toMatchObject({ code: 0, out: expect.stringMatching(/^spoke +subnets +/m) });
    expect(await run("rollout status web")).toMatchObject({ code: 0 });
    expect(await run("zone check spoke")).toMatchObject({ code: 3, err: expect.stringContaining("starling doctor") });
    cli.close();
    const after = new Set((await world.rows()).map(keyText));
    expect(before.filter((key) => !after.has(key))).toEqual([]);
    const folders = new Set(mixed.calls().map(({ folder }) => folder));
    expect([...folders]).toEqual(expect.arrayContaining(["api", "apply", "rollout", "tick", "resolve", "render"]));
    await expectNothingLost();
  });

  test("a rollout that one mixture of versions began ends with another, and each cluster gets it once", async () => {
    const { world } = mixed;
    for (const { color, from, to } of [
      { color: "blue", from: none, to: homeAlone },
      { color: "green", from: homeAlone, to: zoneAlone },
      { color: "red", from: zoneAlone, to: none },
    ]) {
      mixed.run(from);
      mixed.forget();
      const commit = await mixed.push(color);
      await world.waitFor("a cluster has it", async () => changesOf("web").length > 0);
      mixed.run(to);
      await world.untilInSync("web", commit);
      expect(changesOf("web")).toEqual(inAll("PATCH", "web"));
      await expectNothingLost();
    }
  });

  const rolloutState = async () =>
    (await mixed.world.rows()).find((row): row is RolloutStateRow => row.type === "RolloutState");
  const untilZoneIsDown = () =>
    mixed.world.waitFor("the zone is found down", async () => {
      const { status } = await mixed.world.group("web");
      expect(status.clusters).toMatchObject({ failed: 0 });
      return status.clusters?.unreachable === 2;
    });

  test.each([
    { finder: "it", follower: "this version", runs: [homeAlone, none] },
    { finder: "this version", follower: "it", runs: [none, homeAlone] },
  ])("a zone that $finder found down fails nothing under $follower, and catches up", async ({ finder, runs }) => {
    const { world } = mixed;
    const [first = homeAlone, second = homeAlone] = runs;
    const spoke = mixed.workersOf("spoke");
    mixed.run(first);
    await Promise.all(spoke.map((source) => source.pause()));
    await mixed.push("black");
    await untilZoneIsDown();
    const { downZones: [down] = [] } = (await rolloutState()) ?? {};
    expect(down).toMatchObject({ zone: "spoke", workedAt: expect.any(String) });
    expect(down?.since === undefined).toBe(finder === "it");
    mixed.run(second);
    mixed.forget();
    const commit = await mixed.push("white");
    await world.waitFor("c1 has it", async () => changesOf("web").includes("c1 PATCH /ConfigMap shop/web"));
    expect(changesOf("web")).toEqual(["c1 PATCH /ConfigMap shop/web"]);
    for (const source of spoke) source.resume();
    await world.untilInSync("web", commit);
    expect(changesOf("web").filter((change) => change.startsWith("c1"))).toHaveLength(1);
    await expectNothingLost();
  });
});
