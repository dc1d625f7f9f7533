import { gunzipSync, gzipSync } from "node:zlib";
import { type Header, pack } from "tar-stream";
import { describe, expect, test } from "vitest";
import { packArtifact, readTarGz, unpackArtifact } from "#shared/adapters/render/artifact-archive.ts";
import { treeDigest } from "#shared/source/tree-listing.ts";

type Entry = Pick<Header, "name"> & Partial<Header>;

function file(path: string, content: string, executable = false) {
  return { path, executable, content: new TextEncoder().encode(content) };
}

const files = [
  file("b/run.sh", "echo", true),
  file("a.yaml", "a: 1"),
  file(`${"long/".repeat(40)}name.yaml`, "é"),
  file("empty", ""),
];

async function tarOf(entries: readonly (readonly [header: Entry, content: string])[]): Promise<Uint8Array> {
  const archive = pack();
  for (const [header, content] of entries) archive.entry(header, content);
  archive.finalize();
  const chunks: Buffer[] = [];
  for await (const chunk of archive) chunks.push(chunk as Buffer);
  return gzipSync(Buffer.concat(chunks));
}

describe("an artifact", () => {
  test("an artifact is unpacked to the files that were packed", async () => {
    const unpacked = await unpackArtifact(await packArtifact(files), treeDigest(files));
    expect(unpacked.toSorted((a, b) => (a.path < b.path ? -1 : 1))).toEqual(
      files.toSorted((a, b) => (a.path < b.path ? -1 : 1)),
    );
  });

  test("the same files give the same bytes in any order [source.artifact.same-files-same-digest]", async () => {
    expect(await packArtifact(files)).toEqual(await packArtifact(files.toReversed()));
  });

  test("an archive with other content than its digest is refused [source.artifact.checked]", async () => {
    const archive = await packArtifact([file("a.yaml", "a: 2")]);
    await expect(unpackArtifact(archive, treeDigest([file("a.yaml", "a: 1")]))).rejects.toMatchObject({
      code: "ArtifactInvalid",
    });
  });

  const hostile: readonly (readonly [
    legend: string,
    entries: readonly (readonly [Entry, string])[],
    reason: string,
  ])[] = [
    ["an absolute name", [[{ name: "/etc/passwd" }, "x"]], "is an absolute path"],
    ["a name that climbs", [[{ name: "a/../../b" }, "x"]], "leads out of the archive"],
    ["a name that stays where it is", [[{ name: "a/./b" }, "x"]], "leads out of the archive"],
    ["a name with an empty part", [[{ name: "a//b" }, "x"]], "leads out of the archive"],
    ["no name", [[{ name: "" }, "x"]], "is not a file name"],
    ["a symbolic link", [[{ name: "a", type: "symlink", linkname: "/etc/passwd" }, ""]], "is a symlink"],
    ["a hard link", [[{ name: "a", type: "link", linkname: "b" }, ""]], "is a link"],
    ["a device", [[{ name: "a", type: "character-device" }, ""]], "is a character-device"],
    ["a folder entry", [[{ name: "a", type: "directory" }, ""]], "is a directory"],
    [
      "a name twice",
      [
        [{ name: "a" }, "x"],
        [{ name: "a" }, "y"],
      ],
      "occurs twice",
    ],
    ["a backslash", [[{ name: "a\\b" }, "x"]], "is not a file name"],
    ["a very long name", [[{ name: `${"d/".repeat(600)}x` }, "x"]], "is longer than 1024 bytes"],
  ];
  test.each(hostile)("an archive with %s is refused [source.artifact.unpacked]", async (_legend, entries, reason) => {
    await expect(unpackArtifact(await tarOf(entries), "sha256:0")).rejects.toThrow(reason);
  });

  test("an archive may have hidden files, and names up to the limit", async () => {
    const longest = `${"d/".repeat(511)}xy`;
    const fine = [file(longest, "x"), file("..a/.b", "y")];
    const unpacked = await unpackArtifact(await packArtifact(fine), treeDigest(fine));
    expect(unpacked.map(({ path }) => path)).toEqual(["..a/.b", longest]);
  });

  test("an archive that would grow without bound is refused before it does [source.artifact.unpacked]", async () => {
    const bomb = gzipSync(Buffer.alloc(64 * 1024 * 1024));
    expect(gunzipSync(bomb)).toHaveLength(64 * 1024 * 1024);
    await expect(unpackArtifact(bomb, "sha256:0")).rejects.toThrow("does not unpack within");
  });

  test("an archive with more than 20,000 files is refused", async () => {
    const many = Array.from({ length: 20_001 }, (_, index): readonly [Entry, string] => [{ name: `f${index}` }, ""]);
    await expect(unpackArtifact(await tarOf(many), "sha256:0")).rejects.toThrow("more than 20000 files");
  }, 60_000);

  test.each(["file", "directory"] as const)(
    "a %s whose size is no number is refused, and not waited for",
    async (type) => {
      const tar = gunzipSync(await tarOf([[{ name: "a", type }, ""]]));
      // A size of the form that begins with 0x80 or 0xff.
      tar[124] = 0xe8;
      tar.fill(" ", 148, 156);
      const sum = tar.subarray(0, 512).reduce((all, byte) => all + byte, 0);
      tar.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148, "latin1");
      const read = readTarGz(gzipSync(tar), { folders: "passed over" });
      await expect(read).rejects.toMatchObject({ code: "ArchiveInvalid", message: '"a" has a size that is no number' });
    },
  );

  test("bytes that are not an archive are refused", async () => {
    await expect(unpackArtifact(new TextEncoder().encode("hello"), "sha256:0")).rejects.toThrow("does not unpack");
    await expect(unpackArtifact(gzipSync(Buffer.alloc(600, 7)), "sha256:0")).rejects.toThrow("not a tar archive");
  });
});
