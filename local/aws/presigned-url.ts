import { createHash, createHmac, timingSafeEqual } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";
import type { AccessKey, Principals } from "#local/aws/principals.ts";

/** A GET whose signature is in its query. */
export interface PresignedRequest {
  /** Path and query, as on the wire. */
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
}

export type PresignedVerdict =
  | { readonly verdict: "genuine"; readonly accessKey: AccessKey; readonly region: string }
  | { readonly verdict: "refused"; readonly code: PresignedRefusal; readonly reason: string };

export type PresignedRefusal = "SignatureDoesNotMatch" | "InvalidClientTokenId" | "ExpiredToken";

/** STS takes its URLs for 15 minutes, whatever their X-Amz-Expires says. */
const lifetimeMs = 15 * 60 * 1000;
const maxEarlyMs = 5 * 60 * 1000;

/**
 * Verifies a presigned request to STS by computing its signature (AWS Signature Version 4, "query string parameters")
 * from the request as it came, with the host that it names. Written without the SDK's signer: one that makes mistakes
 * would agree with itself.
 */
export function verifyPresigned(
  request: PresignedRequest,
  options: { readonly principals: Pick<Principals, "find">; readonly now: Date },
): PresignedVerdict {
  const [path = "/", search = ""] = request.url.split(/\?(.*)/s);
  const query = new Map(new URLSearchParams(search.replaceAll("+", "%2B")));
  const value = (name: string) => query.get(name) ?? "";
  const [accessKeyId = "", day = "", region = "", service = "", end = ""] = value("X-Amz-Credential").split("/");
  const accessKey = options.principals.find(accessKeyId);
  if (accessKey === undefined) return refused("InvalidClientTokenId", `the access key ${accessKeyId} is unknown`);
  const { now } = options;
  if (accessKey.expiresAt !== undefined && accessKey.expiresAt <= now) {
    return refused("ExpiredToken", `the session ended at ${accessKey.expiresAt.toISOString()}`);
  }
  const longDate = value("X-Amz-Date");
  const ageMs = now.getTime() - dateOf(longDate);
  if (!(ageMs <= lifetimeMs)) return refused("SignatureDoesNotMatch", `Signature expired: ${longDate}`);
  if (ageMs < -maxEarlyMs) return refused("SignatureDoesNotMatch", `Signature not yet current: ${longDate}`);
  if (service !== "sts" || end !== "aws4_request" || !longDate.startsWith(day)) {
    return refused("SignatureDoesNotMatch", "Credential should be scoped to correct service and date");
  }
  if (value("X-Amz-Security-Token") !== (accessKey.sessionToken ?? "")) {
    return refused("InvalidClientTokenId", "the session token is not that of the access key");
  }
  const signedHeaders = value("X-Amz-SignedHeaders").split(";");
  if (!signedHeaders.includes("host")) return refused("SignatureDoesNotMatch", "'Host' must be a 'SignedHeader'");
  const canonicalQuery = [...query]
    .filter(([name]) => name !== "X-Amz-Signature")
    .map(([name, text]) => `${encode(name)}=${encode(text)}`)
    .sort();
  const canonical = [
    "GET",
    path,
    canonicalQuery.join("&"),
    ...signedHeaders.map((name) => `${name}:${String(request.headers[name] ?? "").trim()}`),
    "",
    signedHeaders.join(";"),
    sha256(""),
  ].join("\n");
  const scope = [day, region, service, end].join("/");
  const toSign = ["AWS4-HMAC-SHA256", longDate, scope, sha256(canonical)].join("\n");
  let key: Buffer = Buffer.from(`AWS4${accessKey.secretAccessKey}`);
  for (const part of [day, region, service, end]) key = createHmac("sha256", key).update(part).digest();
  const expected = createHmac("sha256", key).update(toSign).digest("hex");
  const given = Buffer.from(value("X-Amz-Signature").padEnd(64).slice(0, 64));
  if (timingSafeEqual(Buffer.from(expected), given)) return { verdict: "genuine", accessKey, region };
  return refused("SignatureDoesNotMatch", "the signature does not match the request");
}

function refused(code: PresignedRefusal, reason: string): PresignedVerdict {
  return { verdict: "refused", code, reason };
}

/** Milliseconds since the epoch of `20260101T000000Z`; NaN of anything else. */
function dateOf(text: string): number {
  const parts = /^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/.exec(text);
  if (parts === null) return Number.NaN;
  const [, year, month, day, hour, minute, second] = parts;
  return Date.parse(`${year}-${month}-${day}T${hour}:${minute}:${second}Z`);
}

function sha256(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}

/** Everything but A-Z, a-z, 0-9 and -_.~ is percent-encoded. */
function encode(text: string): string {
  return encodeURIComponent(text).replaceAll(/[!'()*]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`);
}
