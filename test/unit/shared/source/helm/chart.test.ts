import { expect, test } from "vitest";
import { chartFolders } from "#shared/source/helm/chart-folders.ts";

test.each([
  ["none", ["a.yaml", "deploy/kustomization.yaml"], []],
  ["the artifact itself", ["Chart.yaml", "templates/a.yaml"], ["."]],
  ["several", ["b/Chart.yaml", "a/x/Chart.yaml"], ["a/x", "b"]],
  [
    "a chart without its dependencies",
    ["a/Chart.yaml", "a/charts/b/Chart.yaml", "a/charts/b/charts/c/Chart.yaml"],
    ["a"],
  ],
  ["a chart at the root without its dependencies", ["Chart.yaml", "charts/b/Chart.yaml"], ["."]],
  ["a folder that is called charts", ["charts/a/Chart.yaml", "x/charts/b/Chart.yaml"], ["charts/a", "x/charts/b"]],
  ["a file with a longer name", ["a/MyChart.yaml"], []],
])("the charts of an artifact: %s", (_legend, paths, expected) => {
  expect(chartFolders(paths.map((path) => ({ path })))).toEqual(expected);
});
