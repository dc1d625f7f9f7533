import { expect, test } from "vitest";
import { LastArtifact } from "#functions/build/last-artifact.ts";
import { packArtifact } from "#shared/adapters/render/artifact-archive.ts";
import { treeDigest } from "#shared/source/tree-listing.ts";

async function artifact(text: string) {
  const files = [{ path: "a.yaml", executable: false, content: new TextEncoder().encode(text) }];
  return {
    artifactDigest: treeDigest(files),
    artifactUrl: `https://localhost/${text}`,
    bytes: await packArtifact(files),
  };
}

test("an artifact is read once, replaced by the next one, and read again after a failure", async () => {
  const [a, b] = [await artifact("a"), await artifact("b")];
  const read: string[] = [];
  const failing = new Set<string>();
  const last = new LastArtifact({
    download: async (url) => {
      read.push(url.slice(-1));
      if (failing.has(url)) throw new Error("it does not answer");
      return (url === a.artifactUrl ? a : b).bytes;
    },
    upload: async () => {},
  });
  const first = await last.read(a);
  expect((await last.read({ ...a, artifactUrl: "https://localhost/signed-anew" })).files).toBe(first.files);
  await Promise.all([last.read(b), last.read(b)]);
  expect(read).toEqual(["a", "b"]);

  failing.add(a.artifactUrl);
  await expect(last.read(a)).rejects.toThrow("it does not answer");
  failing.clear();
  expect(await last.read(a)).toEqual(first);
  // The bytes at this URL are not the artifact of this digest, however often it is asked for.
  for (let time = 0; time < 2; time++) {
    await expect(last.read({ ...b, artifactUrl: a.artifactUrl })).rejects.toMatchObject({ code: "ArtifactInvalid" });
  }
  expect(read).toEqual(["a", "b", "a", "a", "a", "a"]);
});

test("the artifacts of values are also read once, and dropped when a job does not need them", async () => {
  const [chart, values, more] = [await artifact("chart"), await artifact("values"), await artifact("more")];
  const read: string[] = [];
  const last = new LastArtifact({
    download: async (url) => {
      read.push(url.slice("https://localhost/".length));
      return [chart, values, more].find(({ artifactUrl }) => artifactUrl === url)?.bytes ?? new Uint8Array();
    },
    upload: async () => {},
  });
  const textOf = (files: readonly { readonly content: Uint8Array }[] = []) =>
    files.map(({ content }) => new TextDecoder().decode(content));
  const { files, others } = await last.read({ ...chart, besides: [values, more] });
  expect(textOf(files)).toEqual(["chart"]);
  expect([...others].map(([digest, of]) => [digest, ...textOf(of)])).toEqual([
    [values.artifactDigest, "values"],
    [more.artifactDigest, "more"],
  ]);
  await last.read({ ...chart, besides: [more, values] });
  expect(read).toEqual(["chart", "values", "more"]);
  await last.read({ ...chart, besides: [more] });
  await last.read({ ...chart, besides: [values] });
  expect(read).toEqual(["chart", "values", "more", "values"]);
});
