/** Vitest's global setup: one pool of real API servers for all test files of a run. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestProject } from "vitest/node";
import { startKubeApiServer } from "#local/clusters/kube-apiserver.ts";
import { locateKubeAssets } from "#local/clusters/locate-kube-assets.ts";
import { startServerPool } from "#test/support/server-pool/server-pool.ts";
import { serverUsers } from "#test/support/server-pool/server-users.ts";

export default async function servePool({ provide }: TestProject): Promise<() => Promise<void>> {
  const folder = await mkdtemp(join(tmpdir(), "starling-servers-"));
  const socketPath = join(folder, "pool");
  const pool = await startServerPool(socketPath, async () => {
    const assets = await locateKubeAssets();
    if (assets === undefined) throw new Error("there are no programs of a kube-apiserver to start");
    return startKubeApiServer({ assets, users: serverUsers });
  });
  provide("serverPool", socketPath);
  return async () => {
    await pool.stop();
    await rm(folder, { recursive: true, force: true });
  };
}
