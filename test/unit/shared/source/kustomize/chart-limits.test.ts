import { expect, test } from "vitest";
import { renderObjects } from "#shared/adapters/render/render-objects.ts";
import type { HelmRunner, KustomizeRunner } from "#shared/ports.ts";
import { kustomizeInputs } from "#shared/source/kustomize/kustomize-inputs.ts";

/** A kustomization with the given number of parts, each of which inflates the given number of charts; all use one chart. */
function treeOf(parts: number, charts: number) {
  const entries = Array.from({ length: charts }, (_, index) => `{name: web, releaseName: r${index}}`);
  const texts = new Map([["charts/web/Chart.yaml", "name: web\nversion: 1.0.0\napiVersion: v2\n"]]);
  const names = Array.from({ length: parts }, (_, index) => `part-${index}`);
  for (const name of names) {
    texts.set(
      `apps/${name}/kustomization.yaml`,
      `helmGlobals: {chartHome: ../../charts}\nhelmCharts: [${entries.join(", ")}]\n`,
    );
  }
  texts.set("apps/kustomization.yaml", `resources: [${names.join(", ")}]\n`);
  return new Map(
    [...texts].map(([path, text]) => [path, { path, executable: false, content: new TextEncoder().encode(text) }]),
  );
}

test("a kustomization may inflate 20 charts, and a build 50 in total", () => {
  expect(kustomizeInputs(treeOf(1, 20), "apps").charts.length).toBe(20);
  expect(kustomizeInputs(treeOf(5, 10), "apps").charts.length).toBe(50);
  // A part that is included twice is inflated once.
  const twice = treeOf(2, 20);
  const text = "resources: [part-0, part-1, other]\n";
  twice.set("apps/kustomization.yaml", {
    path: "apps/kustomization.yaml",
    executable: false,
    content: new TextEncoder().encode(text),
  });
  twice.set("apps/other/kustomization.yaml", {
    path: "apps/other/kustomization.yaml",
    executable: false,
    content: new TextEncoder().encode("resources: [../part-0]\n"),
  });
  expect(kustomizeInputs(twice, "apps").charts.length).toBe(40);
});

test("more charts are refused with field, number and remedy, before one of them is rendered", () => {
  expect(() => kustomizeInputs(treeOf(1, 21), "apps")).toThrow(
    "apps/part-0/kustomization.yaml, helmCharts: has 21 charts, more than 20; render some of them by templates of their own",
  );
  expect(() => kustomizeInputs(treeOf(3, 20), "apps")).toThrow(
    "apps/part-0/kustomization.yaml, helmCharts: brings the charts in this template's kustomizations to 60, more than 50; render some of them by templates of their own",
  );
});

test("the limit of charts also holds for a folder of several kustomizations, which are built one by one", async () => {
  const files = treeOf(3, 20);
  files.delete("apps/kustomization.yaml");
  let rendered = 0;
  /** The outputs of Helm and kustomize do not matter here. */
  const helm: HelmRunner = {
    template: async () => {
      rendered += 1;
      return { outputs: ["", ""] };
    },
  };
  const kustomize: KustomizeRunner = {
    build: async ({ path, inflate }) => {
      for (const chart of kustomizeInputs(files, path).charts) await inflate?.(chart);
      return "";
    },
  };
  await expect(renderObjects({ files: [...files.values()], path: "apps" }, { kustomize, helm })).rejects.toThrow(
    "apps/part-2/kustomization.yaml, helmCharts[10]: brings the charts in this template's kustomizations to 51, more than 50; render some of them by templates of their own",
  );
  expect(rendered).toBe(50);
});
