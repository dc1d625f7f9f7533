/** A plan of ten thousand clusters of a file, without an installation: as readable as one of ten. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { applyOptions } from "#shared/fleet/kinds/sync-template.ts";
import { runWithoutTerminal } from "#test/support/run-without-terminal.ts";

const folder = mkdtempSync(join(tmpdir(), "starling-many-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const clusters = 10_000;
const tiers = ["gold", "silver", "std"] as const;
const name = (index: number) => `c-${String(index).padStart(5, "0")}`;
/** 10 gold ones, 490 silver ones, and the others. */
const tierOf = (index: number) => (index < 10 ? tiers[0] : index < 500 ? tiers[1] : tiers[2]);

const head = { apiVersion: "starling.dev/v1alpha1" };
const group = {
  ...head,
  kind: "SyncGroup",
  metadata: { name: "web", namespace: "shop" },
  spec: {
    clusters: { all: true },
    templates: [
      {
        name: "app",
        source: "app",
        path: ".",
        apply: applyOptions.parse({}),
        parameters: { TIER: "{{ cluster.labels.tier }}" },
        substitute: true,
        overrides: [{ clusters: { names: [name(7)] }, namePrefix: "x-" }],
      },
    ],
    rollout: {
      stages: [{ name: "gold", clusters: { selector: { matchLabels: { tier: "gold" } } } }, { name: "rest" }],
    },
  },
};
const source = {
  ...head,
  kind: "Source",
  metadata: { name: "app", namespace: "shop" },
  spec: { git: { url: "https://example.com/app" } },
};

function fleetFile(order: (index: number) => number): string {
  const fleet = Array.from({ length: clusters }, (_, place) => {
    const index = order(place);
    const endpoint = { server: "https://127.0.0.1:1", token: { secret: "starling/clusters/s" } };
    return {
      ...head,
      kind: "Cluster",
      metadata: { name: name(index), labels: { tier: tierOf(index) } },
      spec: { endpoint },
    };
  });
  const path = join(folder, `fleet-${order(0)}.yaml`);
  writeFileSync(path, [group, source, ...fleet].map((document) => JSON.stringify(document)).join("\n---\n"));
  return path;
}

describe("a plan of 10,000 clusters", { timeout: 300_000 }, () => {
  mkdirSync(join(folder, "app"));
  const objects = Array.from({ length: 40 }, (_, index) => ({
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: { name: `settings-${index}`, namespace: "shop" },
    // biome-ignore lint/suspicious/noTemplateCurlyInString: it is what is substituted
    data: { tier: "${TIER}" },
  }));
  writeFileSync(join(folder, "app/all.yaml"), objects.map((object) => JSON.stringify(object)).join("\n---\n"));
  const plan = (file: string, rest: readonly string[] = []) =>
    runWithoutTerminal(["plan", "web", "-n", "shop", "--offline", "-f", file, "--source", "app=app", ...rest], {
      folder,
      patienceMs: 280_000,
    });

  test("a plan shows each distinct difference once with its clusters, in as many lines as for ten, in any order", async () => {
    const [first, second] = [fleetFile((index) => index), fleetFile((index) => clusters - 1 - index)];
    const shown = await plan(first);
    expect({ err: shown.err, code: shown.code }).toEqual({ err: "", code: 1 });
    expect(shown.out).toContain("10000 clusters selected: 10000 would change, 0 unchanged");
    expect(shown.out.match(/^\[\d\] .*$/gm)).toEqual([
      "[1] 9500 clusters: c-00500, c-00501, c-00502, c-00503, c-00504 and 9495 more",
      "[2] 490 clusters: c-00010, c-00011, c-00012, c-00013, c-00014 and 485 more",
      "[3] 9 clusters: c-00000, c-00001, c-00002, c-00003, c-00004 and 4 more",
      "[4] cluster c-00007",
    ]);
    expect(shown.out).toContain("Order: gold 10 of 10 -> rest 9990 of 9990");
    expect(shown.out.split("\n").length).toBeLessThan(120);
    const again = await plan(second);
    expect(again.out.split("\n")[0]).toBe(shown.out.split("\n")[0]);
    const one = await plan(first, ["--cluster", name(7)]);
    expect(one.out).toContain("1 cluster selected: 1 would change, 0 unchanged");
    expect((await plan(first, ["--cluster", "nowhere"])).err).toContain("cluster nowhere is not registered");
  });
});
