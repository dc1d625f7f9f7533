import { isJsonObject } from "#shared/base/json.ts";

const mediaType = "application/vnd.dev.sigstore.trustedroot";

/** The form of a `trusted_root.json`; the library that verifies reads its keys and certificates. @returns what is wrong with it. */
export function trustedRootProblem(text: string): string | undefined {
  const remedy = "give the text of a trusted_root.json, as cosign trusted-root create writes it";
  let root: unknown;
  try {
    root = JSON.parse(text);
  } catch {
    return `is not JSON; ${remedy}`;
  }
  if (!isJsonObject(root) || typeof root.mediaType !== "string" || !root.mediaType.startsWith(mediaType)) {
    return `is no trusted root: its mediaType must begin with ${mediaType}; ${remedy}`;
  }
  const { certificateAuthorities: authorities, tlogs, timestampAuthorities: clocks } = root;
  if (!isFilled(authorities)) return `has no certificateAuthorities: nobody could have given a certificate; ${remedy}`;
  if (!isFilled(tlogs) && !isFilled(clocks)) {
    return `has neither tlogs nor timestampAuthorities: nothing could prove when a signature was made; ${remedy}`;
  }
  return undefined;
}

function isFilled(list: unknown): boolean {
  return Array.isArray(list) && list.length > 0;
}
