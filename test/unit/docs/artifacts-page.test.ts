/** docs/artifacts.md: its program computes the digest of what Starling packs. */
import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { packArtifact } from "#shared/adapters/render/artifact-archive.ts";
import { type ListedFile, treeDigest } from "#shared/source/tree-listing.ts";

const page = readFileSync("docs/artifacts.md", "utf8");
const [, program = ""] = /```python\n(.*?)```/s.exec(page) ?? [];
const hasPython = spawnSync("python3", ["--version"]).status === 0;

const file = (path: string, content: string | Uint8Array, executable = false): ListedFile => ({
  path,
  executable,
  content: Buffer.from(content),
});

test.runIf(hasPython).each<[string, readonly ListedFile[]]>([
  ["a plain folder", [file("deploy/a.yaml", "a: 1\n"), file("deploy/b.yaml", "b: 2\n")]],
  [
    "files in an order that is not that of UTF-16",
    [file("deploy/\uff5e.yaml", "1"), file("deploy/\u{1f600}.yaml", "2"), file("deploy/Z.yaml", "3")],
  ],
  [
    "names with quotes, spaces and letters of other languages",
    [file('a "b" \\ é.yaml', "x"), file("日本/語.yaml", "y")],
  ],
  [
    "executable and empty files, and bytes that are no text",
    [file("run.sh", "#!/bin/sh\n", true), file("empty", ""), file("raw", new Uint8Array([0, 255, 10]))],
  ],
  ["a path that is longer than a header of tar", [file(`${"long/".repeat(60)}a.yaml`, "a: 1\n")]],
])("the program of the page computes the digest of %s [source.artifact.same-files-same-digest]", async (_, files) => {
  const folder = mkdtempSync(join(tmpdir(), "starling-digest-"));
  try {
    writeFileSync(join(folder, "digest.py"), program);
    writeFileSync(join(folder, "a.tar.gz"), await packArtifact(files));
    const out = execFileSync("python3", [join(folder, "digest.py"), join(folder, "a.tar.gz")], { encoding: "utf8" });
    expect(out.trim()).toBe(treeDigest(files));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
