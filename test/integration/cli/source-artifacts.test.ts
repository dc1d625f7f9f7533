/** `starling source` with the real API and blobs behind presigned URLs. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { packArtifact } from "#shared/adapters/render/artifact-archive.ts";
import { blobKeys } from "#shared/fleet/blob-keys.ts";
import { revisionRow } from "#shared/fleet/rows/revision-row.ts";
import { treeDigest } from "#shared/source/tree-listing.ts";
import { type CliFixture, fleet, startCliFixture } from "#test/integration/cli/cli-fixture.ts";

let cli: CliFixture;
const source = { namespace: "payments", name: "app" };
const commits = ["a", "b"].map((digit) => digit.repeat(40));
const archives: Uint8Array[] = [];
const digests: string[] = [];

beforeAll(async () => {
  cli = await startCliFixture();
  cli.write("fleet.yaml", fleet);
  expect(await cli.run("apply -f fleet.yaml -q --yes")).toMatchObject({ code: 0 });
  for (const [index, commit] of commits.entries()) {
    const files = [{ path: "a.yaml", executable: false, content: Buffer.from(`a: ${index}\n`) }];
    const [digest, archive] = [treeDigest(files), await packArtifact(files)];
    digests.push(digest);
    archives.push(archive);
    await cli.blobs.overwrite(blobKeys.artifact(digest), archive);
    const at = `2026-11-2${index}T06:00:00.000Z`;
    const about = { subject: `Change ${index}`, author: "Ana", origin: "https://github.com/acme/app" };
    const artifact = {
      revision: `main@sha1:${commit}`,
      digest,
      sizeBytes: archive.length,
      files: 1,
      storedAt: at,
      ...about,
    };
    await cli.table.write([{ put: revisionRow(source, artifact, at) }]);
  }
});
afterAll(() => cli.stop());

test("the artifacts are listed, the newest first", async () => {
  const { code, out } = await cli.run("source artifacts app");
  expect(code).toBe(0);
  const lines = out.trimEnd().split("\n");
  expect(lines[0]).toMatch(/^REVISION +SINCE +AGE +SIZE +VERIFIED +DIGEST +ORIGIN$/);
  expect(lines.slice(1).map((line) => line.split(/\s+/)[0])).toEqual(["main@sha1:bbbbbbb", "main@sha1:aaaaaaa"]);
  const wide = await cli.run("source artifacts app -o wide");
  expect(wide.out).toContain(blobKeys.artifact(digests[0] ?? ""));
});

test.each([
  ["", 1],
  ["--revision main", 1],
  [`--revision ${commits[0]}`, 0],
  ["--as-of 2026-11-20T12:00:00Z", 0],
  ["--as-of 2026-11-20T12:00:00.5+05:00", 0],
])("`source resolve app %s` finds the artifact [source.reading.named]", async (flags, index) => {
  const found = await cli.run(`source resolve app -o json ${flags}`.trimEnd());
  expect(found).toMatchObject({ code: 0 });
  expect(JSON.parse(found.out)).toMatchObject({ digest: digests[index], revision: `main@sha1:${commits[index]}` });
  const { out } = await cli.run(`source resolve app ${flags}`.trimEnd());
  expect(out).toContain(`Digest:      ${digests[index]}`);
});

test("an artifact is written into a file, as it is stored [source.reading.url]", async () => {
  const file = join(cli.folder, "app.tar.gz");
  const { code, err } = await cli.run(`source resolve app --revision ${commits[0]} --download ${file}`);
  expect({ code, err }).toMatchObject({ code: 0, err: expect.stringContaining("1 file, as the digest says") });
  expect(Buffer.compare(readFileSync(file), Buffer.from(archives[0] ?? ""))).toBe(0);
});

test("a blob with other files than its digest says is not written [source.artifact.checked]", async () => {
  const [, digest = ""] = digests;
  await cli.blobs.overwrite(blobKeys.artifact(digest), archives[0] ?? new Uint8Array());
  const file = join(cli.folder, "other.tar.gz");
  const { code, err } = await cli.run(`source resolve app --download ${file}`);
  expect({ code, err }).toMatchObject({ code: 3, err: expect.stringContaining(`expected ${digest}`) });
  expect(existsSync(file)).toBe(false);
});

test.each([
  ["--as-of yesterday", '--as-of is "yesterday"; expected a time or a duration'],
  ["--as-of 2h --revision main", "--revision and --as-of are given both"],
  ["--as-of 2026-11-19T00:00:00Z", "its revisions are known since 2026-11-20T06:00:00.000Z"],
  ["--as-of 2026-02-30T00:00:00Z", '--as-of is "2026-02-30T00:00:00Z"; expected a time or a duration'],
  ["--revision 2026-02-30T00:00:00Z", "2026-02-30T00:00:00Z is no time: no month has such a day"],
  ["--revision v9", "Source payments/app had no revision v9"],
  ["--revision v9", "next: starling history source/app -n payments"],
])("`source resolve app %s` is refused", async (flags, says) => {
  const { code, err } = await cli.run(`source resolve app ${flags}`);
  expect(code).not.toBe(0);
  expect(err).toContain(says);
});
