/** The kinds of upstream that a Source can have, each with a server on loopback: for tests that treat them alike. */
import { createHash } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startGitServer } from "#local/git/git-server.ts";
import { attachBundle, keyedBundle, statementOf } from "#local/registry/cosign.ts";
import type { KeyPair } from "#local/registry/cosign-keys.ts";
import { startRegistryServer } from "#local/registry/registry-server.ts";
import { S3BucketReader } from "#shared/adapters/aws/s3-bucket-reader.ts";
import { IsomorphicGitRemote } from "#shared/adapters/git/isomorphic-git-remote.ts";
import { addressRules } from "#shared/adapters/net/address-rules.ts";
import { parseAllowedBuckets } from "#shared/fleet/source-buckets.ts";
import { startBucketServer } from "#test/support/bucket-server.ts";
import { startFileServer } from "#test/support/file-server.ts";
import { clearSign, type PgpKey, signDetached } from "#test/support/pgp-keys.ts";
import { signedRepository } from "#test/support/signed-repository.ts";
import type { SourceWorld } from "#test/support/source-world.ts";
import { newKeyPair, startSshGitServer } from "#test/support/ssh-git-server.ts";
import { tarGz } from "#test/support/tar-gz.ts";

/** `token`: a registry gives a token for the login. The others are kinds of credentials of a Source. */
export type FeedCredentials = "none" | "basic" | "bearer" | "ssh" | "token";
export type FeedVerification = "none" | "OpenPGP" | "provenance" | "cosign";

/** The keys of somebody who publishes. */
export interface FeedKeys {
  readonly pgp: PgpKey;
  readonly cosign: KeyPair;
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
  /** Publishes one file with the text, signed when there is a key. */
  publish(version: string, text: string, keys?: FeedKeys): Promise<void>;
  /** The text in the stored artifact. */
  stored(): Promise<string | undefined>;
  /** How often the content itself was asked for, as the server saw it; listings and manifests do not count. */
  contentRequests(): number;
  /** The members of a secret that signs in, and of one that does not. */
  readonly secrets: { readonly right: object; readonly wrong: object };
  stop(): Promise<void>;
}

const login = { username: "bot", password: "right-password" };
const basicOf = ({ username, password }: typeof login) =>
  `Basic ${Buffer.from(`${username}:${password}`).toString("base64")}`;
const loginSecrets = (host: string) => ({
  right: { host, ...login },
  wrong: { host, ...login, password: "not-this-one" },
});
const sha256 = (bytes: Uint8Array) => createHash("sha256").update(bytes).digest("hex");
const fileName = "a.yaml";

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
    made.tag(`v${version}`, "lightweight");
  };
}

/** Counts the fetches of files: the commit alone is read before it is verified. */
function countedGit(world: SourceWorld): () => number {
  const remote = new IsomorphicGitRemote({ rules: addressRules("127.0.0.1") });
  let fetched = 0;
  world.git = {
    listRefs: (repository, prefixes) => remote.listRefs(repository, prefixes),
    fetchTree(repository, commit) {
      if (commit.paths.length > 0) fetched += 1;
      return remote.fetchTree(repository, commit);
    },
  };
  return () => fetched;
}

