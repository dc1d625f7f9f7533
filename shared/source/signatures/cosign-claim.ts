/** The text that a cosign signature is over, in its two forms. */
import * as z from "zod";
import { parseUniqueJson } from "#shared/base/unique-json.ts";
import { digestPattern } from "#shared/source/oci/manifest.ts";

/** The manifests that are signed, or what is wrong with the text, as a part of a message: `is not JSON`. */
export type Claim = readonly string[] | string;

const simpleSigning = z.object({
  critical: z.object({
    type: z.string(),
    image: z.object({ "docker-manifest-digest": z.string().regex(digestPattern) }),
  }),
});
/** Both are written by versions of cosign. */
const simpleTypes = ["cosign container image signature", "https://sigstore.dev/cosign/sign/v1"];

/** Reads the payload of a signature in the form that Red Hat calls simple signing. */
export function simpleClaim(payload: Uint8Array): Claim {
  const value = parsed(payload);
  if (typeof value === "string") return value;
  const { data } = simpleSigning.safeParse(value.json);
  if (data === undefined) return "names no digest of a manifest";
  const { type, image } = data.critical;
  return simpleTypes.includes(type) ? [image["docker-manifest-digest"]] : `is of the type ${type.slice(0, 100)}`;
}

export const statementType = "application/vnd.in-toto+json";
const signPredicate = "https://sigstore.dev/cosign/sign/v1";
const statement = z.object({
  _type: z.string().regex(/^https:\/\/in-toto\.io\/Statement\/v\d+(\.\d+)?$/),
  predicateType: z.string(),
  subject: z.array(z.object({ digest: z.record(z.string(), z.string()) })).max(100),
});

/** Reads the statement of a signature in a bundle. An attestation says something about an artifact, not that it is good. */
export function statementClaim(payload: Uint8Array): Claim {
  const value = parsed(payload);
  if (typeof value === "string") return value;
  const { data } = statement.safeParse(value.json);
  if (data === undefined) return "is no statement that Starling reads";
  const { predicateType: type, subject: objects } = data;
  if (type !== signPredicate) return `is an attestation (${type.slice(0, 100)}), which is no signature of the artifact`;
  return objects.flatMap(({ digest: { sha256: hex } }) => (hex === undefined ? [] : [`sha256:${hex}`]));
}

function parsed(payload: Uint8Array): { readonly json: unknown } | string {
  try {
    return { json: parseUniqueJson(new TextDecoder("utf-8", { fatal: true }).decode(payload)) };
  } catch (error) {
    return error instanceof SyntaxError && error.message.includes("twice") ? "has a member twice" : "is not JSON";
  }
}
