import { execFile } from "node:child_process";
import { stat } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import type { BenchOptions, BenchResult, Figures } from "#test/bench/bench.ts";
import { median, rounded } from "#test/bench/figures.ts";
import { onGround } from "#test/bench/ground.ts";
import { benchObjects } from "#test/bench/objects.ts";
import { workerEvent } from "#test/bench/worker.ts";
import { footprintOfClusters } from "#test/support/idle-clusters.ts";
import { ofType, type Resource, synthesizeCode } from "#test/synth/synthesized.ts";

const namespace = "bench-starling";
const kib = 1024;
const mib = 1024 * kib;
const program = fileURLToPath(new URL("run-bundle.mjs", import.meta.url));
const maxOutputBytes = 1 * mib;

/** The code of one function as it is deployed. */
interface Bundle {
  readonly name: string;
  readonly file: string;
  readonly memoryMiB: number;
  readonly variables: Readonly<Record<string, unknown>>;
}

interface BundleRun {
  readonly importMs: number;
  readonly importCpuMs: number;
  readonly importedRssBytes: number;
  readonly ms: number;
  readonly peakHeapBytes: number;
  readonly peakRssBytes: number;
}

/**
 * Measures the size and the import time of each function's code as it is deployed. Also measures the peak memory of an
 * apply of many new objects in a fresh process, beside the memory of its Lambda function, and the memory of an idle
 * embedded cluster, because hundreds of clusters have to fit into one process.
 */
export async function footprint(options: BenchOptions): Promise<BenchResult> {
  const { target, objects = 2000, rounds = 5, clusters: [idle = 200] = [], say } = options;
  const { assembly, resources, remove } = synthesizeCode();
  try {
    const bundles = ofType(resources, "AWS::Lambda::Function").map((resource) => bundleOf(resource, assembly));
    const figures: Record<string, Figures> = {};
    for (const bundle of bundles) {
      figures[bundle.name] = await codeFigures(bundle, rounds);
      say(`${bundle.name}: ${JSON.stringify(figures[bundle.name])}`);
    }
    const worker = bundles.find(({ name }) => name === "apply");
    if (worker === undefined) throw new Error("the template has no function apply");
    const applied = await applyOnce(worker, { target, objects });
    const { name, run } = applied;
    figures[`apply of ${objects} objects`] = {
      ms: Math.round(run.ms),
      peakRssMiB: Math.round(run.peakRssBytes / mib),
      peakHeapMiB: Math.round(run.peakHeapBytes / mib),
      importedRssMiB: Math.round(run.importedRssBytes / mib),
      memoryMiB: worker.memoryMiB,
    };
    const { fresh, used, totalRssBytes } = await footprintOfClusters(idle);
    figures[`idle embedded cluster, of ${idle}`] = {
      freshHeapMiB: rounded(fresh.heapBytes / mib),
      freshRssMiB: rounded(fresh.rssBytes / mib),
      usedHeapMiB: rounded(used.heapBytes / mib),
      usedRssMiB: rounded(used.rssBytes / mib),
      totalRssMiB: Math.round(totalRssBytes / mib),
    };
    const peakRssVsLambdaMemory = rounded(run.peakRssBytes / mib / worker.memoryMiB);
    return { target: name, ratios: { peakRssVsLambdaMemory }, figures, failures: [] };
  } finally {
    remove();
  }
}

function bundleOf({ id, Properties }: Resource, assembly: string): Bundle {
  const { S3Key } = Properties.Code as { readonly S3Key: string };
  return {
    name: /^Wiring([A-Z][a-z]+)Function/.exec(id)?.[1]?.toLowerCase() ?? id,
    file: join(assembly, `asset.${S3Key.replace(/\.zip$/, "")}`, "index.mjs"),
    memoryMiB: Properties.MemorySize as number,
    variables: (Properties.Environment as { readonly Variables: Record<string, unknown> }).Variables,
  };
}

async function codeFigures(bundle: Bundle, rounds: number): Promise<Figures> {
  const imports: BundleRun[] = [];
  // Variables without a value before the deployment get any valid name or address.
  const anything = Object.entries(bundle.variables).map(([name, value]) => [
    name,
    typeof value === "string" ? value : anythingOf(name),
  ]);
  for (let round = 0; round < rounds; round += 1) imports.push(await runBundle(bundle, Object.fromEntries(anything)));
  return {
    sizeKiB: Math.ceil((await stat(bundle.file)).size / kib),
    importMs: Math.round(median(imports.map(({ importMs }) => importMs))),
    importCpuMs: Math.round(median(imports.map(({ importCpuMs }) => importCpuMs))),
    importedRssMiB: Math.round(median(imports.map(({ importedRssBytes }) => importedRssBytes)) / mib),
    memoryMiB: bundle.memoryMiB,
  };
}

function anythingOf(variable: string): string {
  if (variable.includes("QUEUE")) return "https://sqs.example.com/1/q";
  return variable === "STARLING_LOG_GROUPS" ? "apply=x" : "x";
}

async function applyOnce(
  bundle: Bundle,
  { target, objects }: { readonly target: BenchOptions["target"]; readonly objects: number },
): Promise<{ readonly name: string; readonly run: BundleRun }> {
  return onGround({ target, namespaces: [namespace] }, async (ground) => {
    await ground.worker.assign(benchObjects(objects, { namespace, revision: "1" }));
    const run = await runBundle(bundle, ground.worker.processEnvironment, JSON.stringify(workerEvent()));
    await ground.worker.checkApplied();
    return { name: ground.target, run };
  });
}

/** Runs the bundle with the heap that Lambda's Node.js runtime allows for its memory, and with no other environment. */
async function runBundle(
  { file, memoryMiB, variables }: Bundle,
  environment: Readonly<Record<string, string>>,
  event?: string,
): Promise<BundleRun> {
  const heap = [
    `--max-old-space-size=${Math.floor(memoryMiB * 0.9)}`,
    `--max-semi-space-size=${Math.floor(memoryMiB * 0.05)}`,
  ];
  const { stdout } = await promisify(execFile)(
    process.execPath,
    [...heap, program, file, ...(event === undefined ? [] : [event])],
    {
      maxBuffer: maxOutputBytes,
      env: {
        AWS_REGION: "us-east-1",
        POWERTOOLS_LOG_LEVEL: "SILENT",
        POWERTOOLS_METRICS_DISABLED: "true",
        ...environment,
        NODE_OPTIONS: String(variables.NODE_OPTIONS ?? ""),
      },
    },
  );
  return JSON.parse(stdout);
}
