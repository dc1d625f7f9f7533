/** The transformer of the examples: the real program, between two Sources of an API behind its front. */
import { createHash } from "node:crypto";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, expect, test } from "vitest";
import { type CliFixture, principal, startCliFixture } from "#test/integration/cli/cli-fixture.ts";
import { type FileServer, startFileServer } from "#test/support/file-server.ts";
import { SourceWorld } from "#test/support/source-world.ts";
import { ranTo, startNode } from "#test/support/started-process.ts";
import { tarGz } from "#test/support/tar-gz.ts";

const root = fileURLToPath(new URL("../../../", import.meta.url));
const pod = (image: string) => `apiVersion: v1\nkind: Pod\nspec:\n  containers:\n    - image: "${image}" # pinned\n`;

let cli: CliFixture;
let server: FileServer;
let packed: Buffer;

beforeEach(async () => {
  cli = await startCliFixture();
  packed = await tarGz([
    { name: "deploy/web.yaml", body: pod("ghcr.io/acme/web:1") },
    { name: "deploy/own.yaml", body: pod("mirror.acme.example/own:1") },
    { name: "deploy/notes.txt", body: "image: ghcr.io/acme/web:1\n" },
  ]);
  server = await startFileServer(() => ({ body: packed }));
});
afterEach(async () => {
  await cli.stop();
  await server.stop();
});

async function sourceWorld(name: string, spec: object): Promise<SourceWorld> {
  const document = {
    apiVersion: "starling.dev/v1alpha1",
    kind: "Source",
    metadata: { name, namespace: "payments" },
    spec,
  };
  cli.write("source.yaml", JSON.stringify(document));
  expect(await cli.run("apply -f source.yaml")).toMatchObject({ code: 0 });
  const world = new SourceWorld(cli.table, { blobs: cli.blobs, source: { namespace: "payments", name } });
  world.now = new Date();
  return world;
}

const words = ["--from", "upstream", "--to", "mirrored", "-n", "payments", "--mirror", "mirror.acme.example"];

function transform(given: readonly string[] = words) {
  const config = join(cli.folder, ".config", "config.json");
  const starling = `${process.execPath} ${join(root, "cli", "starling.mjs")}`;
  const program = join(root, "examples", "transformer", "mirror.mjs");
  return ranTo(
    startNode([program, ...given, "--starling", starling], {
      cwd: cli.folder,
      env: { STARLING_CONFIG: config, HOME: cli.folder, PATH: process.env.PATH },
    }),
  );
}

test("the images of an artifact are replaced, its origin is kept, and a second run changes nothing [source.reading.transformer]", async () => {
  const sha256 = createHash("sha256").update(packed).digest("hex");
  const url = `${server.url}/shop.tar.gz`;
  const upstream = await sourceWorld("upstream", { archive: { url, sha256 } });
  const mirrored = await sourceWorld("mirrored", { external: { principals: [principal] } });
  await upstream.resolve();

  expect(await transform()).toMatchObject({ code: 0, out: expect.stringContaining("pushed (3 files)") });
  const { artifact } = (await mirrored.resolve()).status;
  expect(artifact?.origin).toBe(`sha256:${sha256} of ${url}`);
  const files = (await mirrored.files()).map(({ path, content }) => [path, Buffer.from(content).toString()]);
  expect(Object.fromEntries(files)).toEqual({
    "deploy/web.yaml": pod("mirror.acme.example/ghcr.io/acme/web:1"),
    "deploy/own.yaml": pod("mirror.acme.example/own:1"),
    "deploy/notes.txt": "image: ghcr.io/acme/web:1\n",
  });
  const shown = await cli.run("source resolve mirrored -o json");
  expect(JSON.parse(shown.out)).toMatchObject({ origin: `sha256:${sha256} of ${url}` });

  expect(await transform()).toMatchObject({ code: 0, out: expect.stringContaining("was pushed before") });
  expect((await mirrored.resolve()).status.artifact).toEqual(artifact);
});

test("an option that is missing is named, and nothing is asked", async () => {
  const before = cli.requests();
  expect(await transform(words.slice(0, -2))).toMatchObject({
    code: 2,
    err: expect.stringContaining("--mirror is missing"),
  });
  expect(cli.requests()).toBe(before);
});

test("an origin of several lines is refused by its field, and nothing is pushed", async () => {
  const mirrored = await sourceWorld("mirrored", { external: { principals: [principal] } });
  cli.write("a.yaml", "a: 1\n");
  const refused = await cli.run(["source", "push", "mirrored", "--as", "1", "--dir", ".", "--origin", "a\nb"]);
  expect(refused).toMatchObject({ code: 2, err: expect.stringContaining("origin: must be one line") });
  expect((await mirrored.resolve()).status.conditions).toContainEqual(
    expect.objectContaining({ type: "Ready", reason: "UpstreamNotFound" }),
  );
});
