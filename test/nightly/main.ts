/**
 * Tests that take too long for every commit.
 *
 * `npm run nightly [-- properties|fuzz|large|seeds|busy|calls|soak|stories] [--seed N,N] [--from N] [--count N] [--parallel N]
 * [--processes N] [--rate N] [--clusters N] [--hours N]` prints the command that repeats a failure, and then exits with 1.
 *
 *   properties  the properties of the planner and of smaller parts, with the seed of this run
 *   fuzz        each parser of bytes from outside, with inputs that are nearly right
 *   large       the property of the planner, for a fleet of 10,000 clusters
 *   seeds       the invariant suite under the full fault proxy, with one small world for each seed
 *   busy        the same for a day on which people, pushes and groups cross each other
 *   calls       a reference run, repeated until each of its calls has failed in every way
 *   soak        a day of the functions' time, after which no more is kept than at noon
 *   stories     the end-to-end tests in the weather of another seed; the planner's also run on real API servers
 *
 * `npm run nightly -- mutants [AREA|AREA/PART...] [--processes N] [--every N] [--changed] [--write]` makes one mistake at
 * a time in the sources, and runs the tests below e2e that should see it. It exits with 1 when too few mutants die.
 *
 *   --every     takes another sample than the part says
 *   --changed   runs only mutants whose code or tests have changed since the last run, and those that it did not reach
 *               before a signal ended it
 *   --write     puts the counts into docs/testing.md
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { errorMessage } from "#shared/base/errors.ts";
import { runConcurrently } from "#shared/base/run-concurrently.ts";
import { playMutants } from "#test/nightly/mutants/play-mutants.ts";
import { playTests, type TestSuiteName, testSuites } from "#test/nightly/play-tests.ts";
import { wayOf } from "#test/support/chaos-people.ts";
import { measuredRate } from "#test/support/measured-rate.ts";
import { everyFailure, playFailing, playReference } from "#test/support/nth-call.ts";
import { largeScenario } from "#test/support/planner-model/planner-steps.ts";
import { playScenario } from "#test/support/planner-model/play-scenario.ts";
import { playBusySeed, playQuiet, playSeed, quietEnds } from "#test/support/play-seed.ts";
import { playSoak } from "#test/support/soak-day.ts";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    /** Plays these seeds and no others. */
    seed: { type: "string" },
    from: { type: "string", default: String(Date.now() % 1_000_000) },
    /** The default is 2,000 runs of a property, 1,000 seeds, 100 busy days (each ten times as long), or 3 large fleets. */
    count: { type: "string" },
    /** The number of worlds that one process plays at once; much of a world's time is waiting. */
    parallel: { type: "string", default: "5" },
    processes: { type: "string", default: "2" },
    /** Seconds of the functions' time in one second; by default as many as this machine can bear. */
    rate: { type: "string" },
    /** Nobody says anything to the worlds of seeds: the runs of every push have no time for it. */
    alone: { type: "boolean", default: false },
    /** The size of a large fleet. */
    clusters: { type: "string", default: "10000" },
    /** The functions' time in a soak. */
    hours: { type: "string", default: "24" },
    /** For a child process: it does every `processes`-th piece of the work, beginning with this one. */
    share: { type: "string" },
    /** For mutants: about every n-th one is made. */
    every: { type: "string" },
    changed: { type: "boolean", default: false },
    write: { type: "boolean", default: false },
  },
});
const [from, parallel, processes] = [values.from, values.parallel, values.processes].map(Number) as [
  number,
  number,
  number,
];
/** A day takes less than half an hour, because nothing happens for much of it. */
const soakRate = 60;
/** The number of worlds between two lines about progress. */
const reportEvery = 50;
const suites = { large: playLargeFleets, seeds: playSeeds, busy: playBusySeeds, calls: failCalls, soak };
type SuiteName = keyof typeof suites;
const allNames = ["properties", "fuzz", ...(Object.keys(suites) as SuiteName[]), "stories"] as const;
const usualCounts = { large: 3, seeds: 1000, busy: 100, soak: 1 };

const [suite, ...areas] = positionals;
if (suite === "mutants") {
  const every = values.every === undefined ? {} : { every: Number(values.every) };
  const { changed, write } = values;
  process.exit(await playMutants(areas, { concurrency: processes, changed, write, ...every }));
}
const unknown = positionals.filter((name) => !(allNames as readonly string[]).includes(name));
if (unknown.length > 0) throw new Error(`there is no suite ${unknown.join(", ")}: ${allNames.join(", ")}`);
const names = positionals.length > 0 ? (positionals as (typeof allNames)[number][]) : allNames;
let worst = 0;
for (const name of names) worst = Math.max(worst, await play(name));
// Sandboxes that died leave timers and requests that go on for minutes; the process ends without them.
process.exit(worst);

