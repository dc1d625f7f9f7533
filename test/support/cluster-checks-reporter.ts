import { execFileSync } from "node:child_process";
import type { Reporter, TestCase, TestModule, TestRunEndReason, TestSuite } from "vitest/node";
import { defaultKubeAssetsFolder } from "#local/clusters/kube-assets.ts";
import { locateKubeAssets } from "#local/clusters/locate-kube-assets.ts";

/** The names of suites with a target end like this. */
const targetPattern = /\bon (?:the )?(embedded API server|kube-apiserver)/;

/**
 * Prints at the end of a run how many checks used the embedded API server and how many used a real one. With
 * `STARLING_REQUIRE_REAL` set to 1, a run without checks on a real one fails.
 */
export default class ClusterChecksReporter implements Reporter {
  async onTestRunEnd(
    modules: readonly TestModule[],
    _errors: readonly unknown[],
    reason: TestRunEndReason,
  ): Promise<void> {
    const passed = modules.flatMap((module) => [...module.children.allTests("passed")]).filter(isCheck);
    const embedded = passed.filter((test) => targetOf(test) === "embedded API server").length;
    const real = passed.filter((test) => targetOf(test) === "kube-apiserver").length;
    const required = process.env.STARLING_REQUIRE_REAL === "1";
    if (reason === "interrupted" || (embedded + real === 0 && !required)) return;
    console.log(`cluster checks: ${embedded} embedded, ${await realPart(real)}`);
    if (!required || real > 0) return;
    console.error("failed: checks on a real kube-apiserver were required (--require-real), and there were none");
    process.exitCode = 1;
  }
}

async function realPart(count: number): Promise<string> {
  const assets = await locateKubeAssets();
  if (assets === undefined) {
    return `${count} real: neither KUBEBUILDER_ASSETS nor ${defaultKubeAssetsFolder} has etcd and kube-apiserver`;
  }
  const version = execFileSync(assets.kubeApiServer, ["--version"], { encoding: "utf8" });
  return `${count} on kube-apiserver ${version.replace("Kubernetes v", "").trim()}`;
}

/** A recorded step that is only preparation for later steps is not a check. */
function isCheck(test: TestCase): boolean {
  return !test.name.includes("(left out: ");
}

/** The target is in the name of the innermost suite that has one. */
function targetOf(test: TestCase): string | undefined {
  let parent: TestSuite | TestModule = test.parent;
  while (parent.type === "suite") {
    const found = targetPattern.exec(parent.name);
    if (found !== null) return found[1];
    parent = parent.parent;
  }
  return undefined;
}
