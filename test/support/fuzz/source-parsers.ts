/** The parsers of what buckets, registries, issuers of tokens and secrets say. */
import assert from "node:assert/strict";
import { createPrivateKey, createPublicKey, sign } from "node:crypto";
import { Readable } from "node:stream";
import { S3Client } from "@aws-sdk/client-s3";
import { dockerLogin } from "#functions/resolve/docker-config.ts";
import { changeOf } from "#functions/webhook/bus-event.ts";
import { gcr } from "#functions/webhook/providers/registries.ts";
import { IssuerKeys } from "#functions/webhook/tokens/issuer-keys.ts";
import { verifyToken } from "#functions/webhook/tokens/verify-token.ts";
import { keyedBundle, signBytes, statementOf } from "#local/registry/cosign.ts";
import { S3BucketReader } from "#shared/adapters/aws/s3-bucket-reader.ts";
import type { CosignSignature } from "#shared/adapters/signatures/cosign-signature.ts";
import { trustMaterialOf } from "#shared/adapters/signatures/trust-material.ts";
import { verifyKeyless } from "#shared/adapters/signatures/verify-keyless.ts";
import { verifyWithKeys } from "#shared/adapters/signatures/verify-with-keys.ts";
import { parsedKey } from "#shared/adapters/ssh/private-keys.ts";
import { StarlingError } from "#shared/base/errors.ts";
import { isJsonObject } from "#shared/base/json.ts";
import { jsonOf } from "#shared/base/json-of.ts";
import { readIndex } from "#shared/source/oci/manifest.ts";
import { parseCosignKey } from "#shared/source/signatures/cosign-key.ts";
import { type FuzzedParser, once } from "#test/support/fuzz/fuzzed-parser.ts";
import { compiledIdentity, startSigstore } from "#test/support/sigstore.ts";
import { newKeyPair } from "#test/support/ssh-git-server.ts";

const text = (bytes: Buffer) => bytes.toString("utf8");
const seedKey = createPrivateKey({
  key: Buffer.concat([Buffer.from("302e020100300506032b657004220420", "hex"), Buffer.alloc(32, 9)]),
  format: "der",
  type: "pkcs8",
});
const publicKey = createPublicKey(seedKey);

const digest = `sha256:${"a".repeat(64)}`;
const artifact = { digest, manifest: Buffer.from("{}") };
const cosignKey = parseCosignKey(String(publicKey.export({ type: "spki", format: "pem" })));
assert.ok(typeof cosignKey !== "string", String(cosignKey));
const statement = statementOf(digest);
const payload = Buffer.from(
  JSON.stringify({
    critical: {
      identity: { "docker-reference": "" },
      image: { "docker-manifest-digest": digest },
      type: "cosign container image signature",
    },
    optional: null,
  }),
);
const payloadSignature = signBytes(payload, seedKey).toString("base64");
const keyed = (signature: CosignSignature) => verifyWithKeys(signature, artifact, [cosignKey]);

const bundles: FuzzedParser = {
  name: "a bundle of cosign",
  samples: () => [Buffer.from(JSON.stringify(keyedBundle(statement, { privateKey: seedKey, hint: cosignKey.hint })))],
  async run(bytes, samples) {
    const { kind } = await keyed({ kind: "bundle", bytes });
    if (kind === "verified") {
      const { dsseEnvelope } = jsonOf(text(bytes)) as { readonly dsseEnvelope: { readonly payload: string } };
      assert.equal(Buffer.from(dsseEnvelope.payload, "base64").toString(), statement, "another statement is verified");
    }
    if (samples.some((sample) => sample.equals(bytes))) assert.equal(kind, "verified");
  },
};

const simpleSignatures: FuzzedParser = {
  name: "a signature of cosign 2",
  samples: () => [payload, Buffer.from(payloadSignature)],
  async run(bytes) {
    const of = (changed: object) =>
      keyed({ kind: "simple", payload, signature: payloadSignature, ...changed } as CosignSignature);
    const { kind } = await of({ payload: bytes });
    assert.equal(kind === "verified", bytes.equals(payload), `a payload is ${kind}`);
    await of({ signature: text(bytes) });
  },
};

