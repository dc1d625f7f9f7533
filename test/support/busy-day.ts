/**
 * A day with many changes at the same time. Pushes come during a rollout. A Sync and a group are suspended in the
 * middle. A cluster is deselected and selected again. Two groups share clusters and, once, an object. One object cannot
 * be deleted for a while. In any weather the clusters must end as git desires.
 */
import assert from "node:assert/strict";
import type { SyncObject } from "#shared/fleet/api/objects.ts";
import {
  busyClusters,
  busySource,
  type Contents,
  type Folder,
  homesOfAll,
  mapPath,
  ownDocument,
  parts,
  shared,
  toolsDocument,
  webDocument,
} from "#test/support/busy-fleet.ts";
import { label, operate } from "#test/support/busy-people.ts";
import { busyWitness, type Witness } from "#test/support/busy-witness.ts";
import { namespace, type World } from "#test/support/e2e-world.ts";
import { holdWrites, refuseWrites } from "#test/support/hold-writes.ts";

export interface BusyDayOptions {
  readonly patienceSeconds?: number;
  /** Called when the clusters are registered. */
  readonly joined?: () => Promise<void>;
  readonly step?: (what: string) => void;
}

/** In seconds of the functions' clock. A write may begin with data of this age, and a request takes time. */
const readBeforeSeconds = 20;
/** In real seconds. The longest time for which clients repeat a request after a bad answer. */
const sentAgainSeconds = 3;
/**
 * In seconds of the functions' clock. No write may happen in this time, which covers at least two checks of each Sync.
 */
const stillSeconds = 60;

export async function playBusyDay(world: World, options: BusyDayOptions = {}): Promise<void> {
  const day = begin(world, options);
  for (const chapter of [settleIn, pushOnAndOn, suspendAndDeselect, suspendGroup, meetAtOneObject, holdObject]) {
    options.step?.(chapter.name);
    await chapter(day);
  }
  await day.witness.seesTheEnd();
}

interface Day {
  readonly world: World;
  readonly witness: Witness;
  readonly options: BusyDayOptions;
  /** Commits these files, and a new revision of an object in each folder. @returns the commit. */
  push(rollouts?: Contents): Promise<string>;
  /** Waits until both groups and the Sync are at the commit, and everything is in sync. */
  untilWell(commit: string): Promise<void>;
  untilInSync(group: string, commit: string): Promise<void>;
  waitFor(what: string, probe: () => Promise<boolean>): Promise<void>;
  sleep(seconds: number): Promise<void>;
  /** Changes a cluster by hand. It repeats requests that a cluster with faults refuses. */
  byHand(cluster: string, method: "PATCH" | "DELETE", place: string, body?: unknown): Promise<void>;
  sync(cluster: string, folder: Folder): Promise<SyncObject | undefined>;
}

function begin(world: World, options: BusyDayOptions): Day {
  const witness = busyWitness(world);
  let revision = 0;
  const waitFor = async (what: string, probe: () => Promise<boolean>) =>
    void (await world.waitFor(what, probe, options.patienceSeconds));
  const day: Day = {
    world,
    witness,
    options,
    waitFor,
    async push(rollouts = {}) {
      revision += 1;
      const data = { revision: String(revision) };
      const files = witness.committed({ "deploy/a": data, "tools/a": data, "own/a": data, ...rollouts });
      return revision === 1 ? world.createRepository("app", { ...homesOfAll, ...files }) : world.push("app", files);
    },
    async untilInSync(group, commit) {
      await world.untilInSync(group, commit, options.patienceSeconds);
    },
    async untilWell(commit) {
      await day.untilInSync("web", commit);
      await day.untilInSync("tools", commit);
      await day.waitFor("own is in sync", async () => {
        const status = (await day.sync("c1", "own"))?.status;
        return status?.state === "Ready" && status.desired?.revision.endsWith(commit) === true;
      });
      await witness.seesAllWell();
    },
    async sleep(seconds) {
      const until = world.clock.now().getTime() + seconds * 1000;
      await waitFor("time passes", async () => world.clock.now().getTime() >= until);
    },
    async byHand(cluster, method, place, body) {
      await waitFor(`${method} ${place} by hand`, () =>
        world.kubectl(cluster, { method, path: mapPath(place), body }).then(
          () => true,
          () => false,
        ),
      );
    },
    sync: (cluster, folder) => world.sync(cluster, parts[folder].sync),
  };
  return day;
}

