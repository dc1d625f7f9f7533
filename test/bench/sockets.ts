import { startClusterHost } from "@starling/embedded-apiserver";
import { awsClients } from "#shared/lambda/aws-clients.ts";
import type { BenchOptions, BenchResult } from "#test/bench/bench.ts";
import { startAwsProcess } from "#test/bench/children.ts";
import { spread } from "#test/bench/figures.ts";
import { BenchWorker } from "#test/bench/worker.ts";
import { configMap } from "#test/support/cluster-fixture.ts";
import { startLimitedSandbox } from "#test/support/limited-sandbox.ts";

/** The descriptors of a sandbox of Lambda. A small fleet gets one for each cluster, beside `ownDescriptors`. */
const lambdaDescriptors = 1024;
/** The descriptors of the process itself and of its AWS clients. */
const ownDescriptors = 80;
/** The most sockets that may be open at once, beside those that the process has before its first connection. */
const mostOpen = 60;
/** More objects than a worker writes at once, in a namespace that exists. */
const objects = Array.from({ length: 12 }, (_, index) => configMap(`default/settings-${index}`));
const reportEvery = 100;
/** On a busy machine a cluster may answer too late. A larger share points to a fault of the worker. */
const mostTries = 3;
const mostSilentShare = 0.02;

/** Counts the sockets of a sandbox: one process with its limit of descriptors works on one cluster after the other. */
export async function sockets(options: BenchOptions): Promise<BenchResult> {
  const { clusters: [count = 2000] = [], say } = options;
  const aws = await startAwsProcess();
  const host = await startClusterHost({ controllers: "off" });
  const clients = awsClients(aws.address);
  const descriptors = Math.min(lambdaDescriptors, ownDescriptors + count);
  const { environment, ...endpoints } = aws.address;
  const sandbox = await startLimitedSandbox({ descriptors, environment, aws: endpoints });
  try {
    const idle = sandbox.descriptors();
    let open = 0;
    host.onRequest(() => {
      open = Math.max(open, sandbox.descriptors() - idle);
    });
    const failures: string[] = [];
    const [times, kept, keptToClusters]: [number[], number[], number[]] = [[], [], []];
    let silent = 0;
    for (let index = 0; index < count && failures.length === 0; index += 1) {
      const cluster = `c${index}`;
      const connection = host.addCluster(cluster);
      const port = Number(new URL(connection.server).port);
      const worker = new BenchWorker(aws.address, "set", { cluster, aws: clients });
      await worker.register(connection);
      await worker.assign(objects);
      let returned = 0;
      for (let tries = 1; ; tries += 1) {
        const started = performance.now();
        returned += await sandbox.invoke(cluster);
        times.push(performance.now() - started);
        if (returned > 0 || tries === mostTries || (await worker.observed()).phase !== "Unreachable") break;
        // The planner assigns again, too, when a cluster answers again.
        await worker.assign(objects);
        silent += 1;
      }
      kept.push(sandbox.descriptors() - idle);
      keptToClusters.push(sandbox.connectionsTo(port));
      if (returned > 0) failures.push(`the message for ${cluster} went back to the queue`);
      await worker.checkApplied().catch((error: Error) => failures.push(`${cluster}: ${error.message}`));
      if ((index + 1) % reportEvery === 0) say(`${index + 1} clusters: ${kept.at(-1)} open, ${open} at most`);
    }
    if (silent > Math.ceil(count * mostSilentShare)) failures.push(`${silent} times a cluster did not answer`);
    const [mostKept, mostToClusters] = [Math.max(...kept), Math.max(...keptToClusters)];
    if (open > mostOpen) failures.push(`${open} sockets were open at once, of ${mostOpen}`);
    if (mostToClusters > 0) failures.push(`${mostToClusters} connections to clusters outlived an invocation`);
    const figures = { descriptors, mostOpen: open, mostKept, mostToClusters, silent, ...spread(times) };
    return { target: "embedded v1.36.2", ratios: {}, figures: { [`${kept.length} clusters`]: figures }, failures };
  } finally {
    await sandbox.stop();
    for (const client of Object.values(clients)) if (typeof client === "object") client.destroy();
    await host.stop();
    await aws.stop();
  }
}
