import { expect, test } from "vitest";
import { nestedKustomizations } from "#shared/source/plain-files.ts";

function kustomizations(folders: readonly string[]) {
  return folders.map((folder) => ({
    path: `${folder}/kustomization.yaml`,
    executable: false,
    content: new Uint8Array(),
  }));
}

test("the topmost folders with a kustomization are built, each once and in their order", () => {
  const files = [...kustomizations(["b", "a/b", "a", "a-b", "a/c/d", "c/d/e", "c/d"]), ...kustomizations(["b"])];
  expect(nestedKustomizations(files, ".")).toEqual(["a", "a-b", "b", "c/d"]);
  expect(nestedKustomizations(files, "c")).toEqual(["c/d"]);
});

test("more kustomizations than a rendering has time for are refused before they are built", () => {
  const folders = (count: number) => Array.from({ length: count }, (_, index) => `apps/a${index}`);
  expect(nestedKustomizations(kustomizations(folders(1000)), "apps")).toHaveLength(1000);
  expect(() => nestedKustomizations(kustomizations(folders(1001)), "apps")).toThrow(
    /^apps: contains 1001 kustomizations, more than 1000; write several templates for parts of the folder/,
  );
});
