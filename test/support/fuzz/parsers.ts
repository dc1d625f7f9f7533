/** Everything that parses bytes from outside, with samples, and with what must hold of each answer. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { createHash, createPrivateKey, createPublicKey, sign } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gunzipSync, gzipSync } from "node:zlib";
import { Registry } from "#functions/resolve/upstreams/registry.ts";
import { defaultGitLimits } from "#shared/adapters/git/git-limits.ts";
import { parseCommit, taggedObject, treeEntries, treeOf } from "#shared/adapters/git/git-objects.ts";
import { Pace } from "#shared/adapters/git/pace.ts";
import { PackObjects } from "#shared/adapters/git/pack-objects.ts";
import { PacketReader } from "#shared/adapters/git/packet-reader.ts";
import { readTarGz } from "#shared/adapters/render/artifact-archive.ts";
import { verifyPgp } from "#shared/adapters/signatures/verify-pgp.ts";
import { StarlingError } from "#shared/base/errors.ts";
import type { RemoteQuestion } from "#shared/ports.ts";
import { readChart } from "#shared/source/helm/chart.ts";
import { chartVersions } from "#shared/source/helm/helm-index.ts";
import { readProvenance } from "#shared/source/helm/provenance.ts";
import { listingOf } from "#shared/source/http-listing.ts";
import { parseChallenge } from "#shared/source/oci/challenge.ts";
import { readManifest } from "#shared/source/oci/manifest.ts";
import { ociRepository } from "#shared/source/oci/oci-url.ts";
import { limitedUntil } from "#shared/source/request-limit.ts";
import { readClearSigned } from "#shared/source/signatures/clear-signed.ts";
import { signedCommit, signedTag, tagName } from "#shared/source/signatures/signed-object.ts";
import { parseSshKey } from "#shared/source/signatures/ssh-key.ts";
import { verifySshSignature } from "#shared/source/signatures/ssh-signature.ts";
import { wireBytes } from "#shared/source/signatures/wire-reader.ts";
import { hostKeysFor } from "#shared/source/ssh/known-hosts.ts";
import { parseManifests } from "#shared/source/yaml/manifest-documents.ts";
import { ManifestError } from "#shared/source/yaml/manifest-error.ts";
import { parseDocuments } from "#shared/source/yaml/yaml.ts";
import { type FuzzedParser, once } from "#test/support/fuzz/fuzzed-parser.ts";
import { sourceParsers } from "#test/support/fuzz/source-parsers.ts";
import { tarGz } from "#test/support/tar-gz.ts";
import {
  appendingDelta,
  distance,
  packTypes,
  withChecksum,
  writeObject,
  writePack,
} from "#test/support/written-pack.ts";

const text = (bytes: Buffer) => bytes.toString("utf8");
const noThrow = (name: string, samples: readonly string[], run: (said: string) => unknown): FuzzedParser => ({
  name,
  samples: () => samples.map((sample) => Buffer.from(sample)),
  run: (bytes) => run(text(bytes)),
});

const commitText = `tree ${"1".repeat(40)}\nparent ${"2".repeat(40)}\nauthor Ana <ana@acme.io> 1767323045 +0100\ncommitter Bo <bo@acme.io> 1767323045 +0000\ngpgsig -----BEGIN SSH SIGNATURE-----\n AAAA\n -----END SSH SIGNATURE-----\n\nSubject\n\nBody\n`;
const tagText = `object ${"1".repeat(40)}\ntype commit\ntag v1.0.0\ntagger Ana <ana@acme.io> 1767323045 +0100\n\nRelease\n-----BEGIN SSH SIGNATURE-----\nAAAA\n-----END SSH SIGNATURE-----\n`;
const tree = (...entries: readonly (readonly [mode: string, name: string])[]) =>
  Buffer.concat(
    entries.flatMap(([mode, name]) => [Buffer.from(`${mode} ${name}\0`), createHash("sha1").update(name).digest()]),
  );
const trees = () => [tree(["100644", "a.yaml"], ["40000", "b"], ["120000", "c"]), tree(["160000", "ü"])];

const packets: FuzzedParser = {
  name: "packets of git",
  samples: () =>
    ["000eversion 2\n000cls-refs\n0000", "000dpackfile\n00010008\u0001abc0002"].map((each) => Buffer.from(each)),
  run(bytes) {
    const read = (...chunks: readonly Buffer[]) => {
      const reader = new PacketReader();
      const found = chunks.flatMap((chunk) => [...reader.read(chunk)].map(String));
      reader.end();
      return found;
    };
    const whole = read(bytes);
    const at = Math.floor(bytes.length / 3);
    assert.deepEqual(
      read(bytes.subarray(0, at), bytes.subarray(at)),
      whole,
      "pieces are read otherwise than the whole",
    );
  },
};

const pack: FuzzedParser = {
  name: "a pack of git",
  samples() {
    const blob = Buffer.from("a: 1\n".repeat(20));
    const objects = [
      { type: packTypes.commit, data: Buffer.from(commitText) },
      { type: packTypes.tree, data: trees()[0] ?? Buffer.alloc(0) },
      { type: packTypes.blob, data: blob },
    ];
    const length = writeObject(objects[2] ?? { type: 3, data: blob }).length;
    const delta = { type: packTypes.ofsDelta, data: appendingDelta(blob.length, "more"), base: distance(length) };
    return [writePack(objects), writePack([...objects, delta])];
  },
  repair: (bytes) => withChecksum(bytes.subarray(0, Math.max(0, bytes.length - 20))),
  async run(bytes, samples) {
    const opened = await PackObjects.open(bytes, {
      limits: { ...defaultGitLimits, maxObjectBytes: 2 ** 22 },
      pace: new Pace(60),
    });
    assert.ok(opened);
    if (!samples.some((sample) => sample.equals(bytes))) acceptedByGit(bytes);
  },
};

function acceptedByGit(bytes: Buffer): void {
  const folder = mkdtempSync(join(tmpdir(), "starling-fuzz-"));
  try {
    writeFileSync(join(folder, "x.pack"), bytes);
    const env = { ...process.env, GIT_DIR: folder, GIT_CONFIG_GLOBAL: "/dev/null", GIT_CONFIG_NOSYSTEM: "1" };
    const git = spawnSync("git", ["index-pack", join(folder, "x.pack")], { env, cwd: folder, encoding: "utf8" });
    assert.equal(git.status, 0, `git refuses a pack that is read: ${git.stderr}`);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

const treeParser: FuzzedParser = {
  name: "a tree of git",
  samples: trees,
  run(bytes) {
    const written = [...treeEntries(bytes)].map(({ mode, name, oid }) =>
      Buffer.concat([Buffer.from(`${mode} `, "latin1"), Buffer.from(name), Buffer.from([0]), Buffer.from(oid, "hex")]),
    );
    // A name that is no UTF-8 is shown with marks in its place.
    if (
      bytes.equals(Buffer.from(bytes.toString("latin1"), "latin1")) &&
      !written.some((each) => each.includes("\ufffd"))
    )
      assert.ok(Buffer.concat(written).equals(bytes), "what is read is not what was there");
  },
};

/** A text that is shown has 500 characters, of which each may be written as `\u001b`. */
const mostShown = 6 * 501;

