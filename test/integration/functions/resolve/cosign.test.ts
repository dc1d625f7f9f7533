/** Artifacts of a registry that are signed with keys and by identities, and those that are not. */
import { afterEach, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import { attachBundle, bundleType, keyedBundle, signBytes, statementOf } from "#local/registry/cosign.ts";
import { cosignKeyPair, type KeyPair } from "#local/registry/cosign-keys.ts";
import {
  type RegistryServer,
  type RegistryServerOptions,
  startRegistryServer,
} from "#local/registry/registry-server.ts";
import { hexOf, sha256 } from "#shared/base/digest.ts";
import { type PrivateSigstore, startSigstore } from "#test/support/sigstore.ts";
import { SourceWorld } from "#test/support/source-world.ts";
import { tarGz } from "#test/support/tar-gz.ts";

const files = "application/vnd.cncf.flux.content.v1.tar+gzip";
const repository = "acme/shop";
const simpleType = "application/vnd.dev.cosign.simplesigning.v1+json";
const identity = {
  issuer: "https://token.acme.example",
  name: "https://git.acme.example/shop/release.yml@refs/tags/v1",
};

let registry: RegistryServer;
let world: SourceWorld;
let asked: string[];

async function start(options: RegistryServerOptions = {}): Promise<void> {
  asked = [];
  registry = await startRegistryServer({ ...options, onRequest: ({ method, url }) => asked.push(`${method} ${url}`) });
}

beforeEach(async () => {
  world = new SourceWorld();
  await start();
});
afterEach(() => registry.stop());

const push = async (content: string, tag = "latest") => {
  const layer = { mediaType: files, content: await tarGz([{ name: "a.yaml", body: content }]) };
  return registry.push(repository, tag, { layers: [layer] });
};
const inRegistry = (digest: string) => ({ registry, repository, digest });
const oci = (cosign: object, more: object = {}) => ({
  oci: { url: `oci://${registry.host}/${repository}`, ...more, verify: { cosign } },
});
const trusting = (...keys: readonly KeyPair[]) => oci({ keys: keys.map(({ publicKey }) => publicKey) });
const conditionOf = async (type: string) =>
  (await world.resolve()).status.conditions.find((each) => each.type === type);
const layersAsked = () => asked.filter((line) => line.includes("/blobs/"));

interface Signature {
  readonly payload: Uint8Array;
  readonly annotations: Record<string, string>;
}

const payloadOf = (digest: string) =>
  Buffer.from(
    JSON.stringify({
      critical: {
        identity: { "docker-reference": `acme/shop` },
        image: { "docker-manifest-digest": digest },
        type: "cosign container image signature",
      },
      optional: null,
    }),
  );
const signedWith = ({ privateKey }: KeyPair, payload: Uint8Array): Signature => ({
  payload,
  annotations: { "dev.cosignproject.cosign/signature": signBytes(payload, privateKey).toString("base64") },
});
/** Puts signatures where cosign 2 puts them. */
const putSimple = (digest: string, signatures: readonly Signature[]) =>
  registry.push(repository, `sha256-${hexOf(digest)}.sig`, {
    layers: signatures.map(({ payload, annotations }) => ({ mediaType: simpleType, content: payload, annotations })),
  });
const signSimply = (digest: string, key: KeyPair) => putSimple(digest, [signedWith(key, payloadOf(digest))]);
const signAsBundle = (digest: string, key: KeyPair, statement = statementOf(digest)) =>
  attachBundle(inRegistry(digest), keyedBundle(statement, key));

describe("signatures of keys", () => {
  test.each(["P-256", "P-384", "Ed25519", "RSA"] as const)(
    "a key of the type %s counts in both forms [source.cosign.keys]",
    async (type) => {
      const key = cosignKeyPair(type);
      for (const sign of [signSimply, signAsBundle]) {
        world = new SourceWorld();
        const digest = await push(`${type} ${sign.name}`);
        sign(digest, key);
        await world.put(trusting(key));
        expect(await conditionOf("SourceVerified")).toMatchObject({
          status: "True",
          message: expect.stringContaining(`${digest} with the key ${key.fingerprint} (mode cosign)`),
        });
        expect((await world.files()).map(({ content }) => `${Buffer.from(content)}`)).toEqual([`${type} ${sign.name}`]);
      }
    },
  );

  test("an unsigned artifact is not packaged, and no layer is asked for [source.cosign.before-files]", async () => {
    const digest = await push("one");
    await world.put(trusting(cosignKeyPair()));
    expect(await world.ready()).toMatchObject({
      status: "False",
      reason: "SignatureMissing",
      message: expect.stringContaining(
        `${digest} of oci://${registry.host}/acme/shop is not signed; sign it with cosign`,
      ),
    });
    expect(layersAsked()).toEqual([]);
    expect((await world.resolve()).status.artifact).toBeUndefined();
  });

  test("a signature that comes after the artifact counts at the next poll, without another digest [source.cosign.late]", async () => {
    const key = cosignKeyPair();
    const digest = await push("one");
    await world.put(trusting(key));
    expect(await world.ready()).toMatchObject({ reason: "SignatureMissing" });
    signAsBundle(digest, key);
    expect(await world.ready()).toMatchObject({ message: expect.stringMatching(/^stored artifact/) });
  });

  test("an unchanged tag is not verified again", async () => {
    const key = cosignKeyPair();
    signAsBundle(await push("one"), key);
    await world.put(trusting(key));
    await world.resolve();
    asked.length = 0;
    await world.resolve();
    expect(asked).toEqual(["HEAD /v2/acme/shop/manifests/latest"]);
  });

  test("a tag that moves to an unsigned digest leaves the last good artifact [source.cosign.before-files]", async () => {
    const key = cosignKeyPair();
    const good = await push("one");
    signAsBundle(good, key);
    await world.put(trusting(key));
    await world.resolve();
    await push("two");
    expect(await conditionOf("SourceVerified")).toMatchObject({ status: "False", reason: "SignatureMissing" });
    expect((await world.resolve()).status.artifact?.revision).toBe(`latest@${good}`);
    expect((await world.files()).map(({ content }) => `${Buffer.from(content)}`)).toEqual(["one"]);
  });

  test("a key that is removed verifies the same digest again [source.cosign.removed-key]", async () => {
    const [old, next] = [cosignKeyPair(), cosignKeyPair()];
    const digest = await push("one");
    signSimply(digest, old);
    await world.put(trusting(old, next));
    expect(await world.ready()).toMatchObject({ message: expect.stringMatching(/^stored artifact/) });
    await world.put(trusting(next));
    expect(await world.ready()).toMatchObject({
      reason: "SignatureKeyUnknown",
      message: expect.stringContaining("is not of the trusted key, or it was changed after it was signed"),
    });
    signAsBundle(digest, next);
    expect(await world.ready()).toMatchObject({ message: expect.stringMatching(/^stored artifact/) });
  });

  test("a digest that the Source had before it demanded a signature is verified, also without a poll of its tag", async () => {
    const digest = await push("one");
    const { verify: _verify, ...place } = trusting(cosignKeyPair()).oci;
    await world.put({ oci: { ...place, ref: { digest } } });
    expect(await world.ready()).toMatchObject({ status: "True" });
    await world.put(oci({ keys: [cosignKeyPair().publicKey] }, { ref: { digest } }));
    expect(await world.ready()).toMatchObject({ reason: "SignatureMissing" });
  });

  test("one good signature among others counts [source.cosign.places]", async () => {
    const [key, other] = [cosignKeyPair(), cosignKeyPair("RSA")];
    const digest = await push("one");
    signAsBundle(digest, other);
    attachBundle(inRegistry(digest), { mediaType: "application/vnd.dev.sigstore.bundle.v0.9+json" });
    const payload = payloadOf(digest);
    putSimple(digest, [signedWith(other, payload), { payload, annotations: {} }, signedWith(key, payload)]);
    await world.put(trusting(key));
    expect(await world.ready()).toMatchObject({ message: expect.stringMatching(/^stored artifact/) });
  });

  test("a registry without the listing of referrers has the bundles in an index under a tag [source.cosign.places]", async () => {
    await registry.stop();
    await start({ referrers: false });
    const key = cosignKeyPair();
    const digest = await push("one");
    const signature = signAsBundle(digest, key);
    const listed = {
      mediaType: "application/vnd.oci.image.manifest.v1+json",
      digest: signature,
      size: 1,
      artifactType: bundleType,
    };
    const index = { schemaVersion: 2, mediaType: "application/vnd.oci.image.index.v1+json", manifests: [listed] };
    registry.putManifest(repository, `sha256-${hexOf(digest)}`, Buffer.from(JSON.stringify(index)), index.mediaType);
    await world.put(trusting(key));
    expect(await world.ready()).toMatchObject({ message: expect.stringMatching(/^stored artifact/) });
  });

  test("a chart of a registry is verified [source.cosign.places]", async () => {
    const key = cosignKeyPair();
    const packed = await tarGz([{ name: "web/Chart.yaml", body: "apiVersion: v2\nname: web\nversion: 1.0.0\n" }]);
    const digest = registry.pushChart("acme/charts/web", "1.0.0", packed);
    const spec = {
      url: `oci://${registry.host}/acme/charts`,
      chart: "web",
      verify: { cosign: { keys: [key.publicKey] } },
    };
    await world.put({ helm: spec });
    expect(await world.ready()).toMatchObject({ reason: "SignatureMissing" });
    expect(layersAsked()).toEqual([]);
    attachBundle({ registry, repository: "acme/charts/web", digest }, keyedBundle(statementOf(digest), key));
    expect(await conditionOf("SourceVerified")).toMatchObject({ status: "True" });
  });
});

describe("signatures of keys that do not count", () => {
  const key = cosignKeyPair();
  const other = sha256("another");
  const changed = (digest: string) => {
    const bundle = keyedBundle(statementOf(other), key) as { dsseEnvelope: { payload: string } };
    bundle.dsseEnvelope.payload = Buffer.from(statementOf(digest)).toString("base64");
    return bundle;
  };
  const cases: readonly [string, (digest: string) => void, string, string][] = [
    [
      "a signature of another digest",
      (digest) => putSimple(digest, [signedWith(key, payloadOf(other))]),
      "SignatureOfAnother",
      `is of another artifact: it says ${other}`,
    ],
    [
      "a bundle of another digest",
      (digest) => signAsBundle(digest, key, statementOf(other)),
      "SignatureOfAnother",
      `it says ${other}`,
    ],
    [
      "a payload that was changed after it was signed",
      (digest) => putSimple(digest, [{ ...signedWith(key, payloadOf(other)), payload: payloadOf(digest) }]),
      "SignatureKeyUnknown",
      "or it was changed after it was signed",
    ],
    [
      "a bundle that was changed after it was signed",
      (digest) => attachBundle(inRegistry(digest), changed(digest)),
      "SignatureInvalid",
      `names the key ${key.fingerprint} and does not fit its content`,
    ],
    [
      "a bundle of an unknown key",
      (digest) => signAsBundle(digest, cosignKeyPair("Ed25519")),
      "SignatureKeyUnknown",
      "which is not trusted",
    ],
    [
      "an attestation",
      (digest) => signAsBundle(digest, key, statementOf(digest, "https://slsa.dev/provenance/v1")),
      "SignatureInvalid",
      "is an attestation (https://slsa.dev/provenance/v1), which is no signature of the artifact",
    ],
    [
      "a payload with the digest twice",
      (digest) => {
        const text = payloadOf(digest).toString().replace('"image":{', `"image":{"docker-manifest-digest":"${other}",`);
        putSimple(digest, [signedWith(key, Buffer.from(text))]);
      },
      "SignatureInvalid",
      "has a member twice",
    ],
    [
      "a bundle of an unknown version",
      (digest) =>
        attachBundle(inRegistry(digest), {
          ...keyedBundle(statementOf(digest), key),
          mediaType: "application/vnd.dev.sigstore.bundle.v0.9+json",
        }),
      "SignatureInvalid",
      "is a bundle of an unknown version (application/vnd.dev.sigstore.bundle.v0.9+json)",
    ],
    [
      "1,000 signatures",
      (digest) =>
        putSimple(
          digest,
          Array.from({ length: 1000 }, () => signedWith(key, payloadOf(digest))),
        ),
      "SignatureInvalid",
      "has 1000 signatures, and Starling reads at most 50",
    ],
    [
      "a signature of 1 GB",
      (digest) => {
        const [layer] = [
          {
            mediaType: simpleType,
            digest: sha256("x"),
            size: 2 ** 30,
            annotations: signedWith(key, payloadOf(digest)).annotations,
          },
        ];
        const body = { schemaVersion: 2, mediaType: "application/vnd.oci.image.manifest.v1+json", layers: [layer] };
        registry.putManifest(repository, `sha256-${hexOf(digest)}.sig`, Buffer.from(JSON.stringify(body)));
      },
      "SignatureInvalid",
      `has a layer of ${2 ** 30} bytes; at most 65536 are taken`,
    ],
    [
      "a signature that is an index of itself",
      (digest) => {
        const index = { schemaVersion: 2, mediaType: "application/vnd.oci.image.index.v1+json", manifests: [] };
        registry.putManifest(
          repository,
          `sha256-${hexOf(digest)}.sig`,
          Buffer.from(JSON.stringify(index)),
          index.mediaType,
        );
      },
      "SignatureInvalid",
      "is in a manifest that is an index of images",
    ],
  ];
  test.each(cases)("%s is refused [source.cosign.refused]", async (_, sign, reason, message) => {
    const digest = await push("one");
    sign(digest);
    await world.put(trusting(key));
    expect(await world.ready()).toMatchObject({ reason, message: expect.stringContaining(message) });
    expect((await world.resolve()).status.artifact).toBeUndefined();
    expect(asked.filter((line) => line.startsWith("GET") && line.includes(sha256("one")))).toEqual([]);
  });

  test("referrers that lead in a circle end [source.cosign.refused]", async () => {
    await registry.stop();
    await start({ referrers: false });
    const digest = await push("one");
    const tag = `sha256-${hexOf(digest)}`;
    const indexType = "application/vnd.oci.image.index.v1+json";
    const inner = Buffer.from(JSON.stringify({ schemaVersion: 2, mediaType: indexType, manifests: [] }));
    const circle = registry.putManifest(repository, undefined, inner, indexType);
    const listed = { mediaType: indexType, digest: circle, size: inner.length, artifactType: bundleType };
    const index = Buffer.from(JSON.stringify({ schemaVersion: 2, mediaType: indexType, manifests: [listed] }));
    registry.putManifest(repository, tag, index, indexType);
    await world.put(trusting(key));
    expect(await world.ready()).toMatchObject({ reason: "SignatureInvalid" });
    expect(asked.length).toBeLessThan(10);
  });
});

describe("signatures of identities", () => {
  let sigstore: PrivateSigstore;
  beforeAll(async () => {
    sigstore = await startSigstore();
    return () => sigstore.stop();
  });

  const literal = (text: string) => text.replace(/[.@/]/g, (mark) => `\\${mark}`);
  const exactly = { issuer: literal(identity.issuer), subject: literal(identity.name) };
  const trustingIdentity = (of: object = exactly, trustedRoot = sigstore.trustedRoot()) =>
    oci({ identities: [of], trustedRoot });
  const signKeyless = async (digest: string, who = identity, by?: readonly ("log" | "clock")[]) =>
    attachBundle(inRegistry(digest), await sigstore.bundle(statementOf(digest), who, by));
  const signSimplyKeyless = async (digest: string, by?: "log" | "nothing") => {
    const payload = payloadOf(digest);
    putSimple(digest, [{ payload, annotations: await sigstore.annotations(payload, identity, by) }]);
  };

  test("a bundle counts, with the log's word about the time [source.cosign.identity]", async () => {
    const digest = await push("one");
    await signKeyless(digest);
    await world.put(trustingIdentity());
    expect(await conditionOf("SourceVerified")).toMatchObject({
      status: "True",
      message: expect.stringContaining(`of ${identity.name} (${identity.issuer})`),
    });
  });

  test("a signature under a tag counts, with the log's word about the time", async () => {
    await signSimplyKeyless(await push("one"));
    await world.put(trustingIdentity());
    expect(await world.ready()).toMatchObject({ message: expect.stringMatching(/^stored artifact/) });
  });

  test("a timestamp counts where the root has no log [source.cosign.time]", async () => {
    const digest = await push("one");
    await signKeyless(digest, identity, ["clock"]);
    await world.put(trustingIdentity(exactly, sigstore.trustedRoot(["tlogs"])));
    expect(await world.ready()).toMatchObject({ message: expect.stringMatching(/^stored artifact/) });
    await world.put(trustingIdentity());
    expect(await world.ready()).toMatchObject({
      reason: "SignatureNotLogged",
      message: expect.stringContaining("tlog entries"),
    });
  });

  test("a signature without a log and without a timestamp is refused [source.cosign.time]", async () => {
    await signSimplyKeyless(await push("one"), "nothing");
    await world.put(trustingIdentity());
    expect(await world.ready()).toMatchObject({ reason: "SignatureNotLogged" });
    expect(layersAsked().length).toBe(1);
  });

  test.each([
    ["a shorter subject", { ...exactly, subject: literal(identity.name.slice(0, -1)) }],
    ["a subject without its beginning", { ...exactly, subject: literal(identity.name.slice(1)) }],
    ["an alternative of which one is a part", { ...exactly, subject: `nobody|${literal(identity.name.slice(0, -1))}` }],
    ["another issuer", { ...exactly, issuer: "https://token\\.evil\\.example" }],
    ["an issuer in another line", { ...exactly, issuer: `(?m)^x$` }],
  ])("an identity with %s is refused [source.cosign.whole-name]", async (_, of) => {
    await signKeyless(await push("one"));
    await world.put(trustingIdentity(of));
    expect(await world.ready()).toMatchObject({
      reason: "SignatureIdentityUnknown",
      message: expect.stringContaining(
        `is of ${identity.name} (${identity.issuer}), which is none of the trusted identities`,
      ),
    });
    expect(layersAsked().length).toBe(1);
  });

  test("any of the identities counts, and a change of them verifies again [source.cosign.identity]", async () => {
    await signKeyless(await push("one"));
    await world.put(
      oci({
        identities: [
          { issuer: "x", subject: "y" },
          { issuer: "https://.*", subject: ".*@refs/tags/v\\d+" },
        ],
        trustedRoot: sigstore.trustedRoot(),
      }),
    );
    expect(await world.ready()).toMatchObject({ message: expect.stringMatching(/^stored artifact/) });
    await world.put(trustingIdentity({ issuer: "x", subject: "y" }));
    expect(await world.ready()).toMatchObject({ reason: "SignatureIdentityUnknown" });
    expect((await world.resolve()).status.artifact).toBeDefined();
  });

  test("a certificate of an authority that is not trusted is refused [source.cosign.time]", async () => {
    const another = await startSigstore();
    await signKeyless(await push("one"));
    await world.put(trustingIdentity(exactly, another.trustedRoot()));
    await another.stop();
    expect(await world.ready()).toMatchObject({
      reason: "SignatureCertificateInvalid",
      message: expect.stringContaining("no valid certificate path found"),
    });
  });

  test("a certificate that had ended when it signed is refused [source.cosign.time]", async () => {
    const late = await startSigstore({ logged: new Date(Date.now() + 3_600_000) });
    const digest = await push("one");
    attachBundle(inRegistry(digest), await late.bundle(statementOf(digest), identity));
    await world.put(trustingIdentity(exactly, late.trustedRoot()));
    await late.stop();
    expect(await world.ready()).toMatchObject({
      reason: "SignatureCertificateInvalid",
      message: expect.stringContaining("certificate is not valid or expired at the specified date"),
    });
  });

  test("a signature stays good when its certificate has ended since [source.cosign.time]", async () => {
    await signKeyless(await push("one"));
    await world.put(trustingIdentity());
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 30 * 86_400_000 });
    const ready = await world.ready().finally(() => vi.useRealTimers());
    expect(ready).toMatchObject({ message: expect.stringMatching(/^stored artifact/) });
  });

  test("a bundle of another digest, a changed one and one of a key are refused [source.cosign.refused]", async () => {
    const other = sha256("another");
    const made = (await sigstore.bundle(statementOf(other), identity)) as { dsseEnvelope: { payload: string } };
    const cases: readonly [string, (digest: string) => object][] = [
      ["SignatureOfAnother", () => made],
      [
        "SignatureInvalid",
        (digest) => ({
          ...made,
          dsseEnvelope: { ...made.dsseEnvelope, payload: Buffer.from(statementOf(digest)).toString("base64") },
        }),
      ],
      ["SignatureKeyUnknown", (digest) => keyedBundle(statementOf(digest), cosignKeyPair())],
    ];
    for (const [reason, bundle] of cases) {
      world = new SourceWorld();
      const digest = await push(reason);
      attachBundle(inRegistry(digest), bundle(digest));
      await world.put(trustingIdentity());
      expect(await world.ready()).toMatchObject({ reason });
    }
  });
});
