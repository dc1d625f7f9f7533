/** Servers in a process of their own, so that their time is not counted as a client's; it ends with its parent. */

import { type ClusterFaults, startClusterHost } from "@starling/embedded-apiserver";
import type { ClusterAddress, Started } from "#test/bench/children.ts";
import { startAws } from "#test/bench/start-aws.ts";

/** Without controllers, as a kube-apiserver alone. */
async function startEmbedded(): Promise<Started<ClusterAddress>> {
  const host = await startClusterHost({ controllers: "off" });
  const { server, caData, token, uid } = host.addCluster("bench");
  process.on("message", (faults: ClusterFaults) => {
    host.setFaults("bench", faults).then(() => process.send?.("done"));
  });
  return { address: { server, caData, token, uid }, stop: () => host.stop() };
}

const server = process.argv[2] === "aws" ? await startAws() : await startEmbedded();
process.on("disconnect", () => {
  server.stop().finally(() => process.exit());
});
// Ctrl-C reaches the whole group: the parent still has to finish with this one.
process.on("SIGINT", () => {});
process.send?.(server.address);
