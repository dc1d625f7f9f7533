/** Reads with kubectl the fleet that `npm run demo -- --example gates` leaves, after its approvals and its rollback. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { type KeptDemo, keptDemo } from "#test/support/kept-demo.ts";

const clusters = ["canary-1", "prod-1", "prod-2", "prod-3"];
let demo: KeptDemo | undefined;

beforeAll(async () => {
  demo = await keptDemo("gates", 570_000);
}, 600_000);

afterAll(() => demo?.stop());

async function read(cluster: string, ...args: readonly string[]): Promise<unknown> {
  return demo?.read(cluster, "payments", ...args);
}

test("the demo prints each approval, the rollback, the release and the closed window before what they lead to", () => {
  const lines = demo?.lines() ?? [];
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
