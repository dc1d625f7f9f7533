import { describe, expect, test } from "vitest";
import { digestAt, folderDigests } from "#shared/source/folder-digests.ts";

type Texts = Readonly<Record<string, string>>;

function digestsOf(texts: Texts) {
  const files = Object.entries(texts).map(([path, text]) => ({ path, executable: false, content: Buffer.from(text) }));
  return folderDigests(files);
}

const repository: Texts = {
  "README.md": "hello, see ../there",
  "apps/a/a.yaml": "a",
  "apps/b/prod/kustomization.yaml": "resources: [../base]\ncomponents:\n- ../../../components/x",
  "apps/b/base/kustomization.yml": "resources:\n- b.yaml",
  "apps/b/base/b.yaml": "b",
  "apps/b/other/c.yaml": "c",
  "components/x/kustomization.yaml": "kind: Component\npatches: [{ path: '../patches/p.yaml' }]",
  "components/patches/p.yaml": "p",
  "components/y/y.yaml": "y",
  "charts/web/Chart.yaml": "name: web",
  "charts/web/templates/a.yaml": '{{ include "../a" . }}',
  "scripts/run.yaml": "cd ../..",
};

describe("the files that count for a template's path", () => {
  const cases: readonly (readonly [path: string, changed: Texts, counts: boolean])[] = [
    ["apps/a", { "apps/a/a.yaml": "A" }, true],
    ["apps/a", { "apps/a/new.yaml": "n" }, true],
    ["apps/a", { "apps/b/base/b.yaml": "B", "README.md": "other", "scripts/run.yaml": "x" }, false],
    ["apps", { "apps/b/other/c.yaml": "C" }, true],
    ["apps", { "components/y/y.yaml": "Y", "README.md": "other" }, false],
    ["apps/b/prod", { "apps/b/base/b.yaml": "B" }, true],
    ["apps/b/prod", { "components/x/kustomization.yaml": "kind: Component" }, true],
    ["apps/b/prod", { "components/patches/p.yaml": "P" }, true],
    ["apps/b/prod", { "apps/b/other/c.yaml": "C", "components/y/y.yaml": "Y", "apps/a/a.yaml": "A" }, false],
    ["apps/b/base", { "apps/b/prod/kustomization.yaml": "resources: [../base]" }, false],
    ["charts/web", { "charts/web/templates/a.yaml": "x" }, true],
    ["charts/web", { "apps/a/a.yaml": "A" }, false],
    ["charts/web/templates", { "charts/web/Chart.yaml": "name: other" }, true],
    ["scripts", { "apps/a/a.yaml": "A" }, false],
    ["apps/missing", { "apps/missing/a.yaml": "m" }, true],
    ["apps/missing", { "apps/a/a.yaml": "A" }, true],
  ];
  test.each(cases)("for the path %s, a change of %j counts: %s", (path, changed, counts) => {
    const [before, after] = [digestsOf(repository), digestsOf({ ...repository, ...changed })];
    expect(digestAt(path, before)).toBeDefined();
    expect(digestAt(path, after) !== digestAt(path, before)).toBe(counts);
  });

  test("the root and an unknown folder at the top have no digest of their own, so that the whole repository counts", () => {
    const digests = digestsOf(repository);
    expect(["", ".", "missing/x"].map((path) => digestAt(path, digests))).toEqual([undefined, undefined, undefined]);
  });

  test("the mode of a file counts", () => {
    const at = (executable: boolean) => folderDigests([{ path: "a/run.sh", executable, content: Buffer.from("") }]).a;
    expect(at(true)).not.toBe(at(false));
  });
});

describe("the whole repository counts if bytes do not show which files are used", () => {
  const base = { "base/a.yaml": "a", "other/b.yaml": "b" };
  const cases: readonly (readonly [legend: string, files: Texts])[] = [
    ["a path with escapes of YAML", { "app/kustomization.yaml": 'resources: ["\\x2e\\x2e/base"]' }],
    ["a path over two lines", { "app/kustomization.yaml": 'resources: [".\\\n  ./base"]' }],
    ["a path to the root", { "app/kustomization.yaml": "resources: [..]" }],
    ["a path out of the root", { "app/kustomization.yaml": "resources: [../../base]" }],
    ["a path that is not there, in the root", { "app/kustomization.yaml": "resources: ['../my base']" }],
    [
      "a generator that leads out",
      { "app/kustomization.yaml": "generators: [g.txt]", "app/g.txt": "files: [../base/a.yaml]" },
    ],
    [
      "a generator elsewhere that leads out",
      { "app/kustomization.yaml": "generators: [../g.txt]", "g.txt": "files: [../base/a.yaml]" },
    ],
    [
      "a base that a plain folder's generator leads out of",
      { "app/kustomization.yaml": "generators: [../gen]", "gen/g.yaml": "files: ['../base/a.yaml']" },
    ],
    [
      "too many paths",
      { "app/kustomization.yaml": Array.from({ length: 101 }, (_, at) => `- ../base/${at}`).join("\n") },
    ],
  ];
  test.each(cases)("the whole repository counts with %s", (_legend, files) => {
    expect(digestAt("app", digestsOf({ ...base, ...files }))).toBeUndefined();
  });

  test("for a name with spaces the folder around it counts", () => {
    const files = { "in/app/kustomization.yaml": "resources: ['../my base/x']", "in/my base/x/a.yaml": "a", ...base };
    const at = (more: Texts) => digestAt("in/app", digestsOf({ ...files, ...more }));
    expect(at({ "in/my base/x/a.yaml": "A" })).not.toBe(at({}));
    expect(at({ "other/b.yaml": "B" })).toBe(at({}));
    const beside = { "in/my/a.yaml": "a", "in/my, own/a.yaml": "a" };
    expect(at({ ...beside, "in/my base/x/a.yaml": "A" })).not.toBe(at(beside));
  });

  test("kustomizations that refer to each other are read once", () => {
    const files = { "a/kustomization.yaml": "resources: [../b]", "b/kustomization.yaml": "resources: [../a]", ...base };
    const at = (more: Texts) => digestAt("a", digestsOf({ ...files, ...more }));
    expect(at({ "b/x.yaml": "x" })).not.toBe(at({}));
    expect(at({ "other/b.yaml": "B" })).toBe(at({}));
  });
});

test("the deepest of too many folders are not recorded, and their parents count instead", () => {
  const many = Array.from({ length: 3000 }, (_, at) => [`apps/${"x".repeat(20)}-${at}/a.yaml`, "a"] as const);
  const digests = digestsOf(Object.fromEntries([...many, ["infra/a.yaml", "a"]]));
  expect(Object.keys(digests).length).toBeLessThan(2000);
  expect(JSON.stringify(digests).length).toBeLessThan(120_000);
  expect(digestAt(`apps/${"x".repeat(20)}-999999`, digests)).toBe(digests.apps);
  expect(digests.infra).toBeDefined();
});
