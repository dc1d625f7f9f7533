/**
 * Each kind of upstream has a named reason for what a hostile server can send, and takes bounded bytes of it. Git, buckets,
 * lists of tags, challenges and indexes have tests of their own.
 */
import { createHash } from "node:crypto";
import dns from "node:dns";
import { syncBuiltinESMExports } from "node:module";
import { gzipSync } from "node:zlib";
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { startRegistryServer } from "#local/registry/registry-server.ts";
import { IsomorphicGitRemote } from "#shared/adapters/git/isomorphic-git-remote.ts";
import { addressRules } from "#shared/adapters/net/address-rules.ts";
import { blobKeys } from "#shared/fleet/blob-keys.ts";
import { type AskedFile, type FileAnswer, type FileServer, startFileServer } from "#test/support/file-server.ts";
import { SourceWorld } from "#test/support/source-world.ts";
import { type TarEntry, tarGz } from "#test/support/tar-gz.ts";

/** Answers for `rebinds.example` with these addresses, one for each connection, until the test is over. */
function rebind(...addresses: string[]): readonly string[] {
  const { lookup } = dns;
  const rebinding = (
    name: string,
    options: dns.LookupAllOptions,
    done: (error: NodeJS.ErrnoException | null, found: dns.LookupAddress[]) => void,
  ) => {
    if (name !== "rebinds.example") return lookup(name, options, done);
    done(null, [{ address: addresses.shift() ?? "", family: 4 }]);
  };
  dns.lookup = rebinding as typeof dns.lookup;
  // Files of tests share their modules, which have imported the function already.
  syncBuiltinESMExports();
  onTestFinished(() => {
    dns.lookup = lookup;
    syncBuiltinESMExports();
  });
  return addresses;
}

const mib = 1024 * 1024;
const sha = (bytes: Uint8Array | string) => createHash("sha256").update(bytes).digest("hex");

let world: SourceWorld;
let server: FileServer;
let answer: (asked: AskedFile) => FileAnswer;

beforeEach(async () => {
  world = new SourceWorld();
  world.git = new IsomorphicGitRemote({ rules: addressRules("127.0.0.1") });
  server = await startFileServer((asked) => answer(asked));
});
afterEach(() => server.stop());

interface Kind {
  /** The Source whose files are packed in these bytes. */
  spec(packed: Uint8Array): object;
  /** The answers before the last one, which has the files. */
  before(asked: AskedFile, packed: Uint8Array): FileAnswer | undefined;
  /** Most bytes that are taken of the last answer. */
  readonly most: number;
}

const host = () => new URL(server.url).host;
const manifestOf = (mediaType: string, packed: Uint8Array) =>
  JSON.stringify({ layers: [{ mediaType, digest: `sha256:${sha(packed)}`, size: packed.length }] });
const fromRegistry = (mediaType: string) => ({
  most: mib,
  before({ url }: AskedFile, packed: Uint8Array): FileAnswer | undefined {
    if (url.includes("/tags/")) return { body: JSON.stringify({ tags: ["1.0.0"] }) };
    const manifest = manifestOf(mediaType, packed);
    if (!url.includes("/manifests/")) return undefined;
    return { body: manifest, headers: { "docker-content-digest": `sha256:${sha(manifest)}` } };
  },
});

const kinds: Readonly<Record<string, Kind>> = {
  archive: {
    most: 100 * mib,
    spec: (packed) => ({ archive: { url: `${server.url}/a.tgz`, sha256: sha(packed) } }),
    before: () => undefined,
  },
  oci: {
    ...fromRegistry("application/vnd.cncf.flux.content.v1.tar+gzip"),
    spec: () => ({ oci: { url: `oci://${host()}/acme/web`, ref: { tag: "1.0.0" } } }),
  },
  "helm from a registry": {
    ...fromRegistry("application/vnd.cncf.helm.chart.content.v1.tar+gzip"),
    spec: () => ({ helm: { url: `oci://${host()}/acme`, chart: "web" } }),
  },
  "helm from a repository": {
    most: 20 * mib,
    spec: () => ({ helm: { url: server.url, chart: "web" } }),
    before: ({ url }, packed) =>
      url === "/index.yaml"
        ? { body: JSON.stringify({ entries: { web: [{ version: "1.0.0", urls: ["web.tgz"], digest: sha(packed) }] } }) }
        : undefined,
  },
};
const chart: TarEntry = { name: "web/Chart.yaml", body: "apiVersion: v2\nname: web\nversion: 1.0.0\n" };
const archives: Readonly<Record<string, readonly [packed: () => Promise<Buffer> | Buffer, message: RegExp]>> = {
  "a bomb": [() => gzipSync(Buffer.alloc(400 * mib)), /does not unpack within/],
  traversal: [() => tarGz([chart, { name: "web/../../etc/cron.d/x", body: "x" }]), /leads out of/],
  "an absolute path": [() => tarGz([chart, { name: "/etc/passwd", body: "x" }]), /absolute path|leads out of/],
  "a symbolic link": [() => tarGz([chart, { name: "web/x", type: "symlink" }]), /only regular files/],
  "a hard link": [() => tarGz([chart, { name: "web/x", type: "link" }]), /only regular files/],
  "a device": [() => tarGz([chart, { name: "web/x", type: "character-device" }]), /only regular files/],
  "a name twice": [() => tarGz([chart, chart]), /occurs twice/],
  "20,001 files": [
    () => tarGz(Array.from({ length: 20_001 }, (_, index) => ({ name: `web/${index}`, body: "" }))),
    /more than 20000 files/,
  ],
};

