/** The functions that wake workers by a cluster's zone may read its entry in the fleet's directory. */
import { expect, test } from "vitest";
import { partitions } from "#shared/fleet/rows/keys.ts";
import { mayDo, statementsOf } from "#test/support/policy-guard.ts";
import { readActions } from "#test/synth/grants.ts";
import { synthesizeTemplates } from "#test/synth/synthesized.ts";

const wishes = readActions.map((action) => ({
  action,
  resource: "<starling-state-table-arn>",
  partition: partitions.fleet,
}));

test.each(["api", "rollout", "tick"])("%s may read the entries of clusters where there are zones", async (sender) => {
  const { resources } = await synthesizeTemplates({ zones: '[{"name":"fixed","vpc":{}}]' });
  for (const wish of wishes) expect(mayDo(wish, statementsOf(resources, sender)), wish.action).toBe(true);
});

test("the tick may not read the entries of clusters without zones", async () => {
  const { resources } = await synthesizeTemplates();
  for (const wish of wishes) expect(mayDo(wish, statementsOf(resources, "tick")), wish.action).toBe(false);
});
