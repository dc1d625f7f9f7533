/** The kinds of upstream that a Source can have, each with a server on loopback: for tests that treat them alike. */
import { createHash } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startGitServer } from "#local/git/git-server.ts";
import { attachBundle, type InRegistry, keyedBundle, statementOf } from "#local/registry/cosign.ts";
import type { KeyPair } from "#local/registry/cosign-keys.ts";
import { startRegistryServer } from "#local/registry/registry-server.ts";
import { S3BucketReader } from "#shared/adapters/aws/s3-bucket-reader.ts";
import { IsomorphicGitRemote } from "#shared/adapters/git/isomorphic-git-remote.ts";
import { addressRules } from "#shared/adapters/net/address-rules.ts";
import { blobKeys } from "#shared/fleet/blob-keys.ts";
import { parseAllowedBuckets } from "#shared/fleet/source-buckets.ts";
import { startBucketServer } from "#test/support/bucket-server.ts";
import {
  type FeedCredentials,
  type FeedLogin,
  guarded,
  login,
  passwordLogin,
  secretLogin,
} from "#test/support/feed-logins.ts";
import { startFileServer } from "#test/support/file-server.ts";
import { clearSign, type PgpKey, signDetached } from "#test/support/pgp-keys.ts";
import { signedRepository } from "#test/support/signed-repository.ts";
import type { SourceWorld } from "#test/support/source-world.ts";
import { newKeyPair, startSshGitServer } from "#test/support/ssh-git-server.ts";
import { tarGz } from "#test/support/tar-gz.ts";

/** `keyless`: cosign with an identity instead of a key. */
export type FeedVerification = "none" | "OpenPGP" | "provenance" | "cosign" | "keyless";

/** The keys of somebody who publishes. */
export interface FeedKeys {
  readonly pgp: PgpKey;
  readonly cosign: KeyPair;
  /** A bundle over a statement, signed as an identity. */
  readonly signed: (statement: string) => Promise<object>;
}

/** How a feed is started. */
export interface FeedOptions {
  readonly credentials: FeedCredentials;
  readonly verification: FeedVerification;
  readonly world: SourceWorld;
}

export interface Feed {
  /** The upstream of a Source without a policy: `{git: {url}}`. */
  readonly kind: string;
  readonly upstream: Readonly<Record<string, unknown>>;
  /** Publishes one file with the text, signed when there is a key. @returns the id of the commit or of the manifest. */
  publish(version: string, text: string, keys?: FeedKeys): Promise<string | undefined>;
  /** The text in the stored artifact. */
  stored(): Promise<string | undefined>;
  /** How often the content itself was sent; listings and manifests do not count. */
  contentRequests(): number;
  readonly login: FeedLogin;
  stop(): Promise<void>;
}

const sha256 = (bytes: Uint8Array) => createHash("sha256").update(bytes).digest("hex");
const fileName = "a.yaml";

const originOf = (url: string) => ({ origin: new URL(url).origin });

async function textIn(world: SourceWorld, path: string): Promise<string | undefined> {
  const found = (await world.files()).find((file) => file.path === path);
  return found === undefined ? undefined : Buffer.from(found.content).toString();
}

/** Commits to `main` with the tag `v<version>`; a key signs the commit. */
function publisher(root: string) {
  const made = signedRepository(root, "app");
  return async (version: string, text: string, keys?: FeedKeys) => {
    made.commit(text);
    if (keys !== undefined) {
      let raw = "";
      made.replace("refs/heads/main", "commit", (commit) => {
        raw = commit;
        return commit;
      });
      const header = `gpgsig ${(await signDetached(raw, [keys.pgp])).trimEnd().replaceAll(/\r?\n/g, "\n ")}`;
      made.replace("refs/heads/main", "commit", () => raw.replace("\n\n", `\n${header}\n\n`));
      made.git("reset", "-q", "--soft", "refs/heads/main");
    }
    return made.tag(`v${version}`, "lightweight");
  };
}

/** Counts the fetches of files: the commit alone is read before it is verified. */
function countedGit(world: SourceWorld): () => number {
  const remote = world.git;
  let fetched = 0;
  world.git = {
    listRefs: (repository, prefixes) => remote.listRefs(repository, prefixes),
    async fetchTree(repository, commit) {
      const tree = await remote.fetchTree(repository, commit);
      if (commit.paths.length > 0) fetched += 1;
      return tree;
    },
  };
  return () => fetched;
}