const identity = { issuer: "https://accounts.example", name: "ci@acme.example" };
const sigstore = once(async () => {
  const started = await startSigstore();
  const root = started.trustedRoot();
  const bundle = JSON.stringify(await started.bundle(statement, identity));
  const annotations = await started.annotations(payload, identity);
  await started.stop();
  return { material: await trustMaterialOf(root), root, bundle, annotations };
});
const identities = [compiledIdentity(identity)];

const keyless: FuzzedParser = {
  name: "a certificate and a log of cosign",
  share: 10,
  async samples() {
    const { bundle, annotations, root } = await sigstore();
    return [bundle, ...Object.values(annotations), root].map((each) => Buffer.from(each));
  },
  async run(bytes) {
    const { material, bundle, annotations } = await sigstore();
    const said = text(bytes);
    const trust = { material, identities };
    const { kind } = await verifyKeyless({ kind: "bundle", bytes }, artifact, trust);
    if (said === bundle) assert.equal(kind, "verified");
    const signature = annotations["dev.cosignproject.cosign/signature"] ?? "";
    const certificate = annotations["dev.sigstore.cosign/certificate"] ?? "";
    const entry = annotations["dev.sigstore.cosign/bundle"] ?? "";
    const right = { kind: "simple", payload, signature, certificate, entry } as const;
    for (const changed of [{ certificate: said }, { entry: said }, { timestamp: said }, { signature: said }])
      await verifyKeyless({ ...right, ...changed }, artifact, trust);
    const other = { ...right, payload: Buffer.concat([payload, Buffer.from(" ")]) };
    for (const changed of [{ certificate: said }, { entry: said }])
      assert.notEqual((await verifyKeyless({ ...other, ...changed }, artifact, trust)).kind, "verified");
    // The keys of a root are read by a library, whose errors the reader of a Source names.
    if (said.includes("trustedroot")) await trustMaterialOf(said).catch(() => undefined);
  },
};

const referrers: FuzzedParser = {
  name: "a listing of what refers to an artifact",
  samples: () => [
    Buffer.from(
      JSON.stringify({
        schemaVersion: 2,
        mediaType: "application/vnd.oci.image.index.v1+json",
        manifests: [{ mediaType: "a", digest, size: 3, artifactType: "b", annotations: { c: "d" } }],
      }),
    ),
  ],
  run(bytes, samples) {
    const listed = readIndex(bytes) ?? [];
    if (samples.some((sample) => sample.equals(bytes))) assert.equal(listed.length, 1);
    for (const found of listed) {
      assert.match(found.digest, /^sha256:[0-9a-f]{64}$/);
      assert.ok(Number.isSafeInteger(found.size) && found.size >= 0, `a size of ${found.size}`);
    }
  },
};

const dockerPassword = "s3cr3t-w0rd";
const dockerAddresses = ["oci://docker.io/acme/web", "oci://reg.example/acme/web"];
const isLogin = (found: ReturnType<typeof dockerLogin>) => found !== "absent" && "password" in found;
const dockerConfig: FuzzedParser = {
  name: "a configuration of Docker",
  samples: () =>
    [
      { auths: { "https://index.docker.io/v1/": { auth: Buffer.from(`ana:${dockerPassword}`).toString("base64") } } },
      { auths: { "reg.example/acme": { username: "ana", password: dockerPassword }, "reg.example": {} } },
    ].map((each) => Buffer.from(JSON.stringify(each))),
  run(bytes, samples) {
    const config = jsonOf(text(bytes));
    if (!isJsonObject(config)) return;
    if (samples.some((sample) => sample.equals(bytes)))
      assert.ok(
        dockerAddresses.some((address) => isLogin(dockerLogin(config, address))),
        "a right login is not found",
      );
    for (const address of dockerAddresses) {
      const login = dockerLogin(config, address);
      if (login === "absent") continue;
      if ("problem" in login) assert.ok(!login.problem.includes(dockerPassword), "the password is shown");
      else assert.ok(login.username !== "" && login.password !== "", "an empty login");
    }
  },
};

