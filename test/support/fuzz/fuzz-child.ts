/** `node fuzz-child.ts PARSER SEED INPUTS real|faulty`: tries one parser with inputs in turn, and says what it found. */
import { errorMessage } from "#shared/base/errors.ts";
import { faultyParsers } from "#test/support/fuzz/faulty-parsers.ts";
import { mutate, numbersFrom } from "#test/support/fuzz/mutate.ts";
import { fuzzedParsers, isRefusal } from "#test/support/fuzz/parsers.ts";

export interface FuzzFault {
  /** The number of the input, from 0. */
  readonly input: number;
  readonly message: string;
  /** In base64; the first part of a long one. */
  readonly bytes: string;
}

export interface FuzzReport {
  readonly refused: number;
  readonly faults: readonly FuzzFault[];
  readonly peakMiB: number;
}

/** Processor time of one input. */
const longestMs = 3000;
const mostFaults = 5;
const shownBytes = 3000;

const [name, seed = "1", inputs = "100", which = "real"] = process.argv.slice(2);
const parser = (which === "real" ? fuzzedParsers : faultyParsers).find((each) => each.name === name);
if (parser === undefined) throw new Error(`there is no parser ${name}`);
const samples = await parser.samples();
const faults: FuzzFault[] = [];
let refused = 0;
for (const sample of samples) await attempt(-1, sample, "a sample is refused");
const count = Math.ceil((Number(inputs) * (parser.share ?? 100)) / 100);
for (let input = 0; input < count && faults.length < mostFaults; input++) {
  // The parent ends this process when an input never ends.
  process.send?.(input);
  const next = numbersFrom(Number(seed) * 1_000_003 + input);
  const mutated = mutate(samples, next);
  const bytes = parser.repair !== undefined && next() < 0.7 ? parser.repair(mutated) : mutated;
  await attempt(input, bytes, undefined);
}
const report: FuzzReport = { refused, faults, peakMiB: Math.round(process.resourceUsage().maxRSS / 1024) };
process.send?.(report, undefined, {}, () => process.disconnect());

async function attempt(input: number, bytes: Buffer, refusal: string | undefined): Promise<void> {
  const note = (message: string) =>
    void faults.push({ input, message, bytes: bytes.subarray(0, shownBytes).toString("base64") });
  const before = process.cpuUsage();
  try {
    await parser?.run(bytes, samples);
  } catch (error) {
    if (!isRefusal(error)) note(`${error instanceof Error ? error.stack : errorMessage(error)}`);
    else if (refusal !== undefined) note(`${refusal}: ${errorMessage(error)}`);
    refused += 1;
  }
  const { user, system } = process.cpuUsage(before);
  const ms = (user + system) / 1000;
  if (ms > longestMs) note(`it takes ${Math.round(ms)} ms of processor time`);
}
