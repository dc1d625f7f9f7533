import { expect, test } from "vitest";
import { originsOf } from "#shared/fleet/forecast/origins.ts";
import { syncTemplate } from "#shared/fleet/kinds/sync-template.ts";

const parsed = syncTemplate.parse({
  name: "app",
  source: "app",
  path: "apps/{{ cluster.labels.tier }}",
  targetNamespace: "shop",
  substitute: true,
  parameters: {
    DOMAIN: "{{ cluster.values.domain }}",
    ZONE: "{{ cluster.values.zone | default(a) }}",
    SIZE: "1",
    OWN: "{{ cluster.values.own }}/{{ cluster.name }}",
    FOUND: "{{ cluster.values.found }}",
  },
  overrides: [
    { clusters: { all: true }, parameters: { SIZE: "2" } },
    { clusters: { names: ["other"] }, parameters: { SIZE: "9" } },
    { clusters: { names: ["one"] }, parameters: { SIZE: "3" }, targetNamespace: "own" },
  ],
});
const { render: _render, ...template } = parsed;
const planned = { ...template, revision: "main@sha1:a", artifactDigest: "sha256:a" };

test("each input of a rendering says who set it", () => {
  const cluster = {
    name: "one",
    labels: { tier: "gold" },
    values: { own: "me", found: "tag", domain: "of a tag" },
    discoveredValues: ["found", "domain"],
  };
  const layer = (name: string, domain: string) => ({
    name,
    spec: { clusters: { all: true as const }, priority: 1, values: { domain } },
  });
  const origins = originsOf(planned, cluster, [layer("low", "low.example"), layer("high", "high.example")]);
  expect(origins).toEqual([
    { field: "path", value: "apps/gold", from: ["template", "cluster.labels.tier"] },
    { field: "targetNamespace", value: "own", from: ["overrides[2]"] },
    {
      field: "parameters.DOMAIN",
      value: "high.example",
      from: ["template", "cluster.values.domain: clustervalues/high"],
    },
    { field: "parameters.ZONE", value: "a", from: ["template", "cluster.values.zone: default"] },
    { field: "parameters.SIZE", value: "3", from: ["overrides[2]"] },
    { field: "parameters.OWN", value: "me/one", from: ["template", "cluster.values.own: cluster/one", "cluster.name"] },
    { field: "parameters.FOUND", value: "tag", from: ["template", "cluster.values.found: clusterdiscovery"] },
  ]);
});
