import { createHmac, timingSafeEqual } from "node:crypto";

const signature = /^sha256=([0-9a-f]{64})$/i;

/**
 * Whether one of the secrets signed the bytes, as GitHub does in `X-Hub-Signature-256`. The check takes the same time for
 * every wrong signature, and whichever secret is right. An empty secret signs nothing.
 */
export function isSignedByGithub(body: Uint8Array, header: string | undefined, secrets: readonly string[]): boolean {
  const given = signature.exec(header ?? "")?.[1];
  if (given === undefined) return false;
  const bytes = Buffer.from(given, "hex");
  let signed = false;
  for (const secret of secrets) {
    if (secret === "") continue;
    const desired = createHmac("sha256", secret).update(body).digest();
    if (timingSafeEqual(desired, bytes)) signed = true;
  }
  return signed;
}