const commits: FuzzedParser = {
  name: "a commit of git",
  samples: () => [Buffer.from(commitText)],
  run(bytes) {
    const commit = parseCommit("1".repeat(40), bytes);
    for (const said of Object.values(commit))
      assert.ok(said.length <= mostShown && !/\p{Cc}/u.test(said), `it is shown as it is: ${JSON.stringify(said)}`);
    assert.ok(Number.isFinite(Date.parse(commit.committedAt)), commit.committedAt);
    signedCommit(bytes);
    assert.match(treeOf(bytes), /^[0-9a-f]{40}$/);
  },
};

const tags: FuzzedParser = {
  name: "a tag of git",
  samples: () => [Buffer.from(tagText)],
  run(bytes) {
    signedTag(bytes);
    tagName(bytes);
    assert.match(taggedObject(bytes), /^[0-9a-f]{40}$/);
  },
};

const tarBlock = 512;

/** Writes the checksums of headers anew. */
function withTarChecksums(archive: Buffer): Buffer {
  const tar = gunzipSync(archive);
  for (let at = 0; at + tarBlock <= tar.length; at += tarBlock) {
    if (tar.toString("latin1", at + 257, at + 262) !== "ustar") continue;
    tar.fill(0x20, at + 148, at + 156);
    const sum = tar.subarray(at, at + tarBlock).reduce((all, byte) => all + byte, 0);
    tar.write(`${sum.toString(8).padStart(6, "0")}\0 `, at + 148, "latin1");
  }
  return gzipSync(tar);
}

