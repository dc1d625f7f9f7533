/** Sigstore's bundles: a signature with all that is needed to verify it. */
import type { Bundle } from "@sigstore/bundle";
import { errorMessage } from "#shared/base/errors.ts";
import { parseUniqueJson } from "#shared/base/unique-json.ts";
import { statementType } from "#shared/source/signatures/cosign-claim.ts";

const known = new Set([
  "application/vnd.dev.sigstore.bundle+json;version=0.1",
  "application/vnd.dev.sigstore.bundle+json;version=0.2",
  "application/vnd.dev.sigstore.bundle+json;version=0.3",
  "application/vnd.dev.sigstore.bundle.v0.3+json",
]);

export interface ReadBundle {
  readonly bundle: Bundle;
  readonly content: Bundle["content"];
  readonly material: NonNullable<Bundle["verificationMaterial"]["content"]>;
}

/** @returns what is wrong with it, as a part of a message, if it is no bundle that can be verified. */
export async function readBundle(bytes: Uint8Array): Promise<ReadBundle | string> {
  const { bundleFromJSON } = await import("@sigstore/bundle");
  try {
    const json = parseUniqueJson(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
    const type = (json as { readonly mediaType?: unknown } | null)?.mediaType;
    if (typeof type !== "string" || !known.has(type)) {
      return `is a bundle of an unknown version (${String(type).slice(0, 100)}); Starling reads 0.1 to 0.3`;
    }
    const bundle = bundleFromJSON(json);
    const { content, verificationMaterial } = bundle;
    const material = verificationMaterial.content;
    if (material === undefined) return "is a bundle without a key and without a certificate";
    if (content.$case === "dsseEnvelope" && content.dsseEnvelope.payloadType !== statementType) {
      return `is a bundle with a content of the type ${content.dsseEnvelope.payloadType.slice(0, 100)}`;
    }
    return { bundle, content, material };
  } catch (error) {
    return `is a damaged bundle (${errorMessage(error).slice(0, 200)})`;
  }
}