async function gitOverHttp({ credentials, world }: FeedOptions): Promise<Feed> {
  const root = mkdtempSync(join(tmpdir(), "starling-feed-"));
  const server = await startGitServer({ root });
  world.git = new IsomorphicGitRemote({ rules: addressRules("127.0.0.1") });
  const { origin, path = "app.git", ...front } = await guarded(credentials, { ...originOf(server.url("app")), world });
  return {
    kind: "git",
    upstream: { url: `${origin}/${path}` },
    publish: publisher(root),
    stored: () => textIn(world, fileName),
    contentRequests: countedGit(world),
    login: front.login,
    async stop() {
      await front.stop();
      await server.stop();
      rmSync(root, { recursive: true, force: true });
    },
  };
}

async function gitOverSsh({ world }: FeedOptions): Promise<Feed> {
  const root = mkdtempSync(join(tmpdir(), "starling-feed-"));
  const [user, hostKey, stranger] = [newKeyPair(), newKeyPair(), newKeyPair()];
  const publish = publisher(root);
  const server = await startSshGitServer({ root, hostKey, users: [user] });
  const secret = { host: `127.0.0.1:${server.port}`, knownHosts: server.knownHosts };
  world.git = new IsomorphicGitRemote({ rules: addressRules("127.0.0.1") });
  return {
    kind: "git",
    upstream: { url: server.url("app") },
    publish,
    stored: () => textIn(world, fileName),
    contentRequests: countedGit(world),
    login: secretLogin(world, "ssh", {
      right: { ...secret, privateKey: user.private },
      wrong: { ...secret, privateKey: stranger.private },
    }),
    async stop() {
      await server.stop();
      rmSync(root, { recursive: true, force: true });
    },
  };
}

const chartFile = "templates/a.yaml";
const packedChart = (version: string, text: string) =>
  tarGz([
    { name: "app/Chart.yaml", body: `apiVersion: v2\nname: app\nversion: ${version}\n` },
    { name: `app/${chartFile}`, body: text },
  ]);

function provenanceOf(version: string, packed: Uint8Array, key: PgpKey): Promise<string> {
  const text = `apiVersion: v2\nname: app\nversion: ${version}\n\n...\nfiles:\n  app-${version}.tgz: sha256:${sha256(packed)}\n`;
  return clearSign(text, key);
}

async function helmRepository({ credentials, world }: FeedOptions): Promise<Feed> {
  const files = new Map<string, Uint8Array | string>();
  const entries: string[] = [];
  const server = await startFileServer(({ url }) => {
    const body = files.get(url);
    return body === undefined ? { status: 404 } : { body };
  });
  const { origin, login, stop } = await guarded(credentials, { ...originOf(server.url), world });
  return {
    kind: "helm",
    upstream: { url: origin, chart: "app" },
    async publish(version, text, keys) {
      const packed = await packedChart(version, text);
      files.set(`/app-${version}.tgz`, packed);
      if (keys !== undefined) files.set(`/app-${version}.tgz.prov`, await provenanceOf(version, packed, keys.pgp));
      entries.push(`  - version: ${version}\n    urls: [app-${version}.tgz]\n`);
      files.set("/index.yaml", `apiVersion: v1\nentries:\n  app:\n${entries.join("")}`);
      return undefined;
    },
    stored: () => textIn(world, chartFile),
    contentRequests: () => server.asked.filter(({ url }) => url.endsWith(".tgz")).length,
    login,
    async stop() {
      await stop();
      await server.stop();
    },
  };
}

/** A registry that counts how often it is asked for content. */
async function registry({ credentials, world }: FeedOptions) {
  const content = new Set<string>();
  let asked = 0;
  const server = await startRegistryServer({
    ...(credentials === "token" ? { login: { scheme: "bearer", ...login } } : {}),
    onRequest({ method, url = "" }) {
      if (method === "GET" && content.has(url.split("/blobs/")[1] ?? "")) asked += 1;
    },
  });
  const front = await guarded(credentials, { origin: `http://${server.host}`, world, isRegistry: true });
  return {
    server,
    host: new URL(front.origin).host,
    countContent: (bytes: Uint8Array) => content.add(`sha256:${sha256(bytes)}`),
    contentRequests: () => asked,
    login: credentials === "token" ? passwordLogin(world, server.host) : front.login,
    async stop() {
      await front.stop();
      await server.stop();
    },
  };
}