async function gitOverHttp({ credentials, world }: FeedOptions): Promise<Feed> {
  const root = mkdtempSync(join(tmpdir(), "starling-feed-"));
  const server = await startGitServer({ root, ...(credentials === "none" ? {} : { credentials: login }) });
  const url = server.url("app");
  return {
    kind: "git",
    upstream: { url },
    publish: publisher(root),
    stored: () => textIn(world, fileName),
    contentRequests: countedGit(world),
    secrets: loginSecrets(new URL(url).host),
    async stop() {
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
  return {
    kind: "git",
    upstream: { url: server.url("app") },
    publish,
    stored: () => textIn(world, fileName),
    contentRequests: countedGit(world),
    secrets: {
      right: { ...secret, privateKey: user.private },
      wrong: { ...secret, privateKey: stranger.private },
    },
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
  const server = await startFileServer(({ url, headers }) => {
    if (credentials === "basic" && headers.authorization !== basicOf(login)) return { status: 401 };
    if (credentials === "bearer" && headers.authorization !== `Bearer ${login.password}`) return { status: 401 };
    const body = files.get(url);
    return body === undefined ? { status: 404 } : { body };
  });
  return {
    kind: "helm",
    upstream: { url: server.url, chart: "app" },
    async publish(version, text, keys) {
      const packed = await packedChart(version, text);
      files.set(`/app-${version}.tgz`, packed);
      if (keys !== undefined) files.set(`/app-${version}.tgz.prov`, await provenanceOf(version, packed, keys.pgp));
      entries.push(`  - version: ${version}\n    urls: [app-${version}.tgz]\n`);
      files.set("/index.yaml", `apiVersion: v1\nentries:\n  app:\n${entries.join("")}`);
    },
    stored: () => textIn(world, chartFile),
    contentRequests: () =>
      server.asked.filter(({ url, headers }) => url.endsWith(".tgz") && isSignedIn(headers.authorization, credentials))
        .length,
    secrets: secretsFor(new URL(server.url).host, credentials),
    stop: () => server.stop(),
  };
}

/** Whether a request has the right credentials. */
function isSignedIn(authorization: string | undefined, credentials: FeedCredentials): boolean {
  if (credentials === "none") return true;
  return authorization === (credentials === "basic" ? basicOf(login) : `Bearer ${login.password}`);
}

function secretsFor(host: string, credentials: FeedCredentials): Feed["secrets"] {
  if (credentials !== "bearer") return loginSecrets(host);
  return { right: { host, token: login.password }, wrong: { host, token: "not-this-one" } };
}

/** A registry that counts how often it is asked for content. */
async function registry({ credentials }: FeedOptions) {
  const content = new Set<string>();
  let asked = 0;
  const server = await startRegistryServer({
    ...(credentials === "none" ? {} : { login: { scheme: credentials === "token" ? "bearer" : "basic", ...login } }),
    onRequest({ method, url = "" }) {
      if (method === "GET" && content.has(url.split("/blobs/")[1] ?? "")) asked += 1;
    },
  });
  return {
    server,
    countContent: (bytes: Uint8Array) => content.add(`sha256:${sha256(bytes)}`),
    contentRequests: () => asked,
    secrets: loginSecrets(server.host),
  };
}

async function helmRegistry(options: FeedOptions): Promise<Feed> {
  const { server, countContent, contentRequests, secrets } = await registry(options);
  const repository = "charts/app";
  return {
    kind: "helm",
    upstream: { url: `oci://${server.host}/charts`, chart: "app" },
    async publish(version, text, keys) {
      const packed = await packedChart(version, text);
      countContent(packed);
      const isClearSigned = keys !== undefined && options.verification === "provenance";
      const provenance = isClearSigned ? Buffer.from(await provenanceOf(version, packed, keys.pgp)) : undefined;
      const digest = server.pushChart(repository, version, packed, provenance);
      if (keys !== undefined && options.verification === "cosign")
        attachBundle({ registry: server, repository, digest }, keyedBundle(statementOf(digest), keys.cosign));
    },
    stored: () => textIn(options.world, chartFile),
    contentRequests,
    secrets,
    stop: () => server.stop(),
  };
}

async function ociArtifact(options: FeedOptions): Promise<Feed> {
  const { server, countContent, contentRequests, secrets } = await registry(options);
  const repository = "acme/app";
  return {
    kind: "oci",
    upstream: { url: `oci://${server.host}/${repository}` },
    async publish(version, text, keys) {
      const content = await tarGz([{ name: fileName, body: text }]);
      countContent(content);
      const layers = [{ mediaType: "application/vnd.cncf.flux.content.v1.tar+gzip", content }];
      const digest = server.push(repository, version, { layers });
      server.push(repository, "stable", { layers });
      if (keys !== undefined)
        attachBundle({ registry: server, repository, digest }, keyedBundle(statementOf(digest), keys.cosign));
    },
    stored: () => textIn(options.world, fileName),
    contentRequests,
    secrets,
    stop: () => server.stop(),
  };
}

const bucket = "acme-feed";

async function s3Bucket({ world }: FeedOptions): Promise<Feed> {
  const server = await startBucketServer();
  world.buckets = new S3BucketReader((region) => server.s3In(region));
  world.bucketRules = { allowed: parseAllowedBuckets(bucket), own: "starling-blobs" };
  return {
    kind: "s3",
    upstream: { bucket },
    publish: (_version, text) => server.put(bucket, { [fileName]: text }),
    stored: () => textIn(world, fileName),
    contentRequests: () => server.requests.filter(({ line }) => line === `GET /${bucket}/${fileName}`).length,
    secrets: { right: {}, wrong: {} },
    stop: () => server.stop(),
  };
}

/** An archive names its content by a checksum: a file that is published over it is refused. */
async function archive({ credentials, world }: FeedOptions): Promise<Feed> {
  const first = await tarGz([{ name: fileName, body: "first" }]);
  let body: Uint8Array = first;
  const server = await startFileServer(({ headers }) =>
    isSignedIn(headers.authorization, credentials) ? { body } : { status: 401 },
  );
  return {
    kind: "archive",
    upstream: { url: `${server.url}/app.tar.gz`, sha256: sha256(first) },
    async publish(_version, text) {
      body = await tarGz([{ name: fileName, body: text }]);
    },
    stored: () => textIn(world, fileName),
    contentRequests: () => server.asked.filter(({ headers }) => isSignedIn(headers.authorization, credentials)).length,
    secrets: secretsFor(new URL(server.url).host, credentials),
    stop: () => server.stop(),
  };
}

/** A way of following what is published. */
export interface FeedPolicy {
  readonly name: string;
  /** Members of the upstream. */
  readonly members: object;
  /** Whether a version after the first is taken. */
  readonly takes: (version: string) => boolean;
}

export interface FeedKind {
  readonly name: string;
  readonly start: (options: FeedOptions) => Promise<Feed>;
  readonly policies: readonly FeedPolicy[];
  readonly credentials: readonly FeedCredentials[];
  readonly verifications: readonly FeedVerification[];
}

const always = () => true;
const policy = (name: string, ref: object | undefined, takes: FeedPolicy["takes"] = always): FeedPolicy => ({
  name,
  members: ref === undefined ? {} : { ref },
  takes,
});
const underTwo = (version: string) => Number(version.split(".")[0]) < 2;
const gitPolicies = [
  policy("the default branch", undefined),
  policy("a branch", { branch: "main" }),
  policy("a tag", { tag: "v1.0.0" }, () => false),
  policy("a range", { semver: "^1.0.0" }, underTwo),
  policy("a range with a prefix", { semver: "1.0.0 - 1.9.0", tagPrefix: "v" }, underTwo),
  policy("a range with a filter", { semver: ">=1.0.0", tagFilter: "^v1\\." }, underTwo),
];
const helmPolicies = [policy("the newest version", undefined), policy("a range", { semver: "1.x" }, underTwo)];

export const feedKinds: readonly FeedKind[] = [
  {
    name: "git over HTTP",
    start: gitOverHttp,
    policies: gitPolicies,
    credentials: ["none", "basic"],
    verifications: ["none", "OpenPGP"],
  },
  {
    name: "git over SSH",
    start: gitOverSsh,
    policies: gitPolicies,
    credentials: ["ssh"],
    verifications: ["none", "OpenPGP"],
  },
  {
    name: "a Helm repository",
    start: helmRepository,
    policies: helmPolicies,
    credentials: ["none", "basic", "bearer"],
    verifications: ["none", "provenance"],
  },
  {
    name: "charts in a registry",
    start: helmRegistry,
    policies: helmPolicies,
    credentials: ["none", "basic", "token"],
    verifications: ["none", "provenance", "cosign"],
  },
  {
    name: "artifacts in a registry",
    start: ociArtifact,
    policies: [
      policy("a tag that moves", { tag: "stable" }),
      policy("a range", { semver: "^1.0.0" }, underTwo),
      policy("a range with a filter", { semver: ">=1.0.0", tagFilter: "^1\\." }, underTwo),
    ],
    credentials: ["none", "basic", "token"],
    verifications: ["none", "cosign"],
  },
  {
    name: "a bucket of S3",
    start: s3Bucket,
    policies: [policy("its objects", undefined)],
    credentials: ["none"],
    verifications: ["none"],
  },
  {
    name: "an archive",
    start: archive,
    policies: [policy("its checksum", undefined, () => false)],
    credentials: ["none", "basic", "bearer"],
    verifications: ["none"],
  },
];
