import { startClusterHost } from "@starling/embedded-apiserver";
import { expect, test } from "vitest";
import { applySet } from "#shared/kube/engine/apply-set.ts";
import { KubeError } from "#shared/kube/kube-error.ts";
import { definition, endpointOf, namespace, widget } from "#test/support/cluster-fixture.ts";
import { applyRequest, engineWorld } from "#test/support/engine-world.ts";
import { forAllTests } from "#test/support/for-tests.ts";
import { watchedClient } from "#test/support/watched-client.ts";

/** A cluster whose own time can stop, so that it never serves a definition that is applied after that. */
const cluster = forAllTests(async () => {
  let stoppedAt: number | undefined;
  const host = await startClusterHost({ clock: () => stoppedAt ?? Date.now() });
  host.addCluster("c1");
  const world = engineWorld({ endpoint: endpointOf(await host.openPort("c1")), stop: () => host.stop() });
  return {
    ...world,
    stopTime() {
      stoppedAt = Date.now();
    },
  };
});

/** A clock on which only waiting takes time. */
function idleClock() {
  const begin = Date.now();
  const waits: number[] = [];
  let now = begin;
  return {
    waits,
    passedMs: () => now - begin,
    clock: {
      now: () => new Date(now),
      async sleep(milliseconds: number) {
        waits.push(milliseconds);
        now += milliseconds;
      },
    },
  };
}

const group = "waits.example.com";

test("a kind that is not found is looked up again after waits on the clock of the run", async () => {
  await cluster.applied("waits-definition", [definition(group)]);
  let refusals = 0;
  const client = watchedClient(cluster.client, async ({ method, name }) => {
    if (method !== "apply" || name !== "w" || refusals === 5) return;
    refusals += 1;
    const facts = { status: 404, message: "the server could not find the requested resource", causes: [] };
    throw new KubeError({ method: "PATCH", path: "/", secret: false }, facts);
  });
  const { clock, waits } = idleClock();
  const objects = [namespace("waits"), widget(group, "waits/w")];
  const result = await applySet(client, applyRequest("waits", objects, { clock }));
  expect(result.outcome).toBe("applied");
  expect(waits).toEqual([100, 250, 500, 1000, 1500]);
});

test("a run waits ten seconds of its own clock for a definition that is never served", async () => {
  const never = "never.example.com";
  cluster.stopTime();
  const { clock, waits, passedMs } = idleClock();
  const result = await cluster.apply("never", [definition(never), widget(never, "default/w")], { clock });
  expect(result.objects.at(-1)).toMatchObject({ outcome: "skipped", reason: "DefinitionNotEstablished" });
  expect(new Set(waits)).toEqual(new Set([150]));
  expect(passedMs()).toBe(10_050);
});
