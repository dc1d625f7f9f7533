import { upstreamError } from "#functions/resolve/upstreams/upstream-errors.ts";
import { pgpSigner } from "#shared/adapters/signatures/signer.ts";
import { verifyPgp } from "#shared/adapters/signatures/verify-pgp.ts";
import type { ErrorCode } from "#shared/base/error-codes.ts";
import { excerpt } from "#shared/base/excerpt.ts";
import { readProvenance } from "#shared/source/helm/provenance.ts";
import { readClearSigned } from "#shared/source/signatures/clear-signed.ts";
import type { Verified } from "#shared/source/signatures/verified.ts";

const remedy = "pack it with helm package --sign, and publish the .prov file with it";

export interface SignedChart {
  readonly name: string;
  readonly version: string;
  /** The repository, for errors. */
  readonly url: string;
}

export interface ProvenChart {
  /** Hexadecimal SHA-256 that the packed chart must have. */
  readonly digest: string;
  readonly verified: Verified;
}

/**
 * Verifies the provenance file of a chart before the chart is fetched.
 * @param bytes - undefined when the chart has none.
 * @throws StarlingError with a code of `signatureCodes`
 */
export async function verifyProvenance(
  { name, version, url }: SignedChart,
  bytes: Uint8Array | undefined,
  { keys, now }: { readonly keys: readonly string[]; readonly now: Date },
): Promise<ProvenChart> {
  const chart = `chart ${name} ${version}`;
  const what = `${chart} of ${url}`;
  const refused = (code: ErrorCode, found: string) => upstreamError(code, `${what} ${found}; ${remedy}`);
  if (bytes === undefined) throw refused("SignatureMissing", "has no provenance file");
  const message = textOf(bytes);
  const signed = message === undefined ? undefined : readClearSigned(message);
  if (signed === undefined) throw refused("SignatureInvalid", "has a provenance file that is no signed message");
  const verdict = await verifyPgp({ content: signed.text, armour: signed.armour }, keys, now);
  const signer = pgpSigner(verdict, { what, field: "spec.helm.verify.provenance.keys" });
  const provenance = readProvenance(signed.text);
  if (provenance === undefined) throw refused("SignatureInvalid", "has a provenance file that Helm does not write");
  // A signed chart could be published once more as another version or another chart.
  if (provenance.name !== name || provenance.version !== version) {
    const other = excerpt(`${provenance.name} ${provenance.version}`);
    throw refused("SignatureInvalid", `has the provenance file of ${other}`);
  }
  const digest = provenance.files.get(`${name}-${version}.tgz`);
  if (digest === undefined) throw refused("SignatureInvalid", `has a provenance file without ${name}-${version}.tgz`);
  return { digest, verified: { mode: "provenance", signatures: [{ object: chart, ...signer }] } };
}

/** @throws StarlingError `SignatureInvalid` when the chart is another one than was signed. */
export function requireDigest({ name, version, url }: SignedChart, found: string, { digest }: ProvenChart): void {
  if (found === digest) return;
  const sums = `has the checksum ${found}, and its provenance file says ${digest}`;
  throw upstreamError("SignatureInvalid", `chart ${name} ${version} of ${url} ${sums}; ${remedy}`);
}

function textOf(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    return undefined;
  }
}