const listingText = [
  '<?xml version="1.0" encoding="UTF-8"?>',
  "<ListBucketResult><Name>b</Name><IsTruncated>true</IsTruncated><NextContinuationToken>t</NextContinuationToken>",
  "<Contents><Key>a&amp;b.yaml</Key><LastModified>2026-01-01T00:00:00.000Z</LastModified>",
  "<ETag>&quot;0123456789abcdef0123456789abcdef&quot;</ETag><Size>5</Size></Contents></ListBucketResult>",
].join("\n");
const refusalText =
  '<?xml version="1.0"?>\n<Error><Code>NoSuchBucket</Code><Message>no</Message><Region>eu-west-3</Region></Error>';

/** A reader of S3 whose every answer has this status and these bytes. */
function bucketOf(bytes: Buffer, statusCode: number): S3BucketReader {
  const answer = () => ({ statusCode, headers: { "content-type": "application/xml" }, body: Readable.from([bytes]) });
  const credentials = { accessKeyId: "local", secretAccessKey: "local" };
  const requestHandler = { handle: async () => ({ response: answer() as never }) };
  return new S3BucketReader(() => new S3Client({ region: "us-east-1", credentials, maxAttempts: 1, requestHandler }));
}

const buckets: FuzzedParser = {
  name: "answers of S3",
  share: 25,
  samples: () => [listingText, refusalText].map((each) => Buffer.from(each)),
  async run(bytes) {
    for (const status of [200, 301, 403]) {
      try {
        const page = { prefix: "", timeLeftMs: () => 60_000 };
        const { objects } = await bucketOf(bytes, status).list({ bucket: "acme-manifests" }, page);
        if (status === 200 && text(bytes) === listingText) assert.equal(objects[0]?.key, "a&b.yaml");
        for (const { size, etag } of objects) {
          assert.ok(Number.isSafeInteger(size) && size >= 0, `a size of ${size}`);
          assert.match(etag, /^[\x21-\x7e]+$/);
        }
      } catch (error) {
        if (!(error instanceof StarlingError)) throw error;
        assert.ok(error.message.length < 2000 && !error.message.includes("$response"), error.message);
      }
    }
  },
};

const passphrase = "a passphrase";
const sshKeys = once(async () => [
  newKeyPair().private,
  newKeyPair("ecdsa").private,
  newKeyPair("ed25519", passphrase).private,
]);
const privateKeys: FuzzedParser = {
  name: "a private key of SSH",
  share: 10,
  samples: async () => (await sshKeys()).map((each) => Buffer.from(each)),
  async run(bytes) {
    try {
      await parsedKey({ privateKey: text(bytes), passphrase } as Parameters<typeof parsedKey>[0]);
    } catch (error) {
      const [, line = ""] = text(bytes).split("\n");
      if (line.length > 20 && error instanceof Error) assert.ok(!error.message.includes(line), "the key is shown");
      throw error;
    }
  },
};