async function play(name: SuiteName | TestSuiteName): Promise<number> {
  if (name in testSuites)
    return playTests(name as TestSuiteName, { seed: values.seed ?? values.from, count: values.count });
  return values.share === undefined && processes > 1 ? inProcesses(name as SuiteName) : suites[name as SuiteName]();
}

async function inProcesses(name: SuiteName): Promise<number> {
  if (name !== "calls") console.log(`${name} ${values.seed ?? `${from} to ${from + countOf(name) - 1}`}`);
  const given = process.argv.slice(2).filter((each) => !Object.hasOwn(suites, each));
  const exits = Array.from({ length: processes }, async (_, share) => {
    const args = [fileURLToPath(import.meta.url), name, ...given, "--from", `${from}`, "--share", `${share}`];
    const child = spawn(process.execPath, args, { stdio: "inherit" });
    const [code] = await once(child, "exit");
    return Number(code ?? 1);
  });
  return Math.max(...(await Promise.all(exits)));
}

async function playLargeFleets(): Promise<number> {
  return eachSeed("large", async () => (seed) => playScenario(largeScenario(Number(values.clusters), seed)));
}

async function soak(): Promise<number> {
  const [rate, hours] = [Number(values.rate ?? soakRate), Number(values.hours)];
  return eachSeed("soak", async () => (seed) => playSoak({ seed, rate, hours, say: console.log }));
}

async function playSeeds(): Promise<number> {
  return eachSeed("seeds", async () => {
    const { rate, played } = await paced(playQuiet);
    const quietEnd = quietEnds(rate, played);
    return (seed) => playSeed(seed, { rate, quietEnd, way: values.alone ? "no verb" : wayOf(seed) });
  });
}

async function playBusySeeds(): Promise<number> {
  return eachSeed("busy", async () => {
    const { rate } = await paced(playQuiet);
    return (seed) => playBusySeed(seed, rate);
  });
}

function countOf(name: keyof typeof usualCounts): number {
  return Number(values.count ?? usualCounts[name]);
}

async function eachSeed(
  name: keyof typeof usualCounts,
  begin: () => Promise<(seed: number) => Promise<void>>,
): Promise<number> {
  const all = values.seed?.split(",").map(Number) ?? Array.from({ length: countOf(name) }, (_, index) => from + index);
  const seeds = own(all);
  if (seeds.length === 0) return 0;
  const play = await begin();
  const failed: number[] = [];
  let played = 0;
  await runConcurrently(seeds, parallel, async (seed) => {
    try {
      await play(seed);
    } catch (error) {
      failed.push(seed);
      console.log(`seed ${seed} failed: ${errorMessage(error)}\nrepeat it: npm run nightly -- ${name} --seed ${seed}`);
    }
    played += 1;
    if (played % reportEvery === 0) console.log(`${played} of ${seeds.length} ${name}, ${failed.length} failed`);
  });
  return summary(`${seeds.length} ${name}`, failed);
}

async function failCalls(): Promise<number> {
  const { rate, played } = await paced(playReference);
  const reference = { ...played, rate };
  const runs = own([...everyFailure(reference).entries()]);
  const failed: number[] = [];
  let failures = 0;
  let missed = 0;
  await runConcurrently(runs, parallel, async ([index, planned]) => {
    try {
      const fired = await playFailing(planned, reference);
      failures += fired.length;
      missed += planned.length - fired.length;
    } catch (error) {
      failed.push(index);
      const calls = planned.map(({ className, number, when, as }) => `${className} ${number} ${when} ${as}`);
      console.log(`run ${index} failed: ${errorMessage(error)}\nfailing calls: ${calls.join("; ")}`);
    }
  });
  return summary(`${failures} failing calls in ${runs.length} runs (${missed} were not made there)`, failed);
}

async function paced<T>(play: (rate: number) => Promise<T>): Promise<{ readonly rate: number; readonly played: T }> {
  const given = values.rate === undefined ? undefined : Number(values.rate);
  const measured = given === undefined ? await measuredRate(play) : { rate: given, played: await play(given) };
  console.log(`${measured.rate} seconds of the functions in one`);
  return measured;
}

function own<T>(work: readonly T[]): readonly T[] {
  if (values.share === undefined) return work;
  return work.filter((_, index) => index % processes === Number(values.share));
}

function summary(done: string, failed: readonly number[]): number {
  const { user, system } = process.cpuUsage();
  const seconds = `${Math.round(process.uptime())} s, ${Math.round((user + system) / 1e6)} s of processor time`;
  console.log(`${done} in ${seconds}; failed: ${failed.join(", ") || "none"}`);
  return failed.length > 0 ? 1 : 0;
}
