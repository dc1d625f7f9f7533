import { spawn, spawnSync } from "node:child_process";
import type { AskedNetwork, ReadNetwork } from "#test/support/private-network/sources-program.ts";

const enter = ["--user", "--map-root-user", "--net", "--mount"] as const;
const program = new URL("./sources-program.ts", import.meta.url).pathname;

/** Why this machine cannot give an installation a network of its own; undefined when it can. */
export function lackOfNetworks(): string | undefined {
  const tried = "ip link set lo up && ip addr add 10.0.0.1/32 dev lo && mount --bind /etc/hosts /etc/hosts";
  const { status, error, stderr } = spawnSync("unshare", [...enter, "--", "sh", "-c", tried], { encoding: "utf8" });
  if (status === 0) return undefined;
  return `unshare, ip and mount cannot make a network here: ${error?.message ?? stderr.trim().split("\n")[0]}`;
}

/** Starts an installation in a network of its own, and waits until it has read its Sources, or says why it cannot. */
export function readInNetwork(asked: AskedNetwork): Promise<ReadNetwork> {
  const child = spawn("unshare", [...enter, "--", process.execPath, program], {
    stdio: ["ignore", "ignore", "inherit", "ipc"],
    env: { ...process.env, POWERTOOLS_LOG_LEVEL: "SILENT", POWERTOOLS_METRICS_DISABLED: "true" },
  });
  const { promise, resolve, reject } = Promise.withResolvers<ReadNetwork>();
  child.on("message", ({ found, failure }: { readonly found?: ReadNetwork; readonly failure?: string }) => {
    if (found === undefined) reject(new Error(failure));
    else resolve(found);
  });
  child.on("error", reject);
  child.on("exit", (code, signal) => reject(new Error(`the installation ended with ${signal ?? `exit code ${code}`}`)));
  child.send(asked);
  return promise;
}
