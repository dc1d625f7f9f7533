/** Finds the signatures that cosign keeps in a registry beside an artifact. */
import type { Registry } from "#functions/resolve/upstreams/registry.ts";
import { upstreamError } from "#functions/resolve/upstreams/upstream-errors.ts";
import type { CosignSignature, SimpleSignature } from "#shared/adapters/signatures/cosign-signature.ts";
import { verifyCosign } from "#shared/adapters/signatures/verify-cosign.ts";
import { defined } from "#shared/base/defined.ts";
import { hexOf } from "#shared/base/digest.ts";
import { errorCode, errorMessage } from "#shared/base/errors.ts";
import type { CosignTrust } from "#shared/fleet/kinds/cosign-trust.ts";
import { type Descriptor, readIndex, readManifest } from "#shared/source/oci/manifest.ts";
import type { Verified } from "#shared/source/signatures/verified.ts";

const kib = 1024;
/** Of each form; a signature costs up to two requests. */
const maxSignatures = 50;
const maxPayloadBytes = 64 * kib;
const maxBundleBytes = 512 * kib;

const bundleType = "application/vnd.dev.sigstore.bundle.v0.3+json";
const anyBundle = /^application\/vnd\.dev\.sigstore\.bundle/;
const simpleType = "application/vnd.dev.cosign.simplesigning.v1+json";
const annotation = (name: string) => `dev.cosignproject.cosign/${name}`;
const certificateAnnotation = "dev.sigstore.cosign/certificate";
const entryAnnotation = "dev.sigstore.cosign/bundle";
const timestampAnnotation = "dev.sigstore.cosign/rfc3161timestamp";

/** Errors of bytes that are damaged; any other may pass with time. */
const damages: ReadonlySet<string> = new Set([
  "UpstreamTooLarge",
  "ChecksumMismatch",
  "UpstreamNotFound",
  "ArchiveInvalid",
]);

export interface SignedInRegistry {
  readonly url: string;
  /** Field of the upstream: `spec.oci`. */
  readonly at: string;
  readonly digest: string;
  readonly manifest: Uint8Array;
}

/**
 * Verifies the signature of a manifest, if the spec demands one.
 * @throws StarlingError with a code of `signatureCodes`
 */
export async function verifyInRegistry(
  registry: Registry,
  { url, at, digest, manifest }: SignedInRegistry,
  trust: CosignTrust | undefined,
): Promise<Verified | undefined> {
  if (trust === undefined) return undefined;
  const what = `${digest} of ${url}`;
  const found = signaturesIn(registry, { digest, what });
  const { key, owner } = await verifyCosign(found, { what, at, digest, manifest, trust });
  return { mode: "cosign", signatures: [{ object: digest, key, ...defined({ owner }) }] };
}

interface Signed {
  readonly digest: string;
  readonly what: string;
}

async function* signaturesIn(registry: Registry, signed: Signed): AsyncGenerator<CosignSignature> {
  yield* bundlesIn(registry, signed);
  yield* simpleIn(registry, signed);
}

/** Cosign 3 pushes each signature as an artifact that refers to the manifest. */
async function* bundlesIn(registry: Registry, { digest, what }: Signed): AsyncGenerator<CosignSignature> {
  const tag = `sha256-${hexOf(digest)}`;
  const referrers =
    (await registry.referrers(digest, bundleType)) ?? readIndex((await registry.tagged(tag)) ?? new Uint8Array()) ?? [];
  const bundles = referrers.filter(({ artifactType = "" }) => anyBundle.test(artifactType));
  checkNumber(bundles.length, what);
  for (const { digest: referrer } of bundles) {
    yield await orUnreadable(async () => {
      const { layers } = await registry.manifest(referrer);
      const layer = layers.find(({ mediaType }) => anyBundle.test(mediaType));
      if (layer === undefined) return { kind: "unreadable", problem: "has no bundle among its layers" };
      return { kind: "bundle", bytes: await registry.blob(layer, maxBundleBytes) };
    });
  }
}

/** Cosign 1 and 2 push all signatures as layers of one manifest under a tag. */
async function* simpleIn(registry: Registry, { digest, what }: Signed): AsyncGenerator<CosignSignature> {
  const tag = `sha256-${hexOf(digest)}.sig`;
  const bytes = await registry.tagged(tag);
  if (bytes === undefined) return;
  const manifest = readManifest(bytes);
  if (typeof manifest === "string") {
    yield { kind: "unreadable", problem: `is in a manifest that ${manifest}` };
    return;
  }
  const layers = manifest.layers.filter(({ mediaType }) => mediaType === simpleType);
  checkNumber(layers.length, what);
  // Signatures of several keys have the same payload.
  const payloads = new Map<string, Uint8Array>();
  for (const layer of layers) {
    const annotations = annotationsOf(layer);
    if (annotations === undefined) {
      yield { kind: "unreadable", problem: `lacks the annotation ${annotation("signature")}` };
      continue;
    }
    yield await orUnreadable(async () => {
      const payload = payloads.get(layer.digest) ?? (await registry.blob(layer, maxPayloadBytes));
      payloads.set(layer.digest, payload);
      return { kind: "simple", payload, ...annotations };
    });
  }
}

function annotationsOf({ annotations = {} }: Descriptor): Omit<SimpleSignature, "payload"> | undefined {
  const signature = annotations[annotation("signature")];
  if (signature === undefined || signature === "") return undefined;
  const of = (name: string) => annotations[name] || undefined;
  return {
    signature,
    ...defined({
      certificate: of(certificateAnnotation),
      entry: of(entryAnnotation),
      timestamp: of(timestampAnnotation),
    }),
  };
}

function checkNumber(count: number, what: string): void {
  if (count <= maxSignatures) return;
  const message = `${what} has ${count} signatures, and Starling reads at most ${maxSignatures}; delete the old ones`;
  throw upstreamError("SignatureInvalid", message);
}

/** A signature that cannot be read must not hide another one. */
async function orUnreadable(read: () => Promise<CosignSignature>): Promise<CosignSignature> {
  try {
    return await read();
  } catch (error) {
    if (!damages.has(errorCode(error))) throw error;
    return { kind: "unreadable", problem: `cannot be read (${errorMessage(error)})` };
  }
}