const archive: FuzzedParser = {
  name: "a tar",
  share: 20,
  // The mutations are of what is packed: of a gzip, they would all fail its checksum.
  samples: async () => [
    gunzipSync(
      await tarGz([
        { name: "a/b.yaml", body: "b: 1\n" },
        { name: "c", body: "c".repeat(600) },
      ]),
    ),
    gunzipSync(
      await tarGz([
        { name: "d/", type: "directory" },
        { name: "d/e", body: "" },
        { name: `${"l".repeat(120)}/f`, body: "f" },
      ]),
    ),
  ],
  async run(bytes) {
    for (const packed of [gzipSync(bytes), withTarChecksums(gzipSync(bytes)), bytes]) {
      const files = await readTarGz(packed, { folders: "passed over" }).catch((error: unknown) => {
        if (error instanceof StarlingError) return [];
        throw error;
      });
      const paths = files.map(({ path }) => path);
      assert.equal(new Set(paths).size, paths.length, "a name is there twice");
      for (const path of paths) {
        assert.ok(!path.startsWith("/") && !path.split("/").some((part) => part === ".." || part === ""), path);
      }
    }
  },
};

const indexText = [
  "apiVersion: v1",
  "entries:",
  "  other:",
  "  - version: 9.9.9",
  "    urls: [other-9.9.9.tgz]",
  "  web:",
  "  - apiVersion: v2",
  `    digest: ${"a".repeat(64)}`,
  "    description: |",
  "      some text",
  "    urls:",
  "    - web-1.0.0.tgz",
  "    version: 1.0.0",
  "generated: 2026-01-02T03:04:05Z",
  "",
].join("\n");
const index: FuzzedParser = {
  name: "an index of Helm",
  samples: () => [
    Buffer.from(indexText),
    Buffer.from(JSON.stringify({ entries: { web: [{ version: "1.0.0", urls: ["x"] }] } })),
  ],
  run(bytes) {
    const found = chartVersions(text(bytes), "web");
    if (typeof found === "string") return;
    // One more line makes the text one that Helm does not write, so that it is parsed as a whole.
    const whole = chartVersions(`# whole\n${text(bytes).replace(/\nentries:\n/, "\nentries: # whole\n")}`, "web");
    if (typeof whole !== "string" && whole.length > 0)
      assert.deepEqual(found, whole, "the part of the index is read otherwise than the whole");
  },
};

const manifestText = JSON.stringify({
  schemaVersion: 2,
  mediaType: "application/vnd.oci.image.manifest.v1+json",
  config: { mediaType: "a", digest: `sha256:${"0".repeat(64)}`, size: 2 },
  layers: [{ mediaType: "b", digest: `sha256:${"1".repeat(64)}`, size: 3 }],
  annotations: { "org.opencontainers.image.title": "t" },
});

const challengeText = 'Bearer realm="https://auth.example/token",service="registry",scope="repository:a:pull"';

/** A registry whose every answer has these bytes in its body and in its headers. */
function registryOf(bytes: Buffer, status: number): Registry {
  const value = bytes.toString("latin1").replaceAll(/[^\t\x20-\x7e]/g, "");
  const headers = { link: value, "www-authenticate": value, "docker-content-digest": value };
  const http = {
    ask: async ({ url }: RemoteQuestion) =>
      url.includes("/token") ? { url, status: 200, headers: {}, body: bytes } : { url, status, headers, body: bytes },
  };
  const use = { url: "oci://reg.example/a", at: "spec.oci", credentials: undefined, timeLeftMs: () => 1000 };
  return new Registry({ ...use, repository: ociRepository(use.url) }, http);
}

