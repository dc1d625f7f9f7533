import { describe, expect, test } from "vitest";
import { clusterSpec } from "#shared/fleet/kinds/cluster.ts";
import { inputDigest, inputsOf } from "#shared/fleet/rollout/desired-plan.ts";
import { fleetRow } from "#shared/fleet/rows/cluster-entry.ts";
import type { ClusterRow } from "#shared/fleet/rows/object-rows.ts";
import type { PlannedTemplate } from "#shared/fleet/rows/rollout-rows.ts";
import { helmOptions } from "#shared/source/helm/helm-options.ts";
import { clusterRow } from "#test/support/cluster-row.ts";

const version = "starling.dev/version";
const discovered = { by: "eks", arn: "arn:aws:eks:eu-west-1:111122223333:cluster/a", values: {} };

function entry(kubeVersion: string | undefined, more: Partial<ClusterRow> = {}) {
  const { spec, ...row } = clusterRow();
  return fleetRow({ ...row, spec: { ...spec, ...(kubeVersion === undefined ? {} : { kubeVersion }) }, ...more });
}

describe("the version of Kubernetes", () => {
  test.each([
    ["that a user wrote", entry("1.34"), "1.34"],
    [
      "of a discovery, rather than the written one",
      entry("1.33", { discovered: { ...discovered, labels: { [version]: "1.34" } } }),
      "1.34",
    ],
    ["of a label, rather than both", entry("1.33", { labels: { [version]: "1.32" } }), "1.32"],
    ["that is unknown", entry(undefined), undefined],
  ])("a version of Kubernetes %s is the cluster's label", (_legend, { labels }, expected) => {
    expect(labels[version]).toBe(expected);
  });

  test("clusters with the same version of Kubernetes share the input of a chart, and other renderings do not depend on it", () => {
    const template: PlannedTemplate = {
      name: "app",
      source: "app",
      revision: "main@sha1:a",
      artifactDigest: "sha256:a",
      path: ".",
      apply: { prune: true, drift: "correct", interval: "10m", defaultNamespace: "shop" },
      render: { helm: helmOptions.parse({}) },
    };
    const inputs = (template: PlannedTemplate) =>
      ["1.34", "1.34", "1.35", undefined].map((kubeVersion) => {
        const { labels, values } = entry(kubeVersion);
        const [input] = inputsOf({ templates: [template] }, { cluster: "a", labels, values });
        if (input === undefined || !("path" in input)) throw new Error("it is rendered");
        return inputDigest(input);
      });
    const [first, second, third, fourth] = inputs(template);
    expect(first).toBe(second);
    expect(new Set([first, third, fourth]).size).toBe(3);
    expect(new Set(inputs({ ...template, render: { plain: {} } })).size).toBe(1);
  });

  test.each(["v1.34", "1.34.2", "latest", "2.0", "1."])("a version %s of Kubernetes is refused", (kubeVersion) => {
    const parsed = clusterSpec.safeParse({ kubeVersion });
    expect(parsed.error?.issues.map(({ message }) => message)).toEqual([
      'must be a minor version of Kubernetes in quotes, as "1.34"',
    ]);
  });
});
