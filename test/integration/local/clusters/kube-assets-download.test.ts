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
import { pinnedEnvtest } from "#local/clusters/envtest-release.ts";
import { downloadKubeAssets } from "#local/clusters/kube-assets-download.ts";

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

/** The server's answers by path; a URL is a redirect. */
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

const releaseOf = (sha512: string, path = "/archive") => ({
  version: "v1.36.10",
  urlOf: (asked: string) => `${base}${path}?${asked}`,
  sha512: { [platform]: sha512 },
});

const download = (sha512: string, path?: string) =>
  downloadKubeAssets({ folder, ca, release: releaseOf(sha512, path) });

const programs = {
  "controller-tools/envtest/etcd": "#!/bin/sh\necho etcd\n",
  "controller-tools/envtest/kube-apiserver": "#!/bin/sh\necho kube-apiserver\n",
  "../../escaped": "no",
  "controller-tools/envtest/kubectl": "#!/bin/sh\necho kubectl\n",
};

describe("the download of the programs of envtest", () => {
  test("a download follows redirects, keeps the programs, and happens only once", async () => {
    const archive = await archiveOf(programs);
    answers.set(`/archive?${platform}`, new URL(`${base}/elsewhere`));
    answers.set("/elsewhere", archive);

    const assets = await download(sha512(archive));
    expect(assets.folder).toBe(join(folder, `v1.36.10-${platform}`));
    expect(await readdir(folder)).toEqual([`v1.36.10-${platform}`]);
    expect((await readdir(assets.folder)).sort()).toEqual(["etcd", "kube-apiserver", "kubectl"]);
    expect(await readFile(assets.kubeApiServer, "utf8")).toBe("#!/bin/sh\necho kube-apiserver\n");
    expect(assets.kubeControllerManager).toBeUndefined();

    expect(await download(sha512(archive))).toEqual(assets);
    expect(asked).toEqual([`/archive?${platform}`, "/elsewhere"]);
  });

  test("two downloads at once have the same result", async () => {
    const archive = await archiveOf(programs);
    answers.set(`/archive?${platform}`, archive);
    const [one, other] = await Promise.all([download(sha512(archive)), download(sha512(archive))]);
    expect(one).toEqual(other);
    expect(await readdir(folder)).toEqual([`v1.36.10-${platform}`]);
  });

  const refused: readonly (readonly [string, (archive: Buffer) => string, Readonly<Record<string, string>>, RegExp])[] =
    [
      [
        "with another SHA-512 than the pinned one",
        () => "ab".repeat(64),
        programs,
        /has the SHA-512 [0-9a-f]{128}, but (ab){64} is pinned; the download was deleted/,
      ],
      [
        "without kube-apiserver",
        sha512,
        { "controller-tools/envtest/etcd": "x" },
        /does not contain etcd and kube-apiserver/,
      ],
    ];
  test.each(refused)("an archive %s is refused and deleted", async (_what, hashOf, files, message) => {
    const archive = await archiveOf(files);
    answers.set(`/archive?${platform}`, archive);
    await expect(download(hashOf(archive))).rejects.toThrow(message);
    expect(await readdir(folder)).toEqual([]);
  });

  test("a download for a platform without a pinned archive is refused before any request, with the pinned ones", async () => {
    const release = { ...releaseOf("none"), sha512: { "plan9-amd64": "none" } };
    await expect(downloadKubeAssets({ folder, ca, release })).rejects.toThrow(
      `has pinned archives for plan9-amd64, but not for ${platform}; set KUBEBUILDER_ASSETS`,
    );
    expect(asked).toEqual([]);
  });

  test("a missing archive is an error with the status", async () => {
    await expect(download("none")).rejects.toThrow("answered 404, expected 200");
  });

  test("a download from a server with an untrusted certificate fails", async () => {
    await expect(downloadKubeAssets({ folder, release: releaseOf("none") })).rejects.toThrow("could not be fetched");
  });

  test("a redirect to plain http is refused", async () => {
    answers.set(`/archive?${platform}`, new URL("http://127.0.0.1:1/archive"));
    await expect(download("none")).rejects.toThrow("is not an https URL");
  });
});

test("the pinned release has a digest and an https address for each supported platform", () => {
  const { version, urlOf, sha512: digests } = pinnedEnvtest;
  expect(Object.keys(digests)).toEqual(expect.arrayContaining(["linux-amd64", "linux-arm64"]));
  for (const [of, digest] of Object.entries(digests)) {
    expect(digest).toMatch(/^[0-9a-f]{128}$/);
    expect(urlOf(of)).toMatch(new RegExp(`^https://.*/envtest-${version}-${of}\\.tar\\.gz$`));
  }
});
