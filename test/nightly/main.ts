/**
 * `npm run nightly -- seeds [--from N] [--count N] [--parallel N] [--processes N]`: the invariant suite under the full
 * fault proxy, one small world per seed. Prints what repeats each seed that fails; exits with 1 when one did.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { errorMessage } from "#shared/errors.ts";
import { defaultRate, playQuiet, playSeed } from "#test/support/play-seed.ts";

const { values } = parseArgs({
  allowPositionals: true,
  options: {
    from: { type: "string", default: String(Date.now() % 1_000_000) },
    count: { type: "string", default: "1000" },
    /** Seeds at once in one process: most of a world's time is waiting. */
    parallel: { type: "string", default: "5" },
    processes: { type: "string", default: "2" },
    /** Seconds of the functions in one of ours: fewer where the machine is busy. */
    rate: { type: "string", default: String(defaultRate) },
    /** Of a child: every so-many-th seed is its own. */
    step: { type: "string", default: "1" },
  },
});
const [from, count, parallel, processes, rate, step] = [
  values.from,
  values.count,
  values.parallel,
  values.processes,
  values.rate,
  values.step,
].map(Number) as [number, number, number, number, number, number];

process.exitCode = processes > 1 ? await inProcesses() : await inThisProcess();

async function inProcesses(): Promise<number> {
  console.log(`seeds ${from} to ${from + count - 1}, ${parallel} at once in each of ${processes} processes`);
  const exits = Array.from({ length: processes }, async (_, index) => {
    const own = Math.ceil((count - index) / processes);
    const args = ["--processes", "1", "--from", `${from + index}`, "--count", `${own}`, "--step", `${processes}`];
    const script = fileURLToPath(import.meta.url);
    const child = spawn(process.execPath, [script, ...args, "--parallel", `${parallel}`, "--rate", `${rate}`], {
      stdio: "inherit",
    });
    const [code] = await once(child, "exit");
    return (code ?? 1) as number;
  });
  return Math.max(...(await Promise.all(exits)));
}

async function inThisProcess(): Promise<number> {
  const quietEnd = await playQuiet(rate);
  const seeds = Array.from({ length: count }, (_, index) => from + index * step);
  const startedAt = performance.now();
  const failed: number[] = [];
  const work = async () => {
    for (let seed = seeds.shift(); seed !== undefined; seed = seeds.shift()) {
      try {
        await playSeed(seed, { rate, quietEnd });
      } catch (error) {
        failed.push(seed);
        console.log(
          `\nseed ${seed} failed: ${errorMessage(error)}\nrepeat it: npm run nightly -- seeds --from ${seed} --count 1\n`,
        );
      }
    }
  };
  await Promise.all(Array.from({ length: parallel }, work));
  const seconds = Math.round((performance.now() - startedAt) / 1000);
  const cpu = process.cpuUsage();
  console.log(
    `${count} seeds in ${seconds} s (${Math.round((cpu.user + cpu.system) / 1e6)} s of processor time); failed: ${failed.join(", ") || "none"}`,
  );
  return failed.length > 0 ? 1 : 0;
}
