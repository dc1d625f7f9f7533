import type { Principals } from "#local/aws/iam/principals.ts";
import { isEqual, sha256, signatureOf, splitUrl, timeOf, withoutParameter } from "#local/aws/iam/sigv4.ts";
import { type ArrivingRequest, refused, signedBy, type Verdict } from "#local/aws/iam/sigv4-verifier.ts";

export interface PresignedOptions {
  readonly principals: Pick<Principals, "find">;
  readonly service: "sts" | "s3";
  readonly now: Date;
}

/**
 * STS accepts a presigned URL for 15 minutes, whatever its X-Amz-Expires. S3 accepts one for X-Amz-Expires, at most a
 * week.
 */
const stsLifetimeMs = 15 * 60 * 1000;
const signature = "X-Amz-Signature";
const longestSeconds = 7 * 24 * 60 * 60;
const maxEarlyMs = 5 * 60 * 1000;

export function isPresigned(url: string): boolean {
  return splitUrl(url).query.some(([name]) => name.toLowerCase() === signature.toLowerCase());
}

/**
 * Verifies a presigned request: its signature is in the query (AWS Signature Version 4, "query string parameters"). It
 * may be a GET to STS or any request to S3. The signature covers the host and not the body.
 */
export async function verifyPresigned(request: ArrivingRequest, options: PresignedOptions): Promise<Verdict> {
  const { query } = splitUrl(request.url);
  // With two values, the signature could cover one value while the service uses the other.
  const names = query.map(([name]) => name.toLowerCase());
  if (new Set(names).size < names.length) return refused("malformed", "a query parameter occurs twice");
  const values = new Map(query);
  const value = (name: string) => values.get(name) ?? "";
  const [accessKeyId = "", day = "", region = "", service = "", end = ""] = value("X-Amz-Credential").split("/");
  const accessKey = options.principals.find(accessKeyId);
  if (accessKey === undefined) return refused("unknown key", `the access key ${accessKeyId} is unknown`);
  const { now } = options;
  const longDate = value("X-Amz-Date");
  const ageMs = now.getTime() - timeOf(longDate);
  if (!(ageMs <= lifetimeMs(options.service, value("X-Amz-Expires")))) {
    return refused("clock skew", `Signature expired: ${longDate}`);
  }
  if (ageMs < -maxEarlyMs) return refused("clock skew", `Signature not yet current: ${longDate}`);
  if (service !== options.service || end !== "aws4_request" || !longDate.startsWith(day)) {
    return refused("wrong scope", "Credential should be scoped to correct service and date");
  }
  if (!isEqual(value("X-Amz-Security-Token"), accessKey.sessionToken ?? "")) {
    return refused("wrong token", "the session token is not that of the access key");
  }
  const { method, url, headers } = request;
  if (service === "sts" && method !== "GET") return refused("mismatch", `the URL is presigned for GET, not ${method}`);
  const signedHeaders = value("X-Amz-SignedHeaders").split(";");
  if (!signedHeaders.includes("host")) return refused("unsigned header", "'Host' must be a 'SignedHeader'");
  const unsigned = Object.keys(headers).filter((name) => name.startsWith("x-amz-") && !signedHeaders.includes(name));
  if (unsigned.length > 0) return refused("unsigned header", `these headers must be signed: ${unsigned.join(", ")}`);
  const expected = signatureOf({
    method,
    url: withoutParameter(url, signature),
    headers,
    signedHeaders,
    payload: service === "s3" ? "UNSIGNED-PAYLOAD" : sha256(""),
    secretAccessKey: accessKey.secretAccessKey,
    longDate,
    scope: { day, region, service },
  });
  if (!isEqual(value(signature), expected)) {
    return refused("mismatch", "the signature does not match the request");
  }
  const body = await request.body();
  return body === undefined
    ? refused("too large", "the body is larger than the service takes")
    : signedBy({ accessKey, region, now }, body);
}

function lifetimeMs(service: "sts" | "s3", expires: string): number {
  if (service === "sts") return stsLifetimeMs;
  const seconds = Number(expires);
  return /^\d+$/.test(expires) && seconds >= 1 && seconds <= longestSeconds ? seconds * 1000 : Number.NaN;
}
