/**
 * A day of the functions' time, with a push every half hour: clusters join, leave, fall silent and are deleted, people
 * suspend, edit by hand and push invalid manifests, and sandboxes die. At midnight no more is kept than at noon.
 */
import assert from "node:assert/strict";
import { everyday } from "#local/aws/wire/fault-options.ts";
import { pacedClock } from "#local/base/paced-clock.ts";
import { createRandom } from "#local/base/random.ts";
import { registerClusters } from "#local/machine/register-clusters.ts";
import { skewedSandboxes } from "#local/machine/skewed-sandboxes.ts";
import { type Census, growthOf, takeCensus } from "#test/support/census.ts";
import {
  configMap,
  groupDocument,
  namespaceManifest,
  ringStages,
  sourceDocument,
} from "#test/support/e2e-documents.ts";
import { namespace, startWorld, type World } from "#test/support/e2e-world.ts";
import { mortalSandboxes } from "#test/support/mortal-sandboxes.ts";

export interface SoakOptions {
  readonly seed: number;
  /** Seconds of the functions in one of ours. */
  readonly rate: number;
  /** A multiple of twelve: each half is the same hours over again. */
  readonly hours: number;
  readonly say: (what: string) => void;
}

/** The emulators use the machine's clock, so these seconds are divided by the rate. */
const timeoutSeconds = { api: 300, rollout: 300, report: 300, render: 300, resolve: 300, apply: 300 };
/** In seconds of the machine, which may be busy. The day continues meanwhile, so only a stuck world reaches it. */
const patienceSeconds = 1500;
const tickEveryMs = 1000;
const pollMs = 250;
/** The chance that a sandbox dies at a call. */
const dies = 0.0005;
const mostOffMs = 2000;
const halfHour = 1800;
/** Of the functions: silent for several looks, and through with what a planner does when all is done. */
const silentSeconds = 600;
const doneWithinSeconds = 3600;

/** @throws Error when something is not as it should be, or when there is more at midnight than there was at noon. */
export async function playSoak(options: SoakOptions): Promise<void> {
  const { seed, rate, hours, say } = options;
  assert.equal(hours % 12, 0, `--hours is ${hours}; a day is halves of six hours: give a multiple of twelve`);
  const clock = pacedClock(rate);
  const mortals = mortalSandboxes();
  const random = createRandom(seed);
  const world = await startWorld({
    seed,
    rate,
    clock,
    tickEveryMs,
    pollMs,
    timeoutSeconds,
    faults: everyday,
    sandboxes: skewedSandboxes({ clock, seed, mostOffMs, sandboxes: mortals.sandboxes }),
  });
  const mayDie = (may: "may" | "may not") =>
    mortals.judgeBy(may === "may not" ? undefined : () => (random.chance(dies) ? "after" : undefined));
  try {
    const day = await begin(world);
    mayDie("may");
    let noon: Census | undefined;
    for (let hour = 0; hour < hours; hour += 1) {
      for (const act of actsOf(hour)) await halfAnHour(day, act);
      say(`${hour + 1} of ${hours} hours, ${day.pushes} pushes, ${mortals.deaths().length} sandboxes died`);
      if (hour !== hours / 2 - 1 && hour !== hours - 1) continue;
      mayDie("may not");
      const census = await censusAfter(day, noon);
      say(JSON.stringify(census));
      noon = census;
      mayDie("may");
    }
  } finally {
    mortals.stop();
    await world.close();
  }
}

interface Day {
  readonly world: World;
  pushes: number;
  commit: string;
}

type Act = (day: Day) => Promise<void>;

const joiner = { name: "c4", labels: { ring: "broad", web: "yes" } };

async function begin(world: World): Promise<Day> {
  await world.join(
    { name: "c1", labels: { ring: "canary", web: "yes" } },
    { name: "c2", labels: { ring: "broad", web: "yes" } },
    { name: "c3", labels: { ring: "broad", web: "yes" } },
  );
  const files = { "deploy/namespace.yaml": namespaceManifest, "deploy/a.yaml": configMap("a", { revision: "0" }) };
  const day: Day = { world, pushes: 0, commit: await world.createRepository("app", files) };
  const git = { url: world.git.url("app"), ref: { branch: "main" } };
  await world.apply(sourceDocument("app", { git, paths: ["deploy"], interval: "10m" }), groupOf());
  await untilThere(day);
  return day;
}

function groupOf() {
  return groupDocument("web", {
    clusters: { selector: { matchLabels: { web: "yes" } } },
    templates: [{ name: "app", source: "app", path: "deploy", apply: { interval: "10m" } }],
    rollout: { maxConcurrent: 2, maxUnreachable: 1, progressDeadline: "4h", stages: ringStages("canary", "broad") },
  });
}