const busEvents: FuzzedParser = {
  name: "an event of EventBridge",
  samples: () =>
    [
      {
        ...{ source: "aws.codecommit", "detail-type": "CodeCommit Repository State Change", region: "eu-west-1" },
        detail: { repositoryName: "fleet", referenceType: "branch", referenceName: "main" },
      },
      {
        ...{ source: "aws.ecr", "detail-type": "ECR Image Action", account: "111122223333", region: "cn-north-1" },
        detail: { "repository-name": "acme/web", "image-tag": "1.0.0" },
      },
    ].map((each) => Buffer.from(JSON.stringify(each))),
  run(bytes, samples) {
    const { urls = [] } = changeOf(jsonOf(text(bytes))) ?? {};
    if (samples.some((sample) => sample.equals(bytes))) assert.ok(urls.length > 0, "a right event is not read");
    for (const url of urls) assert.match(url, /^(oci|https):\/\/[a-z0-9.-]+\.amazonaws\.com(\.cn)?\//);
  },
};

const googlePush = { urls: ["oci://europe-docker.pkg.dev/acme/web"], tags: ["1.0.0"] };
const pubsub: FuzzedParser = {
  name: "a message of Pub/Sub",
  samples: () => {
    const image = JSON.stringify({
      action: "INSERT",
      tag: "europe-docker.pkg.dev/acme/web:1.0.0",
      digest: "a@sha256:b",
    });
    return [image, JSON.stringify({ message: { data: Buffer.from(image).toString("base64") }, subscription: "s" })].map(
      (each) => Buffer.from(each),
    );
  },
  run(bytes, samples) {
    const wrapped = Buffer.from(JSON.stringify({ message: { data: bytes.toString("base64") } }));
    for (const body of [bytes, wrapped]) {
      const push = gcr.read({ headers: {}, body });
      if (body === wrapped && samples[0]?.equals(bytes)) assert.deepEqual(push, googlePush);
      if (push === undefined || typeof push === "string") continue;
      assert.ok(
        push.urls?.every((url) => url.startsWith("oci://")),
        JSON.stringify(push),
      );
    }
  },
};

const issuer = "https://issuer.example";
const now = new Date("2026-01-02T03:04:05Z");
const part = (value: object | Buffer) =>
  (Buffer.isBuffer(value) ? value : Buffer.from(JSON.stringify(value))).toString("base64url");
const seconds = now.getTime() / 1000;
const signedPart = `${part({ alg: "EdDSA", kid: "a" })}.${part({ iss: issuer, aud: "starling", iat: seconds, exp: seconds + 60, email: "ci" })}`;
const token = `${signedPart}.${part(sign(null, Buffer.from(signedPart), seedKey))}`;
const keySetText = JSON.stringify({ keys: [{ ...publicKey.export({ format: "jwk" }), kid: "a", alg: "EdDSA" }] });
const discoveryText = JSON.stringify({ issuer, jwks_uri: `${issuer}/keys` });

function verifyWith({ discovery = discoveryText, keySet = keySetText, sent = token }) {
  const http = {
    ask: async ({ url }: { readonly url: string }) => {
      const body = Buffer.from(url.endsWith("openid-configuration") ? discovery : keySet);
      return { url, status: 200, headers: {}, body };
    },
  };
  const clock = { now: () => now };
  const demand = {
    issuer,
    spellings: [issuer],
    audience: "starling",
    claims: { email: (value: unknown) => value === "ci" },
  };
  return verifyToken(`Bearer ${sent}`, demand, { issuers: new IssuerKeys({ http, clock }), clock });
}

const issuers: FuzzedParser = {
  name: "an issuer of tokens, and its tokens",
  samples: () => [discoveryText, keySetText, token].map((each) => Buffer.from(each)),
  async run(bytes) {
    const said = text(bytes);
    for (const changed of [{ discovery: said }, { keySet: said }]) {
      await verifyWith(changed).catch((error: unknown) => {
        if (!(error instanceof StarlingError)) throw error;
      });
    }
    const problem = await verifyWith({ sent: said });
    const [head, claims] = token.split(".");
    const isSigned = said.startsWith(`${head}.${claims}.`);
    assert.ok(problem !== undefined || isSigned, "a token that nobody signed proves its sender");
    if (said === token) assert.equal(problem, undefined);
  },
};

export const sourceParsers: readonly FuzzedParser[] = [
  ...[bundles, simpleSignatures, keyless, referrers, dockerConfig, buckets, privateKeys, busEvents, pubsub, issuers],
];