/** Attaches a signature of a key, or of an identity. */
async function sign(place: InRegistry, verification: FeedVerification, keys: FeedKeys): Promise<void> {
  const statement = statementOf(place.digest);
  if (verification === "cosign") attachBundle(place, keyedBundle(statement, keys.cosign));
  if (verification === "keyless") attachBundle(place, await keys.signed(statement));
}

async function helmRegistry(options: FeedOptions): Promise<Feed> {
  const { server, host, countContent, contentRequests, login, stop } = await registry(options);
  const repository = "charts/app";
  return {
    kind: "helm",
    upstream: { url: `oci://${host}/charts`, chart: "app" },
    async publish(version, text, keys) {
      const packed = await packedChart(version, text);
      countContent(packed);
      const isClearSigned = keys !== undefined && options.verification === "provenance";
      const provenance = isClearSigned ? Buffer.from(await provenanceOf(version, packed, keys.pgp)) : undefined;
      const digest = server.pushChart(repository, version, packed, provenance);
      if (keys !== undefined) await sign({ registry: server, repository, digest }, options.verification, keys);
      return digest;
    },
    stored: () => textIn(options.world, chartFile),
    contentRequests,
    login,
    stop,
  };
}

async function ociArtifact(options: FeedOptions): Promise<Feed> {
  const { server, host, countContent, contentRequests, login, stop } = await registry(options);
  const repository = "acme/app";
  return {
    kind: "oci",
    upstream: { url: `oci://${host}/${repository}` },
    async publish(version, text, keys) {
      const content = await tarGz([{ name: fileName, body: text }]);
      countContent(content);
      const layers = [{ mediaType: "application/vnd.cncf.flux.content.v1.tar+gzip", content }];
      const digest = server.push(repository, version, { layers });
      for (const tag of ["stable", "latest"]) server.push(repository, tag, { layers });
      if (keys !== undefined) await sign({ registry: server, repository, digest }, options.verification, keys);
      return digest;
    },
    stored: () => textIn(options.world, fileName),
    contentRequests,
    login,
    stop,
  };
}

const bucket = "acme-feed";

async function s3Bucket({ credentials, world }: FeedOptions): Promise<Feed> {
  const server = await startBucketServer();
  world.buckets = new S3BucketReader((region) => server.s3In(region));
  world.bucketRules = { allowed: parseAllowedBuckets(bucket), own: "starling-blobs" };
  const { login } = await guarded(credentials, { origin: "", world });
  return {
    kind: "s3",
    upstream: { bucket },
    async publish(_version, text) {
      await server.put(bucket, { [fileName]: text, [`releases/${fileName}`]: text });
      return undefined;
    },
    stored: async () => (await textIn(world, fileName)) ?? textIn(world, `releases/${fileName}`),
    contentRequests: () => server.requests.filter(({ line }) => line.endsWith(`/${fileName}`)).length,
    login,
    stop: () => server.stop(),
  };
}

/** An archive names its content by a checksum: a file that is published over it is refused. */
async function archive({ credentials, world }: FeedOptions): Promise<Feed> {
  const first = await tarGz([{ name: fileName, body: "first" }]);
  let body: Uint8Array = first;
  const server = await startFileServer(() => ({ body }));
  const { origin, login, stop } = await guarded(credentials, { ...originOf(server.url), world });
  return {
    kind: "archive",
    upstream: { url: `${origin}/app.tar.gz`, sha256: sha256(first) },
    async publish(_version, text) {
      body = await tarGz([{ name: fileName, body: text }]);
      return undefined;
    },
    stored: () => textIn(world, fileName),
    contentRequests: () => server.asked.length,
    login,
    async stop() {
      await stop();
      await server.stop();
    },
  };
}

/** Versions as the API records them after a push. */
async function external({ credentials, world }: FeedOptions): Promise<Feed> {
  const { login } = await guarded(credentials, { origin: "", world });
  const uploads = blobKeys.upload({ namespace: "shop", name: "app" }, "");
  return {
    kind: "external",
    upstream: { principals: ["arn:aws:iam::111122223333:role/ci"] },
    async publish(version, text) {
      await world.push(version, await tarGz([{ name: fileName, body: text }]));
      return undefined;
    },
    stored: () => textIn(world, fileName),
    contentRequests: () => world.blobs.reads.filter((key) => key.startsWith(uploads)).length,
    login,
    stop: async () => undefined,
  };
}

/** A way of following what is published. */
export interface FeedPolicy {
  readonly name: string;
  /** Members of the upstream. @param first - what the first publication gave. */
  readonly members: (first: string) => object;
  /** Whether a version after the first is taken. */
  readonly takes: (version: string) => boolean;
}

