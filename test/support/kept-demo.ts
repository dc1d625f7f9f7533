import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { locateKubectl } from "#shared/adapters/render/kubectl-binary.ts";
import { parseJson } from "#shared/base/json.ts";
import { clusterReader } from "#test/support/cluster-reader.ts";
import { startDemo } from "#test/support/demo-process.ts";

export interface KeptDemo {
  /** The lines that the demo has printed. */
  lines(): readonly string[];
  /** Reads an object of a namespace with kubectl. */
  read(cluster: string, namespace: string, ...args: readonly string[]): Promise<unknown>;
  stop(): Promise<void>;
}

/** Plays an example of the demo to its end, and keeps its fleet until `stop`. */
export async function keptDemo(example: string, timeoutMs: number): Promise<KeptDemo> {
  const home = mkdtempSync(join(tmpdir(), `starling-${example}-example-test-`));
  const [tmp, keep] = [join(home, "tmp"), join(home, "keep")];
  const kubectl = await locateKubectl("");
  mkdirSync(tmp);
  const demo = startDemo(["--example", example, "--keep", keep], { tmp });
  const stop = async (): Promise<void> => {
    demo.child.kill("SIGTERM");
    await demo.ended();
    rmSync(home, { recursive: true, force: true });
  };
  try {
    await demo.until(/^in sync: .*\n/m, { timeoutMs });
  } catch (error) {
    await stop();
    throw error;
  }
  return {
    lines: () => demo.out().split("\n"),
    async read(cluster, namespace, ...args) {
      const reader = clusterReader({ kubectl, kubeconfig: join(keep, "kubeconfig"), context: cluster });
      return parseJson(await reader("get", "-n", namespace, ...args, "-o", "json"));
    },
    stop,
  };
}
