/** Reads with kubectl the fleet that `npm run demo -- --example gates` leaves, after its approvals and its rollback. */
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { locateKubectl } from "#shared/adapters/render/kubectl-binary.ts";
import { parseJson } from "#shared/base/json.ts";
import { clusterReader } from "#test/support/cluster-reader.ts";
import { startDemo } from "#test/support/demo-process.ts";
import type { StartedProcess } from "#test/support/started-process.ts";

const home = mkdtempSync(join(tmpdir(), "starling-gates-example-test-"));
const tmp = join(home, "tmp");
const keep = join(home, "keep");
const clusters = ["canary-1", "prod-1", "prod-2", "prod-3"];
let demo: StartedProcess | undefined;
let kubectl = "";

beforeAll(async () => {
  kubectl = await locateKubectl("");
  mkdirSync(tmp);
  demo = startDemo(["--example", "gates", "--keep", keep], { tmp });
  await demo.until(/^in sync: .*\n/m, { timeoutMs: 570_000 });
}, 600_000);

afterAll(async () => {
  demo?.child.kill("SIGTERM");
  await demo?.ended();
  rmSync(home, { recursive: true, force: true });
});

async function read(cluster: string, ...args: readonly string[]): Promise<unknown> {
  const reader = clusterReader({ kubectl, kubeconfig: join(keep, "kubeconfig"), context: cluster });
  return parseJson(await reader("get", "-n", "payments", ...args, "-o", "json"));
}

test("the demo prints each approval, the rollback, the release and the closed window before what they lead to", () => {
  const lines = (demo?.out() ?? "").split("\n");
  const expected = [
    / {2}waits: rollout 1 bakes in stage canary for 5s/,
    / {2}\$ starling rollout approve payments -n payments --stage production --plan [0-9a-f]{32} --reason /,
    / {2}canary-1: down, prod-1: down, prod-2: down, prod-3: down$/,
    / {2}\$ starling rollout rollback payments -n payments --reason /,
    / {2}canary-1: half-even, prod-1: half-even, prod-2: half-even, prod-3: half-even$/,
    / {2}waits: held by local: INC-4711/,
    / {2}\$ starling rollout release payments -n payments --reason /,
    / {2}waits: 3 clusters wait until window payday opens /,
    /^in sync: 4\/4 clusters at main@sha1:[0-9a-f]{40}$/,
  ];
  let from = 0;
  for (const pattern of expected) {
    const at = lines.findIndex((line, index) => index >= from && pattern.test(line));
    expect(at, `${pattern} after line ${from}`).toBeGreaterThanOrEqual(from);
    from = at + 1;
  }
  expect(lines.join("\n")).not.toContain("not in sync");
});

test.each(clusters)(
  "%s went through five versions, and has the last one with the correct rounding",
  async (cluster) => {
    const deployment = await read(cluster, "deployment", "web");
    // 1.0.0, 1.1.0, 1.0.0 again by the rollback, 1.1.1 and 1.2.0: the API server counts each change of the spec.
    expect(deployment).toMatchObject({
      metadata: { generation: 5 },
      spec: { template: { spec: { containers: [{ image: "registry.example/payments/web:1.2.0" }] } } },
    });
    expect(await read(cluster, "configmap", "settings")).toMatchObject({ data: { rounding: "half-even" } });
  },
);