/** Twelve half hours, over and over: at the end of them everything is as it was. */
const acts: readonly Act[] = [
  push,
  async (day) => {
    await joinAgain(day.world);
    await push(day);
  },
  silence,
  async (day) => {
    await label(day.world, { web: "no" });
    await push(day);
  },
  async (day) => {
    await label(day.world, { web: "yes" });
    await push(day);
  },
  pushWhatNobodyTakes,
  editByHand,
  suspend,
  async (day) => {
    await insist(day.world, () =>
      day.world.session.call("DELETE", `/v1/clusters/${joiner.name}?cascade=orphan&confirm=true`),
    );
    await push(day);
  },
  async (day) => {
    await commit(day, {});
    await push(day);
  },
  push,
  push,
];

function actsOf(hour: number): readonly Act[] {
  return acts.slice((hour % 6) * 2, (hour % 6) * 2 + 2);
}

async function halfAnHour(day: Day, act: Act): Promise<void> {
  const until = day.world.clock.now().getTime() + halfHour * 1000;
  await act(day);
  await untilThere(day);
  // The recorded requests of a day would need much memory, and nothing reads them.
  day.world.fleet.clearRequests();
  await pass(day.world, until);
}

async function untilThere({ world, commit: there }: Day): Promise<void> {
  await world.untilInSync("web", there, patienceSeconds);
}

async function pass(world: World, until: number): Promise<void> {
  await world.waitFor("time passes", async () => world.clock.now().getTime() >= until, patienceSeconds);
}

async function commit(day: Day, files: Readonly<Record<string, string | null>>): Promise<void> {
  day.pushes += 1;
  const a = { "deploy/a.yaml": configMap("a", { revision: String(day.pushes) }) };
  // Each other push deletes what the one before brought.
  const b = { "deploy/b.yaml": day.pushes % 2 === 0 ? null : configMap("b", { revision: String(day.pushes) }) };
  day.commit = await day.world.push("app", { ...a, ...b, ...files });
}

async function push(day: Day): Promise<void> {
  await commit(day, {});
  await untilThere(day);
}

/** A cluster does not answer, and its turn comes. */
async function silence(day: Day): Promise<void> {
  await day.world.fleet.setFaults?.("c2", { resets: {} });
  await commit(day, {});
  await pass(day.world, day.world.clock.now().getTime() + silentSeconds * 1000);
  await day.world.fleet.setFaults?.("c2", {});
}

async function pushWhatNobodyTakes(day: Day): Promise<void> {
  const { world } = day;
  await commit(day, { "deploy/bad.yaml": configMap("Not_A_Name", {}) });
  const isHalted = async () => (await world.group("web")).status.state === "Halted";
  await world.waitFor("the rollout is halted", isHalted, patienceSeconds);
  await commit(day, { "deploy/bad.yaml": null });
}

async function editByHand(day: Day): Promise<void> {
  const path = `/api/v1/namespaces/${namespace}/configmaps/a`;
  const call = { method: "PATCH", path, body: { data: { revision: "by hand" } } } as const;
  await insist(day.world, () => day.world.kubectl("c1", call));
  await push(day);
}

async function suspend(day: Day): Promise<void> {
  const url = `/v1/namespaces/${namespace}/syncgroups/web`;
  const said = { reason: "somebody looks into it" };
  await insist(day.world, () => day.world.session.call("POST", `${url}/suspend`, said));
  await commit(day, {});
  await pass(day.world, day.world.clock.now().getTime() + silentSeconds * 1000);
  await insist(day.world, () => day.world.session.call("POST", `${url}/resume`, said));
}

/** The same cluster each time, with what it had when it was deleted. */
async function joinAgain(world: World): Promise<void> {
  const known = world.fleet.connections().find(({ name }) => name === joiner.name);
  const connection = known ?? (await world.fleet.add(joiner.name));
  const { labels } = joiner;
  await insist(world, () => registerClusters([{ connection, labels }], world.machine, world.session));
}

async function label(world: World, labels: Readonly<Record<string, string>>): Promise<void> {
  await insist(world, async () => {
    const { apiVersion, kind, metadata, spec } = await world.cluster(joiner.name);
    const { name } = metadata;
    await world.apply({ apiVersion, kind, metadata: { name, labels: { ...metadata.labels, ...labels } }, spec });
  });
}

/** Repeats what a rival's write, or the weather, refused. */
async function insist(world: World, call: () => Promise<unknown>): Promise<void> {
  await world.waitFor("it is acknowledged", () =>
    call().then(
      () => true,
      () => false,
    ),
  );
}

/** When all is done, the planner deletes what is past. @throws Error with what there is more of than before. */
async function censusAfter({ world }: Day, before: Census | undefined): Promise<Census> {
  const until = world.clock.now().getTime() + doneWithinSeconds * 1000;
  for (;;) {
    const census = await takeCensus(world);
    const rolloutStates = (await world.rows()).filter(({ type }) => type === "RolloutState") as readonly {
      readonly past?: unknown;
    }[];
    const isDone = rolloutStates.every(({ past }) => past === undefined) && census.connections === 0;
    const grown = growthOf(before ?? census, census);
    if (isDone && grown.length === 0) return census;
    if (world.clock.now().getTime() >= until)
      throw new Error(`there is more than there was half a day ago:\n${grown.join("\n")}\n${await world.describe()}`);
    await pass(world, world.clock.now().getTime() + halfHour * 100);
  }
}