async function settleIn(day: Day): Promise<void> {
  const { world, options } = day;
  await world.join(...busyClusters);
  await options.joined?.();
  const names = ["b", "c", "held", shared];
  const commit = await day.push(Object.fromEntries(names.map((name) => [`deploy/${name}`, { color: "blue" }])));
  await world.apply(busySource(world), webDocument(), toolsDocument(), ownDocument());
  await day.untilWell(commit);
}

/**
 * The next revision arrives while a broad cluster applies the last one. The canary takes it meanwhile, and the others
 * follow. At the end no cluster waits for another.
 */
async function pushOnAndOn(day: Day): Promise<void> {
  const { world } = day;
  const worker = holdWrites(world, "c2", mapPath(`${namespace}/a`));
  let commit: string;
  try {
    await day.push({ "deploy/b": null, "deploy/d": { color: "green" } });
    await day.waitFor("c2 is written to", async () => worker.isHeld());
    commit = await day.push({ "deploy/d": { color: "red" }, "deploy/e": { color: "red" } });
    await day.waitFor("the canary has the third revision", async () => {
      const revision = (await day.sync("c1", "deploy"))?.status.desired?.revision;
      return revision?.endsWith(commit) === true;
    });
  } finally {
    worker.release();
  }
  await day.untilWell(commit);
  await day.push({ "deploy/d": { color: "blue" } });
  await day.push({ "deploy/d": { color: "grey" } });
  await day.untilWell(await day.push({ "deploy/e": null }));
}

/**
 * A Sync is suspended between the assignment of a revision and its apply. A cluster is deselected in the middle of a
 * rollout. Both must keep their objects unchanged, and must get the newest revision afterwards.
 */
async function suspendAndDeselect(day: Day): Promise<void> {
  const { world } = day;
  const attempt = async (folder: Folder) => (await day.sync("c1", folder))?.status.desired?.attempt ?? 0;
  const first = await attempt("own");
  const release = refuseWrites(world, "c1", mapPath("own/"));
  await day.push({ "own/b": { color: "blue" } });
  await day.waitFor("own is assigned it", async () => (await attempt("own")) > first);
  await operate(world, "suspend", { path: "syncs/own", document: ownDocument(21) });
  const before = await attempt("deploy");
  await day.push({ "deploy/f": { color: "blue" } });
  await day.waitFor("a rollout is under way", async () => (await attempt("deploy")) > before);
  await label(world, "c3", { web: "no" });
  await day.waitFor("c3 is forgotten", async () => (await day.sync("c3", "deploy")) === undefined);
  const since = world.clock.now();
  const commit = await day.push({ "deploy/c": null, "deploy/f": { color: "red" } });
  await day.untilInSync("web", commit);
  await day.untilInSync("tools", commit);
  const own = { folder: "own", clusters: ["c1"] } as const;
  const left = { folder: "deploy", clusters: ["c3"] } as const;
  await staysStill(day, { places: [own, left], since }, async () => {
    release();
    await touch(day, "c1", "own");
    await touch(day, "c3", "deploy");
  });
  await operate(world, "resume", { path: "syncs/own", document: ownDocument() });
  await label(world, "c3", { web: "yes" });
  await day.waitFor("c3 is selected", async () => (await day.sync("c3", "deploy")) !== undefined);
  await day.untilWell(commit);
}

/**
 * A group is suspended while its canary applies a revision. The canary finishes, and the other clusters get no
 * assignment.
 */
async function suspendGroup(day: Day): Promise<void> {
  const { world } = day;
  const canary = holdWrites(world, "c1", mapPath(`${namespace}/a`));
  let since: Date;
  let attempts: unknown;
  try {
    await day.push({ "deploy/d": { color: "green" } });
    await day.waitFor("the canary is written to", async () => canary.isHeld());
    await operate(world, "suspend", { path: "syncgroups/web", document: webDocument(21) });
    since = world.clock.now();
    attempts = await attemptsOf(day);
  } finally {
    canary.release();
  }
  const commit = await day.push({ "deploy/d": null, "deploy/e": { color: "blue" } });
  await day.untilInSync("tools", commit);
  const places = [{ folder: "deploy", clusters: ["c1", "c2", "c3"] }] as const;
  await staysStill(day, { places, since }, () => touch(day, "c1", "deploy"));
  assert.deepEqual(await attemptsOf(day), attempts, "nothing is assigned while the group is suspended");
  await operate(world, "resume", { path: "syncgroups/web", document: webDocument() });
  await day.untilWell(commit);
}

