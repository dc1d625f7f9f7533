/** Reads a `trusted_root.json` with the library that verifies with it, when it is written and when it is used. */
import type { TrustedRoot } from "@sigstore/protobuf-specs";
import type { TrustMaterial } from "@sigstore/verify";
import { errorMessage } from "#shared/base/errors.ts";
import { excerpt } from "#shared/base/excerpt.ts";
import type { Document, FieldProblem } from "#shared/fleet/kinds/document.ts";
import { upstreamOf } from "#shared/fleet/kinds/source.ts";
import { trustedRootProblem } from "#shared/source/signatures/trusted-root.ts";

const empty = { certificateAuthorities: [], timestampAuthorities: [], tlogs: [], ctlogs: [] };
const parts = ["certificateAuthorities", "timestampAuthorities", "tlogs", "ctlogs"] as const;

/** @param json - the text of a `trusted_root.json`. @throws Error that says what is wrong with it, as a part of a message. */
export async function trustMaterialOf(json: string): Promise<TrustMaterial> {
  const [{ toTrustMaterial }, { TrustedRoot }] = await Promise.all([
    import("@sigstore/verify"),
    import("@sigstore/protobuf-specs"),
  ]);
  const root = TrustedRoot.fromJSON(JSON.parse(json));
  for (const part of parts) {
    for (const [index, authority] of root[part].entries()) {
      const lack = lackOf(authority);
      if (lack !== undefined) throw new Error(`${part}[${index}] has no ${lack}`);
      try {
        toTrustMaterial({ ...root, ...empty, [part]: [authority] });
      } catch (error) {
        throw new Error(`${part}[${index}] is damaged (${excerpt(errorMessage(error), 200)})`);
      }
    }
  }
  return toTrustMaterial(root);
}

/** An authority without these would never verify anything. */
function lackOf(authority: TrustedRoot[(typeof parts)[number]][number]): string | undefined {
  if ("certChain" in authority) {
    const certificates = authority.certChain?.certificates ?? [];
    return certificates.length === 0 ? "certChain.certificates" : undefined;
  }
  if (!("publicKey" in authority)) return undefined;
  if (authority.publicKey?.rawBytes === undefined) return "publicKey.rawBytes";
  return authority.logId === undefined && authority.checkpointKeyId === undefined ? "logId" : undefined;
}

/** Reads the authorities of a Source, of which the schema sees the form only. @returns what is wrong with them. */
export async function trustedRootProblems(document: Document): Promise<readonly FieldProblem[]> {
  if (document.kind !== "Source") return [];
  const upstream = upstreamOf(document.spec);
  if (upstream.kind !== "oci" && upstream.kind !== "helm") return [];
  const root = upstream.verify?.cosign?.trustedRoot;
  if (root === undefined || trustedRootProblem(root) !== undefined) return [];
  try {
    await trustMaterialOf(root);
    return [];
  } catch (error) {
    const field = `spec.${upstream.kind}.verify.cosign.trustedRoot`;
    const remedy = "give the whole text of a trusted_root.json, as cosign trusted-root create writes it";
    return [{ field, message: `cannot be read: ${errorMessage(error)}; ${remedy}` }];
  }
}
