/**
 * `npm run bench -- NAME [--json] [options]`. A benchmark prints ratios from one run side by side, because machines
 * differ. With `--json` the last line is one object, which docs/benchmarks.md describes.
 */
import { cpus, totalmem } from "node:os";
import { parseArgs } from "node:util";
import { errorMessage } from "#shared/base/errors.ts";
import { apply } from "#test/bench/apply.ts";
import type { Bench, BenchOptions, TargetName } from "#test/bench/bench.ts";
import { check } from "#test/bench/check.ts";
import { bestTarget } from "#test/bench/children.ts";
import { diff } from "#test/bench/diff.ts";
import { discovery } from "#test/bench/discovery.ts";
import { drift } from "#test/bench/drift.ts";
import { fanout } from "#test/bench/fanout.ts";
import { files } from "#test/bench/files.ts";
import { footprint } from "#test/bench/footprint.ts";
import { idle } from "#test/bench/idle.ts";
import { monorepo } from "#test/bench/monorepo.ts";
import { planner } from "#test/bench/planner.ts";
import { render } from "#test/bench/render.ts";
import { resolve } from "#test/bench/resolve.ts";
import { rollout } from "#test/bench/rollout.ts";
import { sockets } from "#test/bench/sockets.ts";
import { starve } from "#test/bench/starve.ts";
import { tableOf } from "#test/bench/table.ts";

interface Entry {
  readonly run: Bench;
  /** The options of the benchmark, besides --json. */
  readonly takes: readonly string[];
}

const benches: Readonly<Record<string, Entry>> = {
  apply: { run: apply, takes: ["target", "objects", "rounds"] },
  check: { run: check, takes: ["clusters", "rounds", "objects"] },
  diff: { run: diff, takes: ["target", "objects", "rounds", "changes", "seed"] },
  discovery: { run: discovery, takes: [] },
  drift: { run: drift, takes: ["target", "objects", "rounds", "changes", "seed"] },
  files: { run: files, takes: [] },
  footprint: { run: footprint, takes: ["target", "objects", "rounds", "clusters"] },
  fanout: { run: fanout, takes: ["clusters"] },
  idle: { run: idle, takes: ["clusters", "rounds"] },
  monorepo: { run: monorepo, takes: ["clusters", "objects", "rounds"] },
  planner: { run: planner, takes: ["clusters", "rounds"] },
  render: { run: render, takes: ["rounds"] },
  resolve: { run: resolve, takes: ["objects", "rounds"] },
  rollout: { run: rollout, takes: ["clusters", "rounds"] },
  sockets: { run: sockets, takes: ["clusters"] },
  starve: { run: starve, takes: ["clusters", "rounds"] },
};

const usage = `usage: npm run bench -- ${Object.keys(benches).join("|")} [--json] [--target kube-apiserver|embedded]
  [--objects N] [--rounds N] [--changes N] [--seed N] [--clusters N[,N...]]`;

async function main(): Promise<void> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      json: { type: "boolean", default: false },
      target: { type: "string" },
      objects: { type: "string" },
      rounds: { type: "string" },
      changes: { type: "string" },
      seed: { type: "string" },
      clusters: { type: "string" },
    },
  });
  const [name = "", ...others] = positionals;
  const bench = Object.hasOwn(benches, name) ? benches[name] : undefined;
  if (bench === undefined || others.length > 0) throw new Error(usage);
  for (const given of Object.keys(values)) {
    if (given !== "json" && !bench.takes.includes(given))
      throw new Error(
        `${name} has no use for --${given}; it takes ${["json", ...bench.takes].map((each) => `--${each}`).join(", ")}`,
      );
  }
  const numbers = {
    ...numberOption("objects", values.objects),
    ...numberOption("rounds", values.rounds),
    ...numberOption("changes", values.changes),
    ...numberOption("seed", values.seed),
  };
  const options: BenchOptions = {
    target: await targetOption(values.target),
    ...numbers,
    ...(values.clusters === undefined
      ? {}
      : { clusters: values.clusters.split(",").map((size) => whole("clusters", size)) }),
    say: (line) => process.stderr.write(`${line}\n`),
  };
  quietPowertools();
  const { target, ratios, figures, failures } = await bench.run(options);
  const machine = { cpus: cpus().length, model: cpus()[0]?.model ?? "", memoryGiB: Math.round(totalmem() / 2 ** 30) };
  const report = { bench: name, target, node: process.version, machine, ratios, figures, failures };
  process.stdout.write(values.json ? `${JSON.stringify(report)}\n` : tableOf(report));
  if (failures.length > 0) process.exitCode = 1;
}

async function targetOption(given: string | undefined): Promise<TargetName> {
  if (given === undefined) return bestTarget();
  if (given === "embedded" || given === "kube-apiserver") return given;
  throw new Error(`--target is ${JSON.stringify(given)}; it is kube-apiserver or embedded\n${usage}`);
}

function numberOption<K extends string>(name: K, given: string | undefined): Partial<Record<K, number>> {
  return given === undefined ? {} : ({ [name]: whole(name, given) } as Partial<Record<K, number>>);
}

function whole(name: string, given: string): number {
  const least = name === "seed" ? 0 : 1;
  if (/^\d{1,7}$/.test(given) && Number(given) >= least) return Number(given);
  throw new Error(`--${name} is ${JSON.stringify(given)}; it takes a whole number, ${least} or more\n${usage}`);
}

/** Turns off logs and metrics of the functions. */
function quietPowertools(): void {
  process.env.POWERTOOLS_LOG_LEVEL ??= "SILENT";
  process.env.POWERTOOLS_METRICS_DISABLED ??= "true";
}

main().catch((error: unknown) => {
  process.stderr.write(`bench: ${errorMessage(error)}\n`);
  process.exitCode = 1;
});
