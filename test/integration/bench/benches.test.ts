/** Every benchmark runs, with hardly any work to do, and answers in the documented form. No figure is judged here. */
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { z } from "zod";

type Nested = string | number | { readonly [name: string]: Nested };
const nested: z.ZodType<Nested> = z.lazy(() => z.union([z.string(), z.number(), z.record(z.string(), nested)]));

/** As docs/benchmarks.md has it. */
const report = z.strictObject({
  bench: z.string(),
  target: z.string().regex(/^(kube-apiserver|embedded) v1\.\d+\.\d+$/),
  node: z.string().startsWith("v"),
  machine: z.strictObject({ cpus: z.int(), model: z.string(), memoryGiB: z.number() }),
  ratios: z.record(z.string(), z.number().positive()),
  figures: z.record(z.string(), z.record(z.string(), nested)),
  failures: z.tuple([]),
});

/** Legend: benchmark, its sizes, the ratios it gives: of one size of fleet, none. */
const benches: readonly (readonly [string, readonly string[], readonly string[]])[] = [
  ["apply", ["--objects", "20", "--rounds", "1"], ["vsKubectl", "vsRawPatch"]],
  ["drift", ["--objects", "40", "--rounds", "1"], ["vsKubectl"]],
  ["footprint", ["--objects", "20", "--rounds", "1", "--clusters", "2"], ["peakRssVsLambdaMemory"]],
  ["fanout", ["--clusters", "2"], []],
];

test.each(benches)("%s runs, and its JSON is as documented", { timeout: 180_000 }, async (name, sizes, ratios) => {
  const parameters = ["test/bench/main.ts", name, "--json", "--target", "embedded", ...sizes];
  const { stdout } = await promisify(execFile)(process.execPath, parameters);
  const answer = report.parse(JSON.parse(stdout));
  expect(answer.bench).toBe(name);
  expect(Object.keys(answer.ratios).sort()).toEqual(ratios);
});
