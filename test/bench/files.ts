/**
 * The files of ours that one call goes through, counted by V8's precise coverage with the rows in memory: what somebody
 * has to open who follows that call. A file counts when one of its functions runs; its top level alone does not count.
 * Beside them, the lines of the planner, and of its functions that await something.
 */
import { type Profiler, Session } from "node:inspector/promises";
import { relative } from "node:path";
import { fileURLToPath } from "node:url";
import { startClusterHost } from "@starling/embedded-apiserver";
import { KubeConnection } from "#shared/adapters/kube/kube-connection.ts";
import type { BenchOptions, BenchResult, Figures } from "#test/bench/bench.ts";
import { rounded } from "#test/bench/figures.ts";
import { PlannedGroup } from "#test/bench/planned-group.ts";
import { type SourceLines, sourceLinesOf } from "#test/bench/source-lines.ts";
import { configMap, endpointOf } from "#test/support/cluster-fixture.ts";
import { MemoryBlobStore } from "#test/support/memory-blob-store.ts";
import { MemoryTable } from "#test/support/memory-table.ts";
import { WorkerWorld } from "#test/support/worker-world.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
const plannerFolders = ["functions/rollout", "shared/fleet/rollout"];

export async function files({ say }: BenchOptions): Promise<BenchResult> {
  const calls = {
    "an assignment of one cluster": await assignment(),
    "a call of the planner that does nothing": await idleCall(),
    "an apply of three objects": await applyOfThree(),
  };
  for (const [call, paths] of Object.entries(calls)) say(`${call}:\n  ${paths.join("\n  ")}`);
  const counts = Object.fromEntries(Object.entries(calls).map(([call, { length }]) => [call, { files: length }]));
  const sources = [...plannerFolders.map((folder) => [folder]), plannerFolders].map((folders) => [
    folders.join(" + "),
    withShare(sourceLinesOf(root, folders)),
  ]);
  const figures = { ...counts, ...Object.fromEntries(sources) };
  return { target: "embedded v1.36.2", ratios: {}, figures, failures: [] };
}

function withShare(lines: SourceLines): Figures {
  return { ...lines, awaitingPercent: rounded((100 * lines.inAwaiting) / lines.inFunctions) };
}

/** The paths of the files of `functions` and `shared` in which a function runs during the call. */
async function filesOf(call: () => Promise<unknown>): Promise<readonly string[]> {
  const session = new Session();
  session.connect();
  await session.post("Profiler.enable");
  await session.post("Profiler.startPreciseCoverage", { callCount: true, detailed: false });
  // This forgets the functions that ran until now.
  await session.post("Profiler.takePreciseCoverage");
  await call();
  const { result } = await session.post("Profiler.takePreciseCoverage");
  session.disconnect();
  return result
    .filter(({ url, functions }) => url.startsWith("file:") && functions.some(isRun))
    .map(({ url }) => relative(root, fileURLToPath(url)))
    .filter((path) => /^(functions|shared)\//.test(path))
    .sort();
}

/** The top level of a module has no name and begins at its first byte. */
function isRun({ functionName, ranges: [whole] }: Profiler.FunctionCoverage): boolean {
  return whole !== undefined && whole.count > 0 && !(functionName === "" && whole.startOffset === 0);
}

/** The call that follows the rendering: the only cluster gets it. */
async function assignment(): Promise<readonly string[]> {
  const group = plannedGroup();
  await group.create(["c-0"]);
  let calls = 0;
  let found: readonly string[] = [];
  await group.rollOut("one", async (reported) => {
    calls += 1;
    if (calls === 2) found = await filesOf(() => group.call(reported));
    else await group.call(reported);
  });
  return found;
}

/** The call of a group whose clusters all have what is desired, an hour later. */
async function idleCall(): Promise<readonly string[]> {
  const group = plannedGroup();
  await group.create(["c-0"]);
  await group.rollOut("one", group.call);
  group.anHourLater();
  await group.call();
  return filesOf(() => group.call());
}

/** The worker's call that applies three objects to a cluster that has none of them. */
async function applyOfThree(): Promise<readonly string[]> {
  const host = await startClusterHost({ controllers: "off" });
  const kube = new KubeConnection(endpointOf(host.addCluster("c1")));
  try {
    const world = await new WorkerWorld({
      connect: async (_cluster, deadline) => kube.client({ deadlineMs: deadline.getTime() }),
      distrust() {},
    }).begin();
    const objects = ["a", "b", "c"].map((name) => configMap(`default/${name}`));
    await world.assign("web", objects);
    return await filesOf(() => world.work());
  } finally {
    kube.close();
    await host.stop();
  }
}

function plannedGroup(): PlannedGroup {
  const stores = { table: new MemoryTable(), blobs: new MemoryBlobStore() };
  return new PlannedGroup({ name: "web", templates: 1, maxConcurrent: "100%" }, stores);
}
