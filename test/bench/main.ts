/**
 * `npm run bench -- NAME [--json]`. A benchmark prints ratios measured side by side in one run, because machines differ;
 * with `--json` the last line is one object `{bench, machine, target, ratios, figures}`.
 */
import { cpus, totalmem } from "node:os";
import { errorMessage } from "#shared/errors.ts";
import { fanout } from "#test/bench/fanout.ts";

export interface BenchResult {
  /** What stood for the clusters: `embedded`, or the version of a real API server. */
  readonly target: string;
  readonly ratios: Readonly<Record<string, number>>;
  readonly figures: Readonly<Record<string, unknown>>;
}

const benches: Readonly<Record<string, (say: (line: string) => void) => Promise<BenchResult>>> = { fanout };

async function main(): Promise<void> {
  const [name = "", ...flags] = process.argv.slice(2);
  const bench = Object.hasOwn(benches, name) ? benches[name] : undefined;
  if (bench === undefined || flags.some((flag) => flag !== "--json")) {
    throw new Error(`usage: npm run bench -- ${Object.keys(benches).join("|")} [--json]`);
  }
  const result = await bench((line) => process.stderr.write(`${line}\n`));
  const machine = {
    cpus: cpus().length,
    model: cpus()[0]?.model ?? "",
    memoryGiB: Math.round(totalmem() / 2 ** 30),
    node: process.version,
  };
  const { target, ratios, figures } = result;
  if (flags.includes("--json"))
    process.stdout.write(`${JSON.stringify({ bench: name, machine, target, ratios, figures })}\n`);
  else process.stdout.write(`${JSON.stringify({ ratios, figures }, null, 2)}\n`);
}

main().catch((error: unknown) => {
  process.stderr.write(`bench: ${errorMessage(error)}\n`);
  process.exitCode = 1;
});
