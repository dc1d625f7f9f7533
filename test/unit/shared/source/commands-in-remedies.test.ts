import { expect, test } from "vitest";
import { readChart } from "#shared/source/helm/chart.ts";
import { readManifests } from "#shared/source/manifests.ts";

const bytes = (text: string) => new TextEncoder().encode(text);

test("a command in a remedy quotes the name of a repository's file as one word of a shell", () => {
  const object = { apiVersion: "starling.dev/v1alpha1", kind: "SyncGroup", metadata: { name: "a" } };
  expect(() => readManifests([{ file: "k/a;$(id) 'b.yaml", line: 1, document: 1, object }])).toThrow(
    "`starling apply -f 'k/a;$(id) '\\''b.yaml'`, and move the file out of the path",
  );
});

test("a command in a remedy quotes the name of a chart's folder as one word of a shell", () => {
  const chart = "name: a\nversion: 1.0.0\ndependencies: [{name: cache, version: 1.0.0}]\n";
  expect(() => readChart("apps/$(id)", new Map([["Chart.yaml", bytes(chart)]]))).toThrow(
    "run `helm dependency build 'apps/$(id)'` and commit the files that it creates there",
  );
});
