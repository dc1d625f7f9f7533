/**
 * Zones in networks of their own: the workers of each zone run in a network namespace, from which they reach the
 * emulators of AWS and the private addresses of their zone only.
 */
import { cp, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { quiet } from "#local/aws/wire/fault-options.ts";
import { pacedClock } from "#local/base/paced-clock.ts";
import { groupDocument, sourceDocument, yaml } from "#test/support/e2e-documents.ts";
import { startWorld, type World } from "#test/support/e2e-world.ts";
import {
  type ClusterPlace,
  type PrivateCluster,
  startPrivateCluster,
  type Visit,
} from "#test/support/zone-networks/private-cluster.ts";
import {
  codeIn,
  lackOfNamespaces,
  startZoneNetwork,
  type ZoneNetwork,
} from "#test/support/zone-networks/zone-network.ts";

const lack = lackOfNamespaces();
const skipped = lack === undefined ? "" : ` (skipped: ${lack})`;

const sources = { home: "127.0.1.1", a: "127.0.1.2", b: "127.0.1.3" };
type Zone = keyof typeof sources;
const shared = "10.0.0.10";
const onlyInA = "10.0.0.20";
const inBoth = "10.0.0.30";
const cloned = "10.0.0.40";

const stops: (() => Promise<unknown>)[] = [];
const networks = new Map<string, ZoneNetwork>();
let world: World;
let clusters: Record<"one" | "two" | "only" | "moving" | "original" | "clone", PrivateCluster>;

function network(zone: Zone): ZoneNetwork {
  const found = networks.get(zone);
  if (found === undefined) throw new Error(`there is no zone ${zone}`);
  return found;
}

describe.skipIf(lack !== undefined)(`zones in networks of their own${skipped}`, () => {
  beforeAll(async () => {
    const clock = pacedClock(10);
    const clockOf = () => clock.now().getTime();
    const folder = await mkdtemp(join(tmpdir(), "starling-zones-"));
    stops.push(() => rm(folder, { recursive: true, force: true }));
    const started = async (stateDir?: string) => {
      const cluster = await startPrivateCluster({ clock: clockOf, ...(stateDir === undefined ? {} : { stateDir }) });
      stops.unshift(() => cluster.stop());
      return cluster;
    };
    const original = await started(join(folder, "original"));
    await cp(join(folder, "original"), join(folder, "clone"), { recursive: true });
    clusters = {
      one: await started(),
      two: await started(),
      only: await started(),
      moving: await started(),
      original,
      clone: await started(join(folder, "clone")),
    };
    const { one, two, only, moving, clone } = clusters;
    const servers: Record<Zone, Record<string, number>> = {
      home: {},
      a: { [shared]: one.port, [onlyInA]: only.port, [inBoth]: moving.port, [cloned]: original.port },
      b: { [shared]: two.port, [inBoth]: moving.port, [cloned]: clone.port },
    };
    for (const zone of ["home", "a", "b"] as const) {
      const made = await startZoneNetwork({ clock, servers: servers[zone], source: sources[zone] });
      networks.set(zone, made);
      stops.unshift(() => made.stop());
    }
    const zones = JSON.stringify([
      { name: "a", subnets: ["subnet-0a1b2c3d4e5f60718"], securityGroups: ["sg-0a1b2c3d4e5f60718"] },
      { name: "b", subnets: ["subnet-0b1b2c3d4e5f60718"], securityGroups: ["sg-0b1b2c3d4e5f60718"] },
    ]);
    world = await startWorld({ faults: quiet, clock, zones, code: codeIn(networks) });
    stops.unshift(() => world.close());
  });
  afterAll(async () => {
    for (const stop of stops.splice(0)) await stop();
  });

  async function register(cluster: PrivateCluster, place: ClusterPlace): Promise<void> {
    const { document, secret, value } = cluster.documents(place);
    await world.machine.putSecret(secret, value);
    await world.apply(document);
  }

  /** ConfigMaps with this color, whose names begin with the name of their group. */
  const items = (name: string, count: number, color: string) =>
    Object.fromEntries(Array.from({ length: count }, (_, index) => [`${name}-${index}`, color]));

  /** The manifests of a group, in a namespace of its own. */
  const files = (group: string, colors: Readonly<Record<string, string>>) =>
    Object.fromEntries([
      ["deploy/namespace.yaml", yaml({ apiVersion: "v1", kind: "Namespace", metadata: { name: group } })],
      ...Object.entries(colors).map(([name, color]) => [
        `deploy/${name}.yaml`,
        yaml({ apiVersion: "v1", kind: "ConfigMap", metadata: { name, namespace: group }, data: { color } }),
      ]),
    ]);

  /** A group of these clusters. @returns its first commit. */
  async function deploy(name: string, names: readonly string[], colors: Readonly<Record<string, string>>) {
    const commit = await world.createRepository(name, files(name, colors));
    await world.apply(
      sourceDocument(name, { git: { url: world.git.url(name), ref: { branch: "main" } }, interval: "1m" }),
      groupDocument(name, {
        clusters: { selector: { matchExpressions: [{ key: "name", operator: "In", values: [...names] }] } },
        templates: [{ name, source: name, path: "deploy" }],
        rollout: { maxConcurrent: "100%", maxUnreachable: "100%", progressDeadline: "30m", onFailure: "rollback" },
      }),
    );
    return commit;
  }

  /** Waits until the group's only target is unreachable for such a reason. */
  async function untilUnreachable(group: string, reason: RegExp): Promise<void> {
    await world.waitFor(`${group} is unreachable: ${reason}`, async () => {
      const [target] = await world.targets(group).catch(() => []);
      expect(target?.state).not.toBe("Failed");
      return target?.state === "Unreachable" && reason.test(target.reason ?? "");
    });
  }

  const sourcesOf = (cluster: PrivateCluster) => [...new Set(cluster.visits.map(({ source }) => source))];

  test("a cluster that only one zone reaches comes into sync through this zone, and is unreachable from others", async () => {
    const { only } = clusters;
    await register(only, { name: "only", address: onlyInA });
    await deploy("only", ["only"], items("only", 2, "red"));
    await untilUnreachable("only", /ENETUNREACH/);
    await register(only, { name: "only", address: onlyInA, zone: "b" });
    await world.push("only", files("only", items("only", 2, "green")));
    await untilUnreachable("only", /EHOSTUNREACH/);
    expect(only.visits).toEqual([]);
    expect(network("a").connections(onlyInA)).toBe(0);
    await register(only, { name: "only", address: onlyInA, zone: "a" });
    const commit = await world.push("only", files("only", items("only", 2, "blue")));
    await world.untilInSync("only", commit);
    expect(only.colors("only")).toEqual(items("only", 2, "blue"));
    expect(sourcesOf(only)).toEqual([sources.a]);
  });

  test("two clusters at the same address in two zones each get their own objects only", async () => {
    const { one, two } = clusters;
    await register(one, { name: "one", address: shared, zone: "a" });
    await register(two, { name: "two", address: shared, zone: "b" });
    const left = await deploy("left", ["one"], items("left", 2, "red"));
    const right = await deploy("right", ["two"], items("right", 3, "blue"));
    await world.untilInSync("left", left);
    await world.untilInSync("right", right);
    expect(one.colors("left")).toEqual(items("left", 2, "red"));
    expect(two.colors("right")).toEqual(items("right", 3, "blue"));
    expect([sourcesOf(one), sourcesOf(two)]).toEqual([[sources.a], [sources.b]]);
  });

  test("a cluster in the wrong zone gives its token to no other cluster at its address, and says why", async () => {
    const { one, two } = clusters;
    await register(one, { name: "one", address: shared, zone: "a" });
    await register(two, { name: "two", address: shared, zone: "b" });
    await world.untilInSync("wrong", await deploy("wrong", ["one"], items("wrong", 2, "red")));
    await world.untilInSync("own", await deploy("own", ["two"], items("own", 3, "blue")));
    await register(one, { name: "one", address: shared, zone: "b" });
    const before = network("b").connections(shared);
    await world.push("wrong", files("wrong", items("wrong", 2, "green")));
    await untilUnreachable("wrong", /the server's certificate comes from an authority that is not trusted here/);
    expect(network("b").connections(shared)).toBeGreaterThan(before);
    expect(new Set(two.visits.map(({ token }) => token))).toEqual(new Set([two.connection.token]));
    expect([two.colors("own"), two.colors("wrong")]).toEqual([items("own", 3, "blue"), {}]);
    await register(one, { name: "one", address: shared, zone: "a" });
    await world.untilInSync("wrong", await world.push("wrong", files("wrong", items("wrong", 2, "blue"))));
    expect(one.colors("wrong")).toEqual(items("wrong", 2, "blue"));
  });

  test("a copy of a cluster in the wrong zone, with the same authority and token, gets no writes", async () => {
    const { original, clone } = clusters;
    expect(clone.connection).toMatchObject({ caData: original.connection.caData, token: original.connection.token });
    await register(original, { name: "original", address: cloned, zone: "a" });
    await world.untilInSync("copied", await deploy("copied", ["original"], items("copied", 2, "red")));
    await register(original, { name: "original", address: cloned, zone: "b" });
    await world.push("copied", files("copied", items("copied", 2, "green")));
    await untilUnreachable("copied", /^IdentityMismatch: kube-system has the uid /);
    expect(new Set(clone.visits.map(({ method }) => method))).toEqual(new Set(["GET"]));
    expect(original.colors("copied")).toEqual(items("copied", 2, "red"));
    await register(original, { name: "original", address: cloned, zone: "a" });
    await world.untilInSync("copied", await world.push("copied", files("copied", items("copied", 2, "blue"))));
    expect(original.colors("copied")).toEqual(items("copied", 2, "blue"));
  });

  test.each<[string, "unplugged" | "killed", { readonly method: string; readonly nth: number }]>([
    ["loses its network while objects are written", "unplugged", { method: "PATCH", nth: 4 }],
    ["loses its network while objects are deleted", "unplugged", { method: "DELETE", nth: 2 }],
    ["loses its workers while objects are written", "killed", { method: "PATCH", nth: 4 }],
  ])("a zone that %s fails nothing, holds up no other zone, and completes by itself", async (_what, outage, cut) => {
    const { one, two } = clusters;
    const group = `${outage}-${cut.method.toLowerCase()}`;
    await register(one, { name: "one", address: shared, zone: "a" });
    await register(two, { name: "two", address: shared, zone: "b" });
    await world.untilInSync(group, await deploy(group, ["one", "two"], items(group, 12, "red")));
    const from = one.visits.length;
    const seen = (method: string) =>
      one.visits.slice(from).flatMap((visit) => (visit.method === method ? configMapOf(group, visit) : []));
    let cuts = 0;
    one.before(async (visit) => {
      const { method, nth } = cut;
      if (cuts > 0 || visit.method !== method || configMapOf(group, visit).length === 0) return;
      if (seen(method).length < nth) return;
      cuts += 1;
      if (outage === "unplugged") await network("a").plug(false);
      else await network("a").kill();
    });
    const gone = ["8", "9", "10", "11"].map((number) => `${group}-${number}`);
    const without = Object.fromEntries(gone.map((name) => [`deploy/${name}.yaml`, null]));
    const commit = await world.push(group, { ...files(group, items(group, 8, "blue")), ...without });
    const done = items(group, 8, "blue");
    await world.waitFor("the other zone goes on", async () => isDeepStrictEqual(two.colors(group), done));
    if (outage === "unplugged") {
      await world.waitFor("the cluster is unreachable", async () => {
        const target = (await world.targets(group)).find(({ cluster }) => cluster === "one");
        expect(target?.state).not.toBe("Failed");
        return target?.state === "Unreachable";
      });
      // Nothing is deleted before everything is written.
      if (cut.method === "PATCH") expect(Object.keys(one.colors(group))).toEqual(expect.arrayContaining(gone));
      expect(one.colors(group)).not.toEqual(cut.method === "PATCH" ? done : items(group, 12, "red"));
      await network("a").plug(true);
    }
    await world.untilInSync(group, commit);
    one.before(undefined);
    expect(cuts).toBe(1);
    expect(one.colors(group)).toEqual(done);
    expect(new Set(seen("DELETE"))).toEqual(new Set(gone));
    expect((await world.rollout(group)).status.phase).toBe("Complete");
    expect((await world.group(group)).status.rollout).toBe(2);
  });

  test("a cluster that moves to another zone while it is worked on never has workers of both zones", async () => {
    const { moving } = clusters;
    const place = { name: "moving", address: inBoth };
    await register(moving, { ...place, zone: "a" });
    for (const group of ["begun", "waiting"])
      await world.untilInSync(group, await deploy(group, ["moving"], items(group, 8, "red")));
    const from = moving.visits.length;
    const asked = new Set<string>();
    const [slow, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    moving.before(async (visit) => {
      const [name] = visit.method === "PATCH" ? configMapOf("begun", visit) : [];
      if (name === undefined) return;
      // The common lane does not wait for so long: the second request is one of the slow lane.
      if (asked.has(name)) slow.resolve();
      asked.add(name);
      await released.promise;
    });
    const begun = await world.push("begun", files("begun", items("begun", 8, "blue")));
    await slow.promise;
    const calls = () => network("a").worked.filter((name) => name === "moving").length;
    const before = calls();
    const waiting = await world.push("waiting", files("waiting", items("waiting", 8, "blue")));
    await world.waitFor("the other Sync waits for the worker at work", async () => {
      const { rollout } = (await world.group("waiting")).status;
      const [target] = rollout === 2 ? await world.targets("waiting") : [];
      return target?.assignedAt !== undefined && calls() > before;
    });
    await register(moving, { ...place, zone: "b" });
    expect(moving.visits.slice(from).filter(({ source }) => source !== sources.a)).toEqual([]);
    released.resolve();
    await world.untilInSync("begun", begun);
    await world.untilInSync("waiting", waiting);
    moving.before(undefined);
    const visits = moving.visits.slice(from);
    const writers = (group: string) =>
      new Set(visits.flatMap((visit) => (configMapOf(group, visit).length > 0 ? [visit.source] : [])));
    expect(writers("begun")).toEqual(new Set([sources.a]));
    expect(writers("waiting")).toEqual(new Set([sources.b]));
    // All requests of the former zone came before all of the new one.
    const turns = visits.filter(({ source }, index) => source !== visits[index - 1]?.source);
    expect(turns.map(({ source }) => source)).toEqual([sources.a, sources.b]);
    for (const group of ["begun", "waiting"]) expect(moving.colors(group)).toEqual(items(group, 8, "blue"));
  });
});

/** The name of the ConfigMap of a group that a request is about. */
function configMapOf(group: string, { path }: Visit): string[] {
  const [, name] = /\/configmaps\/([^?]+)/.exec(path) ?? [];
  return name?.startsWith(`${group}-`) === true ? [name] : [];
}