export interface FeedKind {
  readonly name: string;
  readonly start: (options: FeedOptions) => Promise<Feed>;
  /** An upstream at an address without a scheme, which nobody asks. */
  readonly example: (address: string) => Readonly<Record<string, object>>;
  readonly policies: readonly FeedPolicy[];
  readonly credentials: readonly FeedCredentials[];
  readonly verifications: readonly FeedVerification[];
}

const always = () => true;
const never = () => false;
const policy = (
  name: string,
  ref: object | ((first: string) => object) | undefined,
  takes: FeedPolicy["takes"] = always,
): FeedPolicy => ({
  name,
  members: (first) => (ref === undefined ? {} : { ref: typeof ref === "function" ? ref(first) : ref }),
  takes,
});
const underTwo = (version: string) => Number(version.split(".")[0]) < 2;
const gitPolicies = [
  policy("the default branch", undefined),
  policy("a branch", { branch: "main" }),
  policy("a reference by its full name", { name: "refs/heads/main" }),
  policy("a tag", { tag: "v1.0.0" }, never),
  policy("a commit", (commit) => ({ commit }), never),
  policy("a range", { semver: "^1.0.0" }, underTwo),
  policy("a range with a prefix", { semver: "1.0.0 - 1.9.0", tagPrefix: "v" }, underTwo),
  policy("a range with a filter", { semver: ">=1.0.0", tagFilter: "^v1\\." }, underTwo),
];
const helmPolicies = [policy("the newest version", undefined), policy("a range", { semver: "1.x" }, underTwo)];
const ofFiles = ["none", "basic", "bearer", "tls", "authority"] as const;
const ofRegistries = [...ofFiles, "token", "dockerConfig", "ECR"] as const;

export const feedKinds: readonly FeedKind[] = [
  {
    name: "git over HTTP",
    start: gitOverHttp,
    example: (address) => ({ git: { url: `https://${address}` } }),
    policies: gitPolicies,
    credentials: [...ofFiles, "githubApp", "CodeCommit", "CodeConnections"],
    verifications: ["none", "OpenPGP"],
  },
  {
    name: "git over SSH",
    start: gitOverSsh,
    example: (address) => ({ git: { url: `ssh://git@${address}` } }),
    policies: gitPolicies,
    credentials: ["ssh"],
    verifications: ["none", "OpenPGP"],
  },
  {
    name: "a Helm repository",
    start: helmRepository,
    example: (address) => ({ helm: { url: `https://${address}`, chart: "app" } }),
    policies: helmPolicies,
    credentials: ofFiles,
    verifications: ["none", "provenance"],
  },
  {
    name: "charts in a registry",
    start: helmRegistry,
    example: (address) => ({ helm: { url: `oci://${address}`, chart: "app" } }),
    policies: helmPolicies,
    credentials: ofRegistries,
    verifications: ["none", "provenance", "cosign", "keyless"],
  },
  {
    name: "artifacts in a registry",
    start: ociArtifact,
    example: (address) => ({ oci: { url: `oci://${address}` } }),
    policies: [
      policy("the usual tag", undefined),
      policy("a tag that moves", { tag: "stable" }),
      policy("a range", { semver: "^1.0.0" }, underTwo),
      policy("a range with a filter", { semver: ">=1.0.0", tagFilter: "^1\\." }, underTwo),
      policy("a digest", (digest) => ({ digest }), never),
    ],
    credentials: ofRegistries,
    verifications: ["none", "cosign", "keyless"],
  },
  {
    name: "a bucket of S3",
    start: s3Bucket,
    example: () => ({ s3: { bucket } }),
    policies: [
      policy("its objects", undefined),
      { name: "a folder", members: () => ({ prefix: "releases" }), takes: always },
    ],
    credentials: ["none"],
    verifications: ["none"],
  },
  {
    name: "an archive",
    start: archive,
    example: (address) => ({ archive: { url: `https://${address}`, sha256: "0".repeat(64) } }),
    policies: [policy("its checksum", undefined, never)],
    credentials: ofFiles,
    verifications: ["none"],
  },
  {
    name: "pushed versions",
    start: external,
    example: () => ({ external: { principals: ["arn:aws:iam::111122223333:role/ci"] } }),
    policies: [
      policy("the newest one", undefined),
      { name: "one of them", members: () => ({ version: "1.0.0" }), takes: never },
    ],
    credentials: ["none"],
    verifications: ["none"],
  },
];
