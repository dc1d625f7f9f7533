import { createHash } from "node:crypto";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { createServer } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { pack } from "tar-stream";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { listenOnLoopback } from "#local/base/loopback-server.ts";
import { createTlsCertificate } from "#local/base/tls-certificate.ts";
import { downloadKubeAssets } from "#local/clusters/kube-assets-download.ts";
import { defined } from "#shared/base/defined.ts";

const architecture = process.arch === "x64" ? "amd64" : process.arch;
const platform = `${process.platform}-${architecture}`;

async function archiveOf(files: Readonly<Record<string, string>>): Promise<Buffer> {
  const tar = pack();
  for (const [name, content] of Object.entries(files)) tar.entry({ name, mode: 0o755 }, content);
  tar.finalize();
  const chunks: Buffer[] = [];
  for await (const chunk of tar) chunks.push(chunk as Buffer);
  return gzipSync(Buffer.concat(chunks));
}

const sha512 = (bytes: Buffer) => createHash("sha512").update(bytes).digest("hex");

/** What the server answers by path; a URL is a redirect there. */
const answers = new Map<string, Buffer | URL>();
const asked: string[] = [];
let close = async () => {};
let base = "";
let ca = "";
let folder = "";

beforeAll(async () => {
  const tls = await createTlsCertificate();
  ca = tls.cert;
  const server = createServer({ ...tls }, (request, response) => {
    const path = request.url ?? "";
    asked.push(path);
    const answer = answers.get(path);
    if (answer instanceof URL) response.writeHead(302, { location: answer.href }).end();
    else response.writeHead(answer === undefined ? 404 : 200).end(answer);
  });
  ({ origin: base, stop: close } = await listenOnLoopback(server));
});
afterAll(() => close());
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "starling-envtest-"));
  answers.clear();
  asked.length = 0;
});
afterEach(() => rm(folder, { recursive: true }));

interface Release {
  readonly version: string;
  readonly hash: string;
  readonly path: string;
}

function serveIndex(releases: readonly Release[]): void {
  const lines = releases.flatMap(({ version, hash, path }) => [
    `  ${version}:`,
    `    envtest-${version}-${platform}.tar.gz:`,
    `      hash: ${hash}`,
    `      selfLink: ${base}${path}`,
  ]);
  answers.set("/index.yaml", Buffer.from(["releases:", ...lines, ""].join("\n")));
}

const download = (version?: string) =>
  downloadKubeAssets({ folder, indexUrl: `${base}/index.yaml`, ca, ...defined({ version }) });

const programs = {
  "controller-tools/envtest/etcd": "#!/bin/sh\necho etcd\n",
  "controller-tools/envtest/kube-apiserver": "#!/bin/sh\necho kube-apiserver\n",
  "../../escaped": "no",
  "controller-tools/envtest/kubectl": "#!/bin/sh\necho kubectl\n",
};

describe("downloading what envtest downloads", () => {
  test("takes the newest release of the minor, follows redirects, keeps the programs, and asks once", async () => {
    const archive = await archiveOf(programs);
    const hash = sha512(archive);
    serveIndex([
      { version: "v1.36.9", hash: "none", path: "/old" },
      { version: "v1.36.10", hash, path: "/archive" },
      { version: "v1.36.11-rc.0", hash: "none", path: "/candidate" },
      { version: "v1.37.0", hash: "none", path: "/newer" },
    ]);
    answers.set("/archive", new URL(`${base}/elsewhere`));
    answers.set("/elsewhere", archive);

    const assets = await download();
    expect(assets.folder).toBe(join(folder, `v1.36.10-${platform}`));
    expect(await readdir(folder)).toEqual([`v1.36.10-${platform}`]);
    expect((await readdir(assets.folder)).sort()).toEqual(["etcd", "kube-apiserver", "kubectl"]);
    expect(await readFile(assets.kubeApiServer, "utf8")).toBe("#!/bin/sh\necho kube-apiserver\n");
    expect(assets.kubeControllerManager).toBeUndefined();

    expect(await download("v1.36.10")).toEqual(assets);
    expect(await download()).toEqual(assets);
    expect(asked).toEqual(["/index.yaml", "/archive", "/elsewhere", "/index.yaml"]);
  });

  test("two at once end with the same", async () => {
    const archive = await archiveOf(programs);
    serveIndex([{ version: "v1.36.2", hash: sha512(archive), path: "/archive" }]);
    answers.set("/archive", archive);
    const [one, other] = await Promise.all([download(), download()]);
    expect(one).toEqual(other);
    expect(await readdir(folder)).toEqual([`v1.36.2-${platform}`]);
  });

  const refused: readonly (readonly [string, (archive: Buffer) => string, Readonly<Record<string, string>>, RegExp])[] =
    [
      ["whose SHA-512 is another", () => "ab".repeat(64), programs, /has the SHA-512 [0-9a-f]{128}, but .* says abab/],
      ["without kube-apiserver", sha512, { "controller-tools/envtest/etcd": "x" }, /holds no etcd and kube-apiserver/],
    ];
  test.each(refused)("an archive %s is refused, and nothing of it stays", async (_what, hashOf, files, message) => {
    const archive = await archiveOf(files);
    serveIndex([{ version: "v1.36.2", hash: hashOf(archive), path: "/archive" }]);
    answers.set("/archive", archive);
    await expect(download()).rejects.toThrow(message);
    expect(await readdir(folder)).toEqual([]);
  });

  test("says what the index does not have", async () => {
    serveIndex([{ version: "v1.35.0", hash: "none", path: "/archive" }]);
    await expect(download()).rejects.toThrow(`${base}/index.yaml has no release of v1.36.x`);
    await expect(download("v1.36.1")).rejects.toThrow(`has no envtest-v1.36.1-${platform}.tar.gz`);
    answers.set("/index.yaml", Buffer.from("<html>"));
    await expect(download()).rejects.toThrow("is no index of releases");
    answers.delete("/index.yaml");
    await expect(download()).rejects.toThrow("answered 404, expected 200");
  });

  test("trusts no server that the authority does not vouch for", async () => {
    serveIndex([]);
    await expect(downloadKubeAssets({ folder, indexUrl: `${base}/index.yaml` })).rejects.toThrow(
      "could not be fetched",
    );
  });

  test("is never redirected to plain http", async () => {
    answers.set("/index.yaml", new URL("http://127.0.0.1:1/index.yaml"));
    await expect(download()).rejects.toThrow("is not an https URL");
  });
});