const refersTo = (each: Registry) => each.referrers(`sha256:${"a".repeat(64)}`, "a");
const registry: FuzzedParser = {
  name: "answers of a registry",
  samples: () =>
    [
      JSON.stringify({ name: "a", tags: ["1.0.0", "latest"] }),
      '</v2/a/tags/list?n=1000&last=1.0.0>; rel="next"',
      challengeText,
      JSON.stringify({ token: "abc", expires_in: 300 }),
    ].map((each) => Buffer.from(each)),
  async run(bytes) {
    for (const status of [200, 401, 404]) {
      for (const ask of [(each: Registry) => each.tags(), (each: Registry) => each.digestOf("1.0.0"), refersTo]) {
        await ask(registryOf(bytes, status)).catch((error: unknown) => {
          if (!(error instanceof StarlingError)) throw error;
        });
      }
    }
  },
};

const wire = (number: number) => Buffer.from([0, 0, 0, number]);
const seedKey = createPrivateKey({
  key: Buffer.concat([Buffer.from("302e020100300506032b657004220420", "hex"), Buffer.alloc(32, 7)]),
  format: "der",
  type: "pkcs8",
});
const publicWire = Buffer.concat([
  wireBytes("ssh-ed25519"),
  wireBytes(createPublicKey(seedKey).export({ format: "der", type: "spki" }).subarray(-32)),
]);
const keyLine = `ssh-ed25519 ${publicWire.toString("base64")} ana`;
const signedContent = Buffer.from("tree 1\n");

function sshSignature(): Buffer {
  const magic = Buffer.from("SSHSIG");
  const digest = createHash("sha512").update(signedContent).digest();
  const parts = [Buffer.from("git"), Buffer.alloc(0), Buffer.from("sha512")];
  const blob = Buffer.concat([magic, ...parts.map(wireBytes), wireBytes(digest)]);
  const made = Buffer.concat([wireBytes("ssh-ed25519"), wireBytes(sign(null, blob, seedKey))]);
  return Buffer.concat([magic, wire(1), wireBytes(publicWire), ...parts.map(wireBytes), wireBytes(made)]);
}

const armoured = (bytes: Buffer) =>
  `-----BEGIN SSH SIGNATURE-----\n${bytes.toString("base64").replaceAll(/.{70}/g, "$&\n")}\n-----END SSH SIGNATURE-----\n`;

const sshsig: FuzzedParser = {
  name: "a signature of SSH",
  samples: () => [sshSignature()],
  run(bytes, samples) {
    const key = parseSshKey(keyLine);
    assert.ok(typeof key !== "string", String(key));
    verifySshSignature(signedContent, text(bytes), [key]);
    const { kind } = verifySshSignature(signedContent, armoured(bytes), [key]);
    const isSample = samples.some((sample) => sample.equals(bytes));
    assert.equal(kind === "verified", isSample, `a signature that ${isSample ? "is right" : "was changed"} is ${kind}`);
  },
};

const sshKeys = noThrow("a public key of SSH", [keyLine], (line) => parseSshKey(line));

const knownHosts = noThrow(
  "known_hosts",
  [
    `reg.example,*.acme.io ${keyLine}\n@revoked * ${keyLine}\n# comment\n`,
    `|1|MTIzNDU2Nzg5MDEyMzQ1Njc4OTA=|MTIzNDU2Nzg5MDEyMzQ1Njc4OTA= ${keyLine}\n[reg.example]:2222 ${keyLine}\n`,
  ],
  (hosts) => {
    const { keys, types } = hostKeysFor({ host: "reg.example", port: 22 }, hosts);
    for (const key of keys)
      assert.ok(types.includes(Buffer.from(key).toString("latin1", 4, 4 + Buffer.from(key).readUInt32BE(0))));
  },
);

const pgpKeys = once(async () => {
  const pgp = await import("openpgp");
  const pair = await pgp.generateKey({ userIDs: [{ name: "Ana" }], date: new Date("2026-01-01") });
  const privateKey = await pgp.readPrivateKey({ armoredKey: pair.privateKey });
  const message = await pgp.createMessage({ binary: new Uint8Array(signedContent) });
  const date = new Date("2026-01-02");
  const armour = await pgp.sign({ message, signingKeys: privateKey, detached: true, date });
  return { publicKey: pair.publicKey, armour: String(armour) };
});
const pgp: FuzzedParser = {
  name: "a signature and a key of OpenPGP",
  share: 3,
  samples: async () => Object.values(await pgpKeys()).map((each) => Buffer.from(each)),
  async run(bytes, samples) {
    const { publicKey, armour } = await pgpKeys();
    const now = new Date("2026-02-01");
    await verifyPgp({ content: signedContent, armour: text(bytes) }, [publicKey], now);
    await verifyPgp({ content: signedContent, armour }, [text(bytes)], now);
    const { kind } = await verifyPgp({ content: Buffer.from("tree 2\n"), armour: text(bytes) }, [publicKey], now);
    assert.notEqual(kind, "verified", "a signature of another content");
    assert.ok(samples.length > 0);
  },
};

