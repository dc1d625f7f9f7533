import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import { foreignManifests } from "#local/git/foreign-manifests.ts";
import { findRepository } from "#local/git/user-repository.ts";

const files = {
  "apps/a.yaml": 'apiVersion: "argoproj.io/v1alpha1"\nkind: Application\nmetadata: {name: a}\n---\nkind: Odd\n',
  "apps/b.yaml": "# theirs\napiVersion: kustomize.toolkit.fluxcd.io/v1\n# what it is\nkind: Kustomization\n",
  "apps/c.yaml": "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: c}\n",
  "ours/a.yaml":
    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n---\napiVersion: argoproj.io/v1alpha1\nkind: Rollout\n",
  "clusters/one/a.yaml": "apiVersion: fleet.cattle.io/v1alpha1\nkind: GitRepo\n",
  "empty/readme.md": "apiVersion: argoproj.io/v1alpha1\nkind: Application\n",
};

async function repository(also: (folder: string) => void = () => {}) {
  const folder = mkdtempSync(join(tmpdir(), "starling-theirs-"));
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(join(folder, dirname(name)), { recursive: true });
    writeFileSync(join(folder, name), text);
  }
  const git = (...args: readonly string[]) =>
    execFileSync("git", ["-C", folder, "-c", "user.name=a", "-c", "user.email=a@example.com", ...args]);
  git("init", "--quiet");
  git("add", "-A");
  also(folder);
  git("commit", "--quiet", "-m", "a");
  return findRepository({ repo: folder });
}

test("each kind of another tool in a folder of a commit is named once, and other kinds are not", async () => {
  const found = await repository();
  const named = (path: string) => foreignManifests(found, path);
  expect(await named("apps")).toEqual(["Application for Argo CD", "Kustomization for Flux"]);
  expect(await named("ours")).toEqual([]);
  expect(await named("empty")).toEqual([]);
  expect(await named("clusters/{{ cluster.name }}")).toEqual(["GitRepo for Fleet"]);
  expect(await named(".")).toHaveLength(3);
});

test("a submodule, a link and a huge file with names of manifests are ignored", async () => {
  const found = await repository((folder) => {
    const add = (mode: string, id: string, path: string) =>
      execFileSync("git", ["-C", folder, "update-index", "--add", "--cacheinfo", `${mode},${id},${path}`]);
    const stored = (text: string) =>
      execFileSync("git", ["-C", folder, "hash-object", "-w", "--stdin"], { input: text, encoding: "utf8" }).trim();
    add("160000", "1".repeat(40), "apps/sub.yaml");
    add("120000", stored("apiVersion: argoproj.io/v1alpha1\nkind: AppProject\n"), "apps/link.yaml");
    add(
      "100644",
      stored(`apiVersion: argoproj.io/v1alpha1\nkind: AppProject\n${"#\n".repeat(600_000)}`),
      "apps/huge.yaml",
    );
    add("100755", stored("apiVersion: argoproj.io/v1alpha1\nkind: ApplicationSet\n"), "apps/\n.yaml");
  });
  const expected = ["ApplicationSet for Argo CD", "Application for Argo CD", "Kustomization for Flux"];
  expect(await foreignManifests(found, "apps")).toEqual(expected);
});