describe.each(Object.entries(kinds))("a Source of %s", (_name, kind) => {
  const resolved = async (packed: Uint8Array, last: FileAnswer) => {
    answer = (asked) => kind.before(asked, packed) ?? last;
    await world.put(kind.spec(packed));
    const ready = await world.ready();
    expect(world.errors).toEqual([]);
    expect(world.blobs.keys()).toEqual([]);
    return ready;
  };

  test.each(Object.entries(archives))("refuses %s by name", async (_what, [packed, message]) => {
    const bytes = await packed();
    expect(await resolved(bytes, { body: bytes })).toMatchObject({
      reason: "ArchiveInvalid",
      message: expect.stringMatching(message),
    });
  });

  test("takes bounded bytes of an endless answer [source.hostile.endless]", async () => {
    expect(await resolved(Buffer.alloc(mib), "endless")).toMatchObject({ reason: "UpstreamTooLarge" });
    // The server has also written the bytes that are on their way in the sockets.
    expect(server.written()).toBeLessThan(kind.most + 16 * mib);
  });

  test("refuses other bytes than those that were announced [source.hostile.other-bytes]", async () => {
    const packed = await tarGz([chart]);
    const other = Buffer.from(packed);
    other[other.length - 1] = (other.at(-1) ?? 0) ^ 1;
    expect(await resolved(packed, { body: other })).toMatchObject({ reason: "ChecksumMismatch" });
  });

  test.each([
    ["the machine's own data", "http://169.254.169.254/latest/meta-data/"],
    ["the same by IPv6", "http://[fd00:ec2::254]/"],
    ["a host of the network", "http://10.0.0.1/"],
  ])("refuses a redirect to %s [source.hostile.address]", async (_what, location) => {
    const packed = await tarGz([chart]);
    expect(await resolved(packed, { status: 302, headers: { location } })).toMatchObject({ reason: "AddressRefused" });
  });

  test("checks the address of each connection to a name that leads elsewhere the next time [source.hostile.address]", async () => {
    const packed = await tarGz([chart]);
    const addresses = rebind("127.0.0.1", "169.254.169.254");
    const { port } = new URL(server.url);
    const last = { status: 302, headers: { location: `http://rebinds.example:${port}/again` } };
    expect(await resolved(packed, last)).toMatchObject({
      reason: "AddressRefused",
      message: expect.stringContaining("169.254.169.254"),
    });
    expect(server.asked.filter(({ url }) => url === "/again")).toHaveLength(1);
    expect(addresses).toEqual([]);
  });

  test("refuses a redirect in a circle [source.hostile.address]", async () => {
    const packed = await tarGz([chart]);
    const last = { status: 302, headers: { location: `${server.url}/again` } };
    expect(await resolved(packed, last)).toMatchObject({
      reason: "UpstreamUnavailable",
      message: expect.stringContaining("more than 5 redirects"),
    });
    expect(server.asked.length).toBeLessThan(12);
  });
});

describe("a Source of pushed versions", () => {
  const uploadKey = blobKeys.upload({ namespace: "shop", name: "app" }, "2.0.0");
  let first: object | undefined;
  beforeEach(async () => {
    await world.put({ external: { principals: ["arn:aws:iam::111122223333:role/ci"] } });
    await world.push("1.0.0", await tarGz([{ name: "a.yaml", body: "a: 1\n" }]));
    first = (await world.resolve()).status.artifact;
    expect(first).toMatchObject({ files: 1 });
  });
  const refused = async () => {
    const { status } = await world.resolve();
    expect(status.artifact).toEqual(first);
    expect(world.errors).toEqual([]);
    return status.conditions.find(({ type }) => type === "Ready");
  };

  test.each(Object.entries(archives))("refuses %s by name", async (_what, [packed, message]) => {
    await world.push("2.0.0", await packed());
    expect(await refused()).toMatchObject({
      reason: "ArchiveInvalid",
      message: expect.stringMatching(message),
    });
  });

  test.each<[string, () => Promise<void> | void, object]>([
    [
      "other bytes than those that were announced",
      async () => world.blobs.overwrite(uploadKey, await tarGz([chart, { name: "web/b.yaml", body: "b" }])),
      { reason: "ChecksumMismatch", message: expect.stringContaining("push the version again") },
    ],
    [
      "more than 100 MiB",
      () => world.blobs.overwrite(uploadKey, Buffer.alloc(100 * mib + 1)),
      { reason: "UpstreamTooLarge", message: "the pushed version 2.0.0 has more than 100 MiB; push fewer files" },
    ],
    [
      "bytes that are gone",
      () => world.blobs.lose(uploadKey),
      { reason: "ArtifactGone", message: expect.stringContaining("push the same folder as 2.0.0 again") },
    ],
  ])("refuses %s by name", async (_what, spoil, ready) => {
    await world.push("2.0.0", await tarGz([chart]));
    await spoil();
    expect(await refused()).toMatchObject(ready);
  });
});

test("10,000 tags of a registry are read with ten requests [source.oci.range]", async () => {
  let listings = 0;
  const registry = await startRegistryServer({
    onRequest({ url = "" }) {
      if (url.includes("/tags/list")) listings += 1;
    },
  });
  try {
    const layers = [{ mediaType: "application/vnd.cncf.flux.content.v1.tar+gzip", content: await tarGz([chart]) }];
    for (let patch = 0; patch < 10_000; patch++) registry.push("acme/web", `1.0.${patch}`, { layers });
    await world.put({ oci: { url: `oci://${registry.host}/acme/web`, ref: { semver: "1.x" } } });
    expect((await world.resolve()).status.artifact?.revision).toMatch(/^1\.0\.9999@/);
    expect(listings).toBe(10);
  } finally {
    await registry.stop();
  }
});
