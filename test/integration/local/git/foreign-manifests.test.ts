import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import { foreignManifests } from "#local/git/foreign-manifests.ts";
import { repositoryPaths } from "#local/git/repository-paths.ts";
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

async function repository() {
  const folder = mkdtempSync(join(tmpdir(), "starling-theirs-"));
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(join(folder, dirname(name)), { recursive: true });
    writeFileSync(join(folder, name), text);
  }
  const git = (...args: readonly string[]) =>
    execFileSync("git", ["-C", folder, "-c", "user.name=a", "-c", "user.email=a@example.com", ...args]);
  git("init", "--quiet");
  git("add", "-A");
  git("commit", "--quiet", "-m", "a");
  return findRepository({ repo: folder });
}

test("kinds of another tool in a folder of a commit are named once each, and others are not", async () => {
  const found = await repository();
  const paths = await repositoryPaths(found);
  const named = (path: string) => foreignManifests(found, { path, paths });
  expect(await named("apps")).toEqual(["Application for Argo CD", "Kustomization for Flux"]);
  expect(await named("ours")).toEqual([]);
  expect(await named("empty")).toEqual([]);
  expect(await named("clusters/{{ cluster.name }}")).toEqual(["GitRepo for Fleet"]);
  expect(await named(".")).toHaveLength(3);
});
