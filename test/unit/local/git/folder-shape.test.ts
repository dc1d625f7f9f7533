import { describe, expect, test } from "vitest";
import { shapeOf } from "#local/git/folder-shape.ts";

const threeRings = [
  { name: "canary-1", labels: { ring: "canary" } },
  { name: "early-1", labels: { ring: "early" } },
  { name: "broad-1", labels: { ring: "broad" } },
];
const own = [{ name: "minikube", labels: {} }];

function shapeIn(
  paths: readonly string[],
  folder: string,
  clusters: readonly { name: string; labels: object }[] = own,
) {
  return shapeOf({ paths, folder, clusters: clusters as typeof threeRings, where: "commit 1234 of shop" });
}

describe("the shape of a folder in a repository", () => {
  test.each([
    { of: "manifests", paths: ["deploy/web.yaml", "README.md"], folder: "deploy/", path: "deploy" },
    { of: "manifests of the root", paths: ["web.yaml"], folder: ".", path: "." },
    { of: "a kustomization", paths: ["k8s/kustomization.yml", "k8s/base/a.yaml"], folder: "./k8s", path: "k8s" },
    { of: "a chart", paths: ["c/Chart.yaml", "c/templates/a.yaml"], folder: "c", path: "c", isChart: true },
    { of: "the only chart", paths: ["c/shop/Chart.yaml", "c/README.md"], folder: "c", path: "c/shop", isChart: true },
    {
      of: "a chart with the charts that it needs",
      paths: ["c/Chart.yaml", "c/charts/redis/Chart.yaml"],
      folder: "c",
      path: "c",
      isChart: true,
    },
  ])("a folder is recognised as $of", ({ paths, folder, path, isChart = false }) => {
    expect(shapeIn(paths, folder)).toMatchObject({ path, isChart });
  });

  const overlays = (...names: readonly string[]) => [
    "deploy/base/web.yaml",
    ...names.map((name) => `deploy/overlays/${name}/kustomization.yaml`),
  ];
  const ringPath = "deploy/overlays/{{ cluster.labels.ring }}";

  test.each([
    { folder: "deploy", paths: overlays("canary", "early", "broad", "dev"), path: ringPath },
    { folder: "deploy/overlays", paths: overlays("canary", "early", "broad"), path: ringPath },
    {
      folder: "deploy",
      paths: overlays("canary-1", "early-1", "broad-1"),
      path: "deploy/overlays/{{ cluster.name }}",
    },
    { folder: ringPath, paths: overlays("canary", "early", "broad"), path: ringPath },
  ])(
    "the folder $folder has a part for each ring or cluster, and becomes the path $path",
    ({ folder, paths, path }) => {
      expect(shapeIn(paths, folder, threeRings).path).toBe(path);
    },
  );

  test.each([
    { why: "that does not exist", paths: ["deploy/a.yaml"], folder: "dep", words: "has no folder dep; it has deploy" },
    { why: "that is a file", paths: ["deploy/a.yaml"], folder: "deploy/a.yaml", words: "a file; give its folder" },
    { why: "that has no manifests", paths: ["docs/a.md"], folder: "docs", words: "it contains no manifest" },
    {
      why: "that is inside of a chart",
      paths: ["c/Chart.yaml", "c/templates/a.yaml"],
      folder: "c/templates",
      words: "inside the Helm chart c; give the chart: --path c",
    },
    {
      why: "that has several charts",
      paths: ["c/a/Chart.yaml", "c/b/Chart.yaml"],
      folder: "c",
      words: "the Helm charts c/a, c/b; give one of them: --path c/a",
    },
    {
      why: "that has no overlay for the cluster",
      paths: overlays("dev", "prod"),
      folder: "deploy",
      words:
        "has the overlays dev, prod, but not one for each of minikube; give one of them: --path deploy/overlays/dev",
    },
    {
      why: "that has no part for one of the rings",
      paths: overlays("canary", "early"),
      folder: ringPath,
      clusters: threeRings,
      words: "has no folder deploy/overlays/broad",
    },
    {
      why: "whose chart is in a folder with the name of an expression",
      paths: ["deploy/{{ cluster.values.token }}/Chart.yaml"],
      folder: "deploy",
      words: "contains {{ }}, which marks an expression in a path; rename the folder in the repository",
    },
    {
      why: "whose chart is in a folder with the name of an overlay's expression",
      paths: ["deploy/{{ cluster.labels.ring }}/Chart.yaml"],
      folder: "deploy",
      words: "; rename the folder in the repository",
    },
    {
      why: "with an unknown expression in its path",
      paths: overlays("canary"),
      folder: "deploy/{{ cluster.ring }}",
      words: "is not an expression that Starling knows",
    },
    {
      why: "with a label in its path that no cluster has",
      paths: overlays("canary"),
      folder: ringPath,
      words: "cluster minikube has no cluster.labels.ring",
    },
  ])("a folder $why is refused", ({ paths, folder, words, clusters = own }) => {
    expect(() => shapeIn(paths, folder, clusters)).toThrow(words);
    expect(() => shapeIn(paths, folder, clusters)).toThrow(`--path is ${folder}: `);
  });

  /** A search of all folders for each folder took 5 s for 40,000 folders, and a minute for these. */
  test("a repository of 120,000 folders is searched once", () => {
    const paths = Array.from({ length: 120_000 }, (_, index) => `deploy/${index}/web.yaml`);
    expect(shapeIn(paths, "deploy")).toMatchObject({ path: "deploy", description: "manifests" });
    expect(shapeIn([...paths, "deploy/minikube/kustomization.yaml"], "deploy")).toMatchObject({
      path: "deploy/{{ cluster.name }}",
    });
  });
});
