import type { IncomingHttpHeaders } from "node:http";
import type { AccessKey, Principals } from "#local/aws/iam/principals.ts";
import { isEqual, sha256, signatureOf, splitUrl, timeOf } from "#local/aws/iam/sigv4.ts";

export interface ArrivingRequest {
  readonly method: string;
  /** Path and query as sent. */
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  /** Reads the body; undefined when it is larger than the service's limit. */
  readonly body: () => Promise<Buffer | undefined>;
}

export interface SigV4Options {
  readonly principals: Pick<Principals, "find">;
  /** For example `execute-api`. */
  readonly service: string;
  /** The default accepts any region. */
  readonly region?: string;
  readonly now: () => Date;
  /** The clock for the expiry of credentials. The default is `now`. */
  readonly sessionNow?: () => Date;
}

/** The reason why a signature is not valid. */
export type SignatureFault =
  | "missing"
  | "malformed"
  | "wrong scope"
  | "unknown key"
  | "wrong token"
  | "expired"
  | "clock skew"
  | "unsigned header"
  | "mismatch"
  | "wrong digest"
  | "too large";

export interface Refused {
  readonly verdict: "refused";
  readonly fault: SignatureFault;
  /** For the operator's log. */
  readonly reason: string;
  /** Set if the only problem is that the credentials have expired. */
  readonly body?: Buffer;
}

export interface Genuine {
  readonly verdict: "genuine";
  readonly accessKey: AccessKey;
  readonly region: string;
  readonly body: Buffer;
}

export type Verdict = Genuine | Refused;

const maxSkewMs = 5 * 60 * 1000;
const authorizationFormat =
  /^AWS4-HMAC-SHA256 Credential=([^/\s,]+)\/(\d{8})\/([^/\s,]+)\/([^/\s,]+)\/aws4_request, ?SignedHeaders=([a-z0-9;_.-]+), ?Signature=([0-9a-f]{64})$/;
const hexDigest = /^[0-9a-f]{64}$/;
/** Values that S3 accepts instead of a digest. */
const unsignedPayloads = new Set(["UNSIGNED-PAYLOAD", "STREAMING-UNSIGNED-PAYLOAD-TRAILER"]);

/**
 * Verifies an AWS Signature Version 4 in the Authorization header. It signs the request again and compares in constant
 * time.
 *
 * As AWS does, it requires signatures over `host` and every `x-amz-*` header, a scope with the date of `x-amz-date`,
 * and a clock within five minutes. The signature covers the body, except for a body that S3 accepts unsigned. If a
 * header contains the body's digest, the body is read only after the signature over that header is valid.
 */
export async function verifySigV4(request: ArrivingRequest, options: SigV4Options): Promise<Verdict> {
  const { headers } = request;
  if (headers.authorization === undefined) return refused("missing", "There is no Authorization header");
  const parsed = authorizationFormat.exec(headers.authorization);
  if (parsed === null) return refused("malformed", "There is no AWS4-HMAC-SHA256 Authorization header");
  const [, accessKeyId = "", day = "", region = "", service = "", signedList = "", signature = ""] = parsed;
  if (service !== options.service || region !== (options.region ?? region)) {
    return refused("wrong scope", `The scope is ${region}/${service}, not ${options.region ?? "*"}/${options.service}`);
  }
  const accessKey = options.principals.find(accessKeyId);
  if (accessKey === undefined) return refused("unknown key", `The access key ${accessKeyId} is unknown`);
  if (service !== "s3" && isAmbiguous(request.url)) {
    return refused("mismatch", "The path has empty or dot segments, which a signature does not cover");
  }
  const longDate = String(headers["x-amz-date"] ?? "");
  const at = timeOf(longDate);
  if (Number.isNaN(at)) return refused("malformed", "X-Amz-Date is not a date like 20260101T000000Z");
  const skewMs = Math.abs(options.now().getTime() - at);
  if (skewMs > maxSkewMs) {
    return refused("clock skew", `The clocks differ by ${Math.round(skewMs / 1000)} s, more than 300 s`);
  }
  if (longDate.slice(0, 8) !== day) return refused("wrong scope", "The scope has another date than X-Amz-Date");

  const signedHeaders = signedList.split(";");
  const unsigned = Object.keys(headers).filter((name) => name.startsWith("x-amz-") && !signedHeaders.includes(name));
  if (unsigned.length > 0) return refused("unsigned header", `These headers must be signed: ${unsigned.join(", ")}`);
  if (!signedHeaders.includes("host")) return refused("unsigned header", "The host header must be signed");
  if (!isEqual(String(headers["x-amz-security-token"] ?? ""), accessKey.sessionToken ?? "")) {
    return refused("wrong token", "The session token is not that of the access key");
  }
  const { method, url } = request;
  const { secretAccessKey } = accessKey;
  const parts = { method, url, headers, signedHeaders, secretAccessKey, longDate, scope: { day, region, service } };
  const isGenuine = (payload: string) => isEqual(signature, signatureOf({ ...parts, payload }));
  const { sessionNow = options.now } = options;
  const signer = { accessKey, region, now: sessionNow() };
  const claimed = headers["x-amz-content-sha256"];
  if (claimed === undefined) {
    const body = await request.body();
    if (body === undefined) return tooLarge;
    return isGenuine(sha256(body)) ? signedBy(signer, body) : mismatch;
  }
  const isUnsigned = service === "s3" && unsignedPayloads.has(String(claimed));
  if (!isUnsigned && !hexDigest.test(String(claimed))) {
    return refused("wrong digest", "X-Amz-Content-Sha256 is not the digest of the body");
  }
  if (!isGenuine(String(claimed))) return mismatch;
  const body = await request.body();
  if (body === undefined) return tooLarge;
  if (!isUnsigned && sha256(body) !== claimed) {
    return refused("wrong digest", "X-Amz-Content-Sha256 is not the digest of the body");
  }
  return signedBy(signer, body);
}

/** The verdict on a request with a valid signature. */
export function signedBy(
  { accessKey, region, now }: { readonly accessKey: AccessKey; readonly region: string; readonly now: Date },
  body: Buffer,
): Verdict {
  const { accessKeyId, expiresAt } = accessKey;
  if (expiresAt === undefined || expiresAt > now) return { verdict: "genuine", accessKey, region, body };
  return { ...refused("expired", `The credentials of ${accessKeyId} expired at ${expiresAt.toISOString()}`), body };
}

export function refused(fault: SignatureFault, reason: string): Refused {
  return { verdict: "refused", fault, reason };
}

const mismatch = refused("mismatch", "The signature does not match");
const tooLarge = refused("too large", "The body is larger than the limit of the service");

/** A canonical path drops these segments, so one signature would be valid for several paths. */
function isAmbiguous(url: string): boolean {
  return /\/(\/|\.{1,2}(\/|$))/.test(splitUrl(url).path);
}