const clearText =
  "-----BEGIN PGP SIGNED MESSAGE-----\nHash: SHA512\n\nname: web\nversion: 1.0.0\n\n...\nfiles:\n  web-1.0.0.tgz: sha256:" +
  `${"a".repeat(64)}\n-----BEGIN PGP SIGNATURE-----\n\nAAAA\n-----END PGP SIGNATURE-----\n`;
const provenance = noThrow("the provenance of a chart", [clearText], (said) => {
  const message = readClearSigned(said);
  readProvenance(message?.text ?? said);
});

const documentText =
  'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, labels: &l {x: "1"}}\ndata:\n  <<: *l\n  b: |\n    text\n---\nkind: List\napiVersion: v1\nitems: []\n';
const documents = noThrow(
  "documents of YAML",
  [documentText, '{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}}'],
  (said) => {
    parseDocuments(said, "a.yaml");
    for (const { object } of parseManifests(said, "a.yaml")) assert.equal(typeof JSON.stringify(object), "string");
  },
);

const chart = noThrow(
  "the files of a chart",
  [
    "apiVersion: v2\nname: web\nversion: 1.0.0\ndependencies: []\n",
    "apiVersion: v1\nname: web\nversion: 1.0.0\n$ref: '#/a'\n",
  ],
  (said) => {
    const files = {
      "Chart.yaml": said,
      "values.yaml": said,
      "values.schema.json": "{}",
      "templates/a.yaml": `{{ ${said} }}`,
    };
    readChart("web", new Map(Object.entries(files).map(([path, content]) => [path, Buffer.from(content)])));
  },
);

const headers: FuzzedParser = {
  name: "headers about limits and versions",
  samples: () => ["120", "1767323045", "Fri, 02 Jan 2026 03:04:05 GMT", 'W/"abc"'].map((each) => Buffer.from(each)),
  run(bytes) {
    const value = text(bytes);
    const now = new Date("2026-01-02T03:04:05Z");
    const until = limitedUntil({ status: 429, headers: { "retry-after": value, "x-ratelimit-reset": value } }, now);
    const seconds = ((until?.getTime() ?? Number.NaN) - now.getTime()) / 1000;
    assert.ok(seconds >= 1 && seconds <= 3600, `the wait is ${seconds} s`);
    const listing = listingOf("1", { headers: { etag: value, "last-modified": value, date: value } });
    assert.ok((listing?.etag ?? "").length < 300 && !/[^\x20-\x7e]/.test(listing?.etag ?? ""));
  },
};

export const fuzzedParsers: readonly FuzzedParser[] = [
  ...[packets, pack, treeParser, commits, tags, archive, index, registry, sshsig, sshKeys, knownHosts, pgp, provenance],
  noThrow("a manifest of a registry", [manifestText], (said) => {
    const manifest = readManifest(Buffer.from(said));
    if (typeof manifest === "string") return;
    const { layers = [] } = JSON.parse(said) as { readonly layers?: readonly { readonly digest: string }[] };
    assert.deepEqual(
      manifest.layers.map(({ digest }) => digest),
      layers.map(({ digest }) => digest),
    );
  }),
  noThrow("the challenge of a registry", [challengeText, "Basic realm=x"], (said) => {
    const found = parseChallenge(said);
    if (found?.scheme === "bearer") assert.ok(URL.canParse(found.realm));
  }),
  ...[documents, chart, headers],
  ...sourceParsers,
];

/** Whether an error refuses the input, and is no fault of the parser. */
export function isRefusal(error: unknown): boolean {
  return error instanceof StarlingError || error instanceof ManifestError;
}
