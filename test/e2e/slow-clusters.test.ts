/** Slow, failing and throttling clusters do not delay the others in an account that works on two clusters at once. */

import type { ClusterFaults } from "@starling/embedded-apiserver";
import { afterEach, expect, test } from "vitest";
import { valueAt } from "#shared/kube/kube-object.ts";
import { configMap, groupDocument, namespaceManifest, ringsOf, sourceDocument } from "#test/support/e2e-documents.ts";
import { startWorld, type World } from "#test/support/e2e-world.ts";

let world: World | undefined;
afterEach(() => world?.close());

const files = (color: string) => ({ "deploy/c.yaml": namespaceManifest + configMap("settings", { color }) });

/** The color in the cluster's ConfigMap. */
async function colorIn({ fleet }: World, cluster: string) {
  const objects = await fleet.objects(cluster);
  const settings = objects.find(
    (each) => each.kind === "ConfigMap" && valueAt(each, "metadata", "name") === "settings",
  );
  return settings && valueAt(settings, "data", "color");
}

const groupOf = (ring: string) =>
  groupDocument(ring, {
    clusters: { selector: { matchLabels: { ring } } },
    templates: [{ name: "app", source: "app", path: "deploy" }],
    rollout: { maxConcurrent: "100%" },
  });

test.each<[string, ClusterFaults]>([
  ["answer after 27 s", { latency: { ms: 27_000 } }],
  ["fail each request", { errors: { status: 503 } }],
  ["ask for a pause of half a minute each time", { throttle: { retryAfterSeconds: 30 } }],
])(
  "clusters that %s do not delay changes of the others, and get theirs when they are healthy",
  async (_way, faults) => {
    const made = await startWorld({ account: { clusters: "5", concurrency: "10" } });
    world = made;
    await made.join(...ringsOf({ fine: 3, bad: 2 }));
    const [fine, bad] = [
      ["fine-1", "fine-2", "fine-3"],
      ["bad-1", "bad-2"],
    ];
    const all = async (clusters: readonly string[], color: string) =>
      (await Promise.all(clusters.map((cluster) => colorIn(made, cluster)))).every((found) => found === color);
    await made.createRepository("app", files("red"));
    const git = { url: made.git.url("app"), ref: { branch: "main" } };
    await made.apply(sourceDocument("app", { git, interval: "1h" }), groupOf("fine"), groupOf("bad"));
    await made.waitFor("every cluster is red", () => all([...fine, ...bad], "red"));

    for (const name of bad) await made.fleet.setFaults?.(name, faults);
    for (const color of ["blue", "green", "white"]) {
      await made.push("app", files(color));
      await made.waitFor(`the others are ${color}`, () => all(fine, color));
    }
    expect(await all(bad, "red")).toBe(true);

    for (const name of bad) await made.fleet.setFaults?.(name, {});
    await made.waitFor("those that are well again are white", () => all(bad, "white"));
  },
);
