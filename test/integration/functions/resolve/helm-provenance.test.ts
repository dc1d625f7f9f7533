import { createHash } from "node:crypto";
import { afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { type RegistryServer, startRegistryServer } from "#local/registry/registry-server.ts";
import { type FileAnswer, type FileServer, startFileServer } from "#test/support/file-server.ts";
import { packedChart } from "#test/support/packed-chart.ts";
import { clearSign, type PgpKey, pgpKey, revokedKey } from "#test/support/pgp-keys.ts";
import { conditionsOf } from "#test/support/signed-sources.ts";
import { SourceWorld } from "#test/support/source-world.ts";

const sha256 = (bytes: Uint8Array) => createHash("sha256").update(bytes).digest("hex");
let world: SourceWorld;
let bot: PgpKey;

beforeAll(async () => {
  bot = await pgpKey();
});
beforeEach(() => {
  world = new SourceWorld();
  world.now = new Date();
});

interface Signing {
  readonly key?: PgpKey;
  readonly before?: number;
  readonly name?: string;
  readonly version?: string;
  readonly digest?: string;
  readonly file?: string;
}

/** A provenance file in the form of Helm's. */
function provenanceOf(packed: Uint8Array, signing: Signing = {}): Promise<string> {
  const { key = bot, before = 0, name = "web", version = "1.0.0" } = signing;
  const { digest = sha256(packed), file = `${name}-${version}.tgz` } = signing;
  const text = `apiVersion: v2\nname: ${name}\nversion: ${version}\n\n...\nfiles:\n  ${file}: sha256:${digest}\n`;
  return clearSign(text, key, { before });
}

/** A place where a chart `web` and its provenance are published. */
interface Place {
  readonly url: string;
  publish(version: string, packed: Uint8Array, provenance?: string): void;
  /** Number of times that a packed chart was read. */
  read(): number;
  stop(): Promise<void>;
}

async function repository(): Promise<Place> {
  const files: Record<string, FileAnswer> = {};
  const entries: string[] = [];
  const server: FileServer = await startFileServer(({ url }) => files[url] ?? { status: 404 });
  return {
    url: server.url,
    publish(version, packed, provenance) {
      files[`/web-${version}.tgz`] = { body: packed };
      if (provenance !== undefined) files[`/web-${version}.tgz.prov`] = { body: provenance };
      entries.push(`  - version: ${version}\n    urls: [web-${version}.tgz]\n`);
      files["/index.yaml"] = { body: `apiVersion: v1\nentries:\n  web:\n${entries.join("")}` };
    },
    read: () => server.asked.filter(({ url }) => url.endsWith(".tgz")).length,
    stop: () => server.stop(),
  };
}

async function registry(): Promise<Place> {
  const blobs: string[] = [];
  const server: RegistryServer = await startRegistryServer();
  const charts = new Set<string>();
  const ask = world.http.ask.bind(world.http);
  world.http = {
    ask(question) {
      if ([...charts].some((digest) => question.url.endsWith(digest))) blobs.push(question.url);
      return ask(question);
    },
  };
  return {
    url: `oci://${server.host}/charts`,
    publish(version, packed, provenance) {
      charts.add(sha256(packed));
      server.pushChart("charts/web", version, packed, provenance === undefined ? undefined : Buffer.from(provenance));
    },
    read: () => blobs.length,
    stop: () => server.stop(),
  };
}

describe.each([
  ["a Helm repository", repository],
  ["a registry", registry],
])("provenance of a chart in %s", (_legend, start) => {
  let place: Place;
  beforeEach(async () => {
    place = await start();
  });
  afterEach(() => place.stop());

  const specOf = (keys: readonly PgpKey[]) => ({
    helm: {
      url: place.url,
      chart: "web",
      verify: { provenance: { keys: keys.map(({ publicKey }) => publicKey) } },
    },
  });

  /** Resolves, and expects a refusal that reads no chart and keeps the last good one. */
  async function expectRefused(reason: string, message: string): Promise<void> {
    const [before, read] = [[...world.blobs.keys()], place.read()];
    const kept = (await world.resolve()).status.artifact;
    const row = await world.resolve();
    const refused = { status: "False", reason, message: expect.stringContaining(message) };
    expect(conditionsOf(row)).toMatchObject({ Ready: refused, SourceVerified: refused });
    expect(row.status.artifact).toEqual(kept);
    expect([...world.blobs.keys()]).toEqual(before);
    expect(place.read()).toBe(read);
  }

  test("a chart with a signed checksum is stored, and a version without one is refused while the last good one stays [source.provenance.signed]", async () => {
    const packed = await packedChart("web", "1.0.0");
    place.publish("1.0.0", packed, await provenanceOf(packed));
    await world.put(specOf([await pgpKey(), bot]));
    const row = await world.resolve();
    expect(conditionsOf(row)).toMatchObject({
      Ready: { status: "True" },
      SourceVerified: {
        status: "True",
        reason: "Succeeded",
        message: `verified chart web 1.0.0 with the key ${bot.fingerprint} of Ana <ana@acme.io> (mode provenance)`,
      },
    });
    expect(place.read()).toBe(1);
    place.publish("1.0.1", await packedChart("web", "1.0.1"));
    await expectRefused("SignatureMissing", "chart web 1.0.1 of");
    expect((await world.resolve()).status.artifact?.revision).toMatch(/^1\.0\.0/);
  });

  test.each<[string, string, (packed: Buffer) => Promise<Signing>]>([
    ["SignatureKeyUnknown", "which is not trusted", async () => ({ key: await pgpKey() })],
    ["SignatureInvalid", "has the provenance file of web 0.9.0", async () => ({ version: "0.9.0" })],
    ["SignatureInvalid", "has the provenance file of api 1.0.0", async () => ({ name: "api" })],
    ["SignatureInvalid", "without web-1.0.0.tgz", async () => ({ file: "web-1.0.1.tgz" })],
    ["SignatureInvalid", "that Helm does not write", async () => ({ digest: "abc" })],
  ])("a chart is refused with %s: %s [source.provenance.signed]", async (reason, message, signing) => {
    const packed = await packedChart("web", "1.0.0");
    place.publish("1.0.0", packed, await provenanceOf(packed, await signing(packed)));
    await world.put(specOf([bot]));
    await expectRefused(reason, message);
  });

  test("the provenance of a key that is expired or revoked is refused [source.provenance.keys]", async () => {
    const packed = await packedChart("web", "1.0.0");
    const old = await pgpKey({ madeBefore: 20, validFor: 10 });
    place.publish("1.0.0", packed, await provenanceOf(packed, { key: old, before: 15 }));
    await world.put(specOf([old]));
    await expectRefused("SignatureKeyExpired", old.fingerprint);
    place.publish("1.0.1", packed, await provenanceOf(packed, { version: "1.0.1" }));
    await world.put(specOf([await revokedKey(bot)]));
    await expectRefused("SignatureKeyRevoked", bot.fingerprint);
  });

  test.each<[string, string, (provenance: string) => string]>([
    ["changed", "does not fit its content", (text) => text.replace("apiVersion: v2", "apiVersion: v3")],
    ["without a signature", "is no signed message", (text) => text.replace(/-----BEGIN PGP SIGNATURE[^$]+/, "")],
    ["with lines before it", "is no signed message", (text) => `name: evil\n${text}`],
    ["with lines behind it", "is no signed message", (text) => `${text}\nfiles: {}\n`],
    ["with another header", "is no signed message", (text) => text.replace("Hash: ", "Comment: x\nHash: ")],
    [
      "with lines between",
      "does not fit its content",
      (text) => text.replace("\n-----BEGIN PGP SIGNATURE", "\nmore\n-----BEGIN PGP SIGNATURE"),
    ],
    ["that is empty", "is no signed message", () => ""],
  ])("a provenance file %s is refused: %s [source.provenance.signed]", async (_what, message, change) => {
    const packed = await packedChart("web", "1.0.0");
    place.publish("1.0.0", packed, change(await provenanceOf(packed)));
    await world.put(specOf([bot]));
    await expectRefused("SignatureInvalid", message);
  });

  test("another set of keys verifies the present version again [source.provenance.keys]", async () => {
    const packed = await packedChart("web", "1.0.0");
    place.publish("1.0.0", packed, await provenanceOf(packed));
    await world.put(specOf([bot]));
    const { artifact } = (await world.resolve()).status;
    await world.put(specOf([await pgpKey()]));
    await expectRefused("SignatureKeyUnknown", bot.fingerprint);
    expect((await world.resolve()).status.artifact).toEqual(artifact);
  });
});

describe("a chart that is not the signed one", () => {
  test("a repository's chart with other bytes is refused, and nothing is stored [source.provenance.bytes]", async () => {
    const place = await repository();
    const [signed, other] = [await packedChart("web", "1.0.0"), await packedChart("web", "1.0.1")];
    place.publish("1.0.0", other, await provenanceOf(signed));
    await world.put({ helm: { url: place.url, chart: "web", verify: { provenance: { keys: [bot.publicKey] } } } });
    expect(await world.ready()).toMatchObject({
      reason: "SignatureInvalid",
      message: expect.stringContaining(
        `has the checksum ${sha256(other)}, and its provenance file says ${sha256(signed)}`,
      ),
    });
    expect([...world.blobs.keys()]).toEqual([]);
    await place.stop();
  });

  test("a registry's chart with another digest is refused before it is read [source.provenance.bytes]", async () => {
    const place = await registry();
    const [signed, other] = [await packedChart("web", "1.0.0"), await packedChart("web", "1.0.1")];
    place.publish("1.0.0", other, await provenanceOf(signed));
    await world.put({ helm: { url: place.url, chart: "web", verify: { provenance: { keys: [bot.publicKey] } } } });
    expect(await world.ready()).toMatchObject({ reason: "SignatureInvalid" });
    expect(place.read()).toBe(0);
    await place.stop();
  });

  test("a provenance file that is published after the chart is found at the next poll [source.provenance.late]", async () => {
    const place = await repository();
    const packed = await packedChart("web", "1.0.0");
    place.publish("1.0.0", packed);
    await world.put({ helm: { url: place.url, chart: "web", verify: { provenance: { keys: [bot.publicKey] } } } });
    expect(await world.ready()).toMatchObject({ reason: "SignatureMissing" });
    place.publish("1.0.0", packed, await provenanceOf(packed));
    world.now = new Date();
    expect(await world.ready()).toMatchObject({ status: "True" });
    await place.stop();
  });
});
