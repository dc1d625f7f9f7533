import { describe, expect, test } from "vitest";
import type { MemberSync } from "#shared/fleet/api/fleet-member.ts";
import type { DesiredCluster } from "#shared/fleet/forecast/desired-clusters.ts";
import { type ForecastFacts, forecast } from "#shared/fleet/forecast/forecast.ts";
import { applyOptions } from "#shared/fleet/kinds/sync-template.ts";
import type { TargetInput } from "#shared/fleet/rows/rollout-rows.ts";

const apply = applyOptions.parse({});
const template = { name: "app", source: "app", revision: "r", artifactDigest: "a", path: ".", apply };

function desired(cluster: string, input: TargetInput, stage = "all"): DesiredCluster {
  return { cluster, stage, targets: [{ template, sync: "web.app", input }] };
}

function had(renderDigest: string, more: Partial<MemberSync> = {}): MemberSync {
  return { name: "web.app", state: "Ready", action: "apply", revision: "r", renderDigest, apply, ...more };
}

const input = (digest: string): TargetInput => ({ digest, path: "." });

const facts: ForecastFacts = {
  desired: [
    desired("c1", input("i2"), "canary"),
    desired("c2", input("i2")),
    desired("c3", input("i2")),
    desired("c4", input("i1")),
    desired("c5", input("i2")),
    desired("c6", input("lost")),
    desired("c7", { problem: "has no cluster.values.x" }),
    desired("c8", { disabled: true }),
    desired("c9", input("i1")),
  ],
  fleet: [
    { name: "c1", syncs: [had("d1")] },
    { name: "c2", syncs: [had("d1")] },
    { name: "c3", syncs: [had("d2")] },
    { name: "c4", syncs: [had("d1", { apply: { ...apply, prune: false } })] },
    { name: "c5", syncs: [] },
    { name: "c6", syncs: [had("d1")] },
    { name: "c7", syncs: [had("d1")] },
    { name: "c8", syncs: [had("d1")] },
    { name: "c9", syncs: [had("d1"), had("d9", { name: "web.old" })] },
    { name: "left", syncs: [had("d1")] },
    { name: "never", syncs: [] },
  ],
  renderings: new Map([
    ["i1", "d1"],
    ["i2", "d2"],
  ]),
  failures: new Map([["lost", "KustomizeFailed"]]),
  stages: ["canary", "all"],
};

describe("a forecast", () => {
  test("a forecast groups clusters with the same changes, and lists the changes", () => {
    const { differences, selected, unchanged, stages } = forecast(facts);
    const listed = differences.map(({ clusters, changes }) => [
      clusters.join(),
      ...changes.map(({ sync, how, before, after, reason }) => [sync, how, before, after, reason].join(" ").trim()),
    ]);
    expect(listed).toEqual([
      ["c1,c2", "web.app change d1 d2"],
      ["c8,left", "web.app leave d1"],
      ["c4", "web.app options d1 d1"],
      ["c5", "web.app install  d2"],
      ["c6", "web.app fail d1  KustomizeFailed"],
      ["c7", "web.app fail d1  has no cluster.values.x"],
      ["c9", "web.old delete d9"],
    ]);
    expect([selected, unchanged]).toEqual([9, 1]);
    expect(stages).toEqual([
      { name: "canary", clusters: 1, changing: 1 },
      { name: "all", clusters: 8, changing: 7 },
    ]);
  });

  test("the hash of a forecast depends on its changes only", () => {
    const { hash } = forecast(facts);
    const shuffled = { ...facts, desired: facts.desired.toReversed(), fleet: facts.fleet.toReversed() };
    expect(forecast(shuffled).hash).toBe(hash);
    const calm = { ...facts, fleet: [...facts.fleet, { name: "more", syncs: [] }] };
    expect(forecast(calm).hash).toBe(hash);
    expect(forecast({ ...facts, renderings: new Map([...facts.renderings, ["i2", "d3"]]) }).hash).not.toBe(hash);
    expect(forecast({ ...facts, desired: facts.desired.slice(1) }).hash).not.toBe(hash);
  });
});
