/** Servers in their own process, so that their time does not count as a client's. The process ends with its parent. */

import { type ClusterConnection, type ClusterFaults, startClusterHost } from "@starling/embedded-apiserver";
import { onlyFromHere } from "#local/base/from-here.ts";
import { startGitServer } from "#local/git/git-server.ts";
import type { AwsAddresses, ChildRole, ClusterAddress, Started } from "#test/bench/children.ts";
import { watchProcess } from "#test/bench/process-use.ts";
import { startAws } from "#test/bench/start-aws.ts";

/** An embedded API server without controllers, like a kube-apiserver alone. */
async function startEmbedded(): Promise<Started<ClusterAddress>> {
  const host = await startClusterHost({ controllers: "off" });
  const { server, caData, token, uid } = host.addCluster("bench");
  process.on("message", (faults: ClusterFaults) => {
    host.setFaults("bench", faults).then(() => process.send?.("done"));
  });
  return { address: { server, caData, token, uid }, stop: () => host.stop() };
}

/**
 * Embedded API servers with controllers, so that workloads become ready. Each message returns the use since the last
 * one and restarts the measurement.
 */
async function startFleet(clusters: number): Promise<Started<readonly ClusterConnection[]>> {
  const host = await startClusterHost({ guard: onlyFromHere });
  const address = Array.from({ length: clusters }, (_, index) => host.addCluster(`c-${index}`));
  let use = watchProcess();
  process.on("message", () => {
    process.send?.(use.read());
    use = watchProcess();
  });
  return { address, stop: () => host.stop() };
}

async function startGit(root: string): Promise<Started<string>> {
  const server = await startGitServer({ root });
  return { address: new URL(server.url("any")).origin, stop: () => server.stop() };
}

const [, , role = "cluster", what = "1"] = process.argv;
const start = {
  aws: startAws,
  cluster: startEmbedded,
  fleet: () => startFleet(Number(what)),
  git: () => startGit(what),
} satisfies Record<
  ChildRole,
  () => Promise<Started<AwsAddresses | ClusterAddress | readonly ClusterConnection[] | string>>
>;
const server = await start[role as ChildRole]();
process.on("disconnect", () => {
  server.stop().finally(() => process.exit());
});
// Ctrl-C reaches the whole process group, and the parent must finish with this process first.
process.on("SIGINT", () => {});
process.send?.(server.address);