async function attemptsOf(day: Day): Promise<unknown> {
  const syncs = await Promise.all(busyClusters.map(({ name }) => day.sync(name, "deploy")));
  return syncs.map((sync) => sync?.status.desired?.attempt);
}

/** The owner of the object keeps it. The other group reports the owner and does not write the object. */
async function meetAtOneObject(day: Day): Promise<void> {
  const { world } = day;
  const place = `ConfigMap ${namespace}/${shared}`;
  const version = async (cluster: string) => (await day.witness.snapshot(cluster, namespace))[place];
  const before = [await version("c2"), await version("c3")];
  const commit = await day.push({ [`tools/${shared}`]: { color: "stolen" } });
  await day.waitFor("tools is refused", async () => (await world.group("tools")).status.state === "Halted");
  const { failures } = (await world.rollout("tools")).status;
  assert.match(JSON.stringify(failures), /ForeignOwner/);
  await day.untilInSync("web", commit);
  await day.untilWell(await day.push({ [`tools/${shared}`]: null }));
  assert.deepEqual([await version("c2"), await version("c3")], before, "nobody wrote to what belongs to web");
}

/** Objects that left git stay while a finalizer delays an object of the newest revision. */
async function holdObject(day: Day): Promise<void> {
  const { world, witness } = day;
  const place = `${namespace}/held`;
  await day.byHand("c2", "PATCH", place, { metadata: { finalizers: ["example.com/hold"] } });
  await day.byHand("c2", "DELETE", place);
  witness.gone("c2", place);
  const before = (await witness.snapshot("c2", namespace))[`ConfigMap ${namespace}/a`];
  const commit = await day.push({ "deploy/f": null });
  await day.waitFor("c2 has the newest revision", async () => {
    return (await witness.snapshot("c2", namespace))[`ConfigMap ${namespace}/a`] !== before;
  });
  const since = world.clock.now();
  await day.sleep(stillSeconds);
  const deleted = (await witness.writes("deploy", ["c2"], since)).filter((write) => write.includes(" DELETE "));
  assert.deepEqual(deleted, [], "nothing is pruned while an object is still being deleted");
  assert.ok(`ConfigMap ${namespace}/f` in (await witness.snapshot("c2", namespace)), "what left git is still there");
  await day.byHand("c2", "PATCH", place, { metadata: { finalizers: null } });
  await day.untilWell(commit);
}

interface Stillness {
  readonly places: readonly { readonly folder: Folder; readonly clusters: readonly string[] }[];
  /** The time at which the change that stops everything was acknowledged. */
  readonly since: Date;
}

/** After all work in progress has ended, Starling writes nothing, whatever a person changes by hand. */
async function staysStill(day: Day, { places, since }: Stillness, act: () => Promise<void>): Promise<void> {
  const { world, witness } = day;
  const allowed = readBeforeSeconds + sentAgainSeconds * world.clock.rate;
  const from = since.getTime() + allowed * 1000;
  await day.waitFor("what was under way is over", async () => world.clock.now().getTime() >= from);
  const begun = world.clock.now();
  await act();
  const read = () =>
    Promise.all(
      places.flatMap(({ folder, clusters }) =>
        clusters.map((cluster) => witness.snapshot(cluster, parts[folder].home)),
      ),
    );
  const before = await read();
  await day.sleep(stillSeconds);
  for (const { folder, clusters } of places) {
    assert.deepEqual(await witness.writes(folder, clusters, begun), [], `${folder} is written to`);
  }
  assert.deepEqual(await read(), before, "objects have changed that Starling must not write to");
}

/** Changes an object of the folder by hand, without Starling. */
function touch(day: Day, cluster: string, folder: Folder): Promise<void> {
  return day.byHand(cluster, "PATCH", `${parts[folder].home}/a`, { data: { revision: "by hand" } });
}
