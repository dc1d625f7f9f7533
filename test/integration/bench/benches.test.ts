/** Every benchmark runs with little work and answers in the documented form. The test judges no figure. */
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import * as z from "zod";

type Nested = string | number | { readonly [name: string]: Nested };
const nested: z.ZodType<Nested> = z.lazy(() => z.union([z.string(), z.number(), z.record(z.string(), nested)]));

/** The form of an answer in docs/benchmarks.md. */
const report = z.strictObject({
  bench: z.string(),
  target: z.string().regex(/^((kube-apiserver|embedded) v1\.\d+\.\d+|dynamodb|none)$/),
  node: z.string().startsWith("v"),
  machine: z.strictObject({ cpus: z.int(), model: z.string(), memoryGiB: z.number() }),
  ratios: z.record(z.string(), z.number().positive()),
  figures: z.record(z.string(), z.record(z.string(), nested)),
  failures: z.tuple([]),
});

const onEmbedded = ["--target", "embedded"];

/** Legend: benchmark, its sizes, its ratios (none for a single size of fleet). */
const benches: readonly (readonly [string, readonly string[], readonly string[]])[] = [
  ["apply", [...onEmbedded, "--objects", "20", "--rounds", "1"], ["vsKubectl", "vsRawPatch", "vsRawPatchConnecting"]],
  ["diff", [...onEmbedded, "--objects", "40", "--rounds", "1"], ["vsKubectlDiff", "vsKubectlDiffChanged"]],
  ["discovery", [], ["requestsPerClusterFirst", "requestsPerClusterUnchanged", "requestsPerClusterUnchangedWarm"]],
  ["drift", [...onEmbedded, "--objects", "40", "--rounds", "1"], ["vsKubectl"]],
  ["files", [], []],
  ["footprint", [...onEmbedded, "--objects", "20", "--rounds", "1", "--clusters", "2"], ["peakRssVsLambdaMemory"]],
  [
    "fanout",
    ["--clusters", "3"],
    ["callsPerTargetIn3Zones", "readUnitsPerTargetIn3Zones", "writeUnitsPerTargetIn3Zones"],
  ],
  [
    "idle",
    ["--clusters", "3", "--rounds", "1"],
    ["eksVsToken", "readUnitsIn3Zones", "sqsRequestsIn3Zones", "usdPerMonth1000x5vs100", "writeUnitsIn3Zones"],
  ],
  [
    "monorepo",
    ["--clusters", "1", "--objects", "3", "--rounds", "1"],
    [
      "awsFor20TemplatesVs1",
      "awsPerSourceOf3Vs1",
      "clusterRequestsFor20TemplatesVs1",
      "clusterRequestsPerSourceOf3Vs1",
      "gitRequestsFor3SourcesVs1",
      "messagesPerSourceOf3Vs1",
      "secondsFor20TemplatesVs1",
      "secondsPerSourceOf3Vs1",
    ],
  ],
  ["render", ["--rounds", "1"], ["helmVsBinary", "kustomizeVsBinary", "perInput1000vs10"]],
  [
    "resolve",
    ["--objects", "2000", "--rounds", "1"],
    ["fetch200VsGit", "fetch20VsGit", "listVsGit", "ociToClusterVsGit"],
  ],
  ["rollout", ["--clusters", "4", "--rounds", "1"], ["overCriticalPath", "recoveryVsQuiet"]],
  ["check", ["--clusters", "3,12", "--rounds", "1", "--objects", "2"], ["overview12vs3", "requests12vs3"]],
  ["sockets", ["--clusters", "12"], []],
  [
    "starve",
    ["--clusters", "2", "--rounds", "1"],
    ["failing", "failingFirst", "refusing", "refusingFirst", "silent", "silentFirst", "slow", "slowFirst"],
  ],
  [
    "planner",
    ["--clusters", "2,3", "--rounds", "1"],
    [
      "cpuPerTarget3vs2",
      "gateRequestsPerTarget3",
      "idleCheck3vs2",
      "longestCallSeconds",
      "readsPerTarget3vs2",
      "requestsPerTarget3vs2",
      "writesPerTarget3vs2",
    ],
  ],
];

test.each(benches)(
  "the benchmark %s runs and prints JSON in the documented form",
  { timeout: 600_000 },
  async (name, sizes, ratios) => {
    const parameters = ["test/bench/main.ts", name, "--json", ...sizes];
    const { stdout } = await promisify(execFile)(process.execPath, parameters);
    const answer = report.parse(JSON.parse(stdout));
    expect(answer.bench).toBe(name);
    expect(Object.keys(answer.ratios).sort()).toEqual(ratios);
  },
);

const refusals: readonly (readonly [string, readonly string[], RegExp])[] = [
  [
    "an unknown benchmark",
    ["fanuot"],
    /usage: npm run bench -- apply\|check\|diff\|discovery\|drift\|files\|footprint\|fanout/,
  ],
  [
    "an option of another benchmark",
    ["apply", "--clusters", "3"],
    /apply has no use for --clusters; it takes --json, --target/,
  ],
  ["no objects", ["apply", "--objects", "0"], /--objects is "0"; it takes a whole number, 1 or more/],
  ["an unknown target", ["drift", "--target", "kind"], /--target is "kind"; it is kube-apiserver or embedded/],
];

test.each(refusals)("%s is refused with the allowed values", async (_what, parameters, message) => {
  await expect(promisify(execFile)(process.execPath, ["test/bench/main.ts", ...parameters])).rejects.toMatchObject({
    code: 1,
    stdout: "",
    stderr: expect.stringMatching(message),
  });
});
