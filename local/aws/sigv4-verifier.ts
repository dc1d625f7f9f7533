import { createHash, timingSafeEqual } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";
import { Sha256 } from "@aws-crypto/sha256-js";
import { SignatureV4 } from "@smithy/signature-v4";
import type { AccessKey, Principals } from "#local/aws/principals.ts";

export interface SignedRequest {
  readonly method: string;
  /** Path and query, as on the wire. */
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

export interface SigV4Options {
  readonly principals: Pick<Principals, "find">;
  readonly region: string;
  /** E.g. `execute-api`. */
  readonly service: string;
  readonly now: () => Date;
}

export type Verdict =
  | { readonly verdict: "genuine"; readonly accessKey: AccessKey }
  /** The reason is for the operator's log, never for the caller. */
  | { readonly verdict: "refused"; readonly reason: string };

const maxSkewMs = 5 * 60 * 1000;
const authorizationFormat =
  /^AWS4-HMAC-SHA256 Credential=([^/\s]+)\/(\d{8})\/([^/\s]+)\/([^/\s]+)\/aws4_request, ?SignedHeaders=([a-z0-9;-]+), ?Signature=([0-9a-f]{64})$/;
const longDateFormat = /^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/;

/**
 * Verifies an AWS Signature Version 4 in the Authorization header by signing the request again and comparing in constant
 * time. As AWS does, it wants `host` and every `x-amz-*` header among the signed ones, the date of the scope to be that of
 * `x-amz-date`, and a clock within five minutes. The body is always part of what is verified: `UNSIGNED-PAYLOAD` is for S3.
 */
export async function verifySigV4(request: SignedRequest, options: SigV4Options): Promise<Verdict> {
  const { headers } = request;
  const parsed = authorizationFormat.exec(headers.authorization ?? "");
  if (parsed === null) return refused("There is no AWS4-HMAC-SHA256 Authorization header");
  const [, accessKeyId = "", scopeDate = "", region = "", service = "", signedList = "", signature = ""] = parsed;
  if (region !== options.region || service !== options.service) {
    return refused(`The scope is ${region}/${service}, not ${options.region}/${options.service}`);
  }
  const accessKey = options.principals.find(accessKeyId);
  if (accessKey === undefined) return refused(`The access key ${accessKeyId} is unknown`);
  if (isAmbiguous(request.url)) return refused("The path has empty or dot segments, which a signature does not cover");
  if (accessKey.expiresAt !== undefined && accessKey.expiresAt <= options.now()) {
    return refused(`The credentials of ${accessKeyId} expired at ${accessKey.expiresAt.toISOString()}`);
  }
  const date = parseLongDate(String(headers["x-amz-date"] ?? ""));
  if (date === undefined) return refused("X-Amz-Date is not a date like 20260101T000000Z");
  const skewMs = Math.abs(options.now().getTime() - date.getTime());
  if (skewMs > maxSkewMs) return refused(`The clocks differ by ${Math.round(skewMs / 1000)} s, more than 300 s`);
  if (String(headers["x-amz-date"]).slice(0, 8) !== scopeDate) return refused("The scope is of another day");

  const signedHeaders = new Set(signedList.split(";"));
  const unsigned = Object.keys(headers).filter((name) => mustBeSigned(name) && !signedHeaders.has(name));
  if (unsigned.length > 0) return refused(`These headers have to be signed: ${unsigned.join(", ")}`);
  if (!signedHeaders.has("host")) return refused("The host header has to be signed");
  const token = String(headers["x-amz-security-token"] ?? "");
  if (!equal(token, accessKey.sessionToken ?? "")) return refused("The session token is not that of the access key");
  const bodyDigest = createHash("sha256").update(request.body).digest("hex");
  const claimedDigest = headers["x-amz-content-sha256"];
  if (claimedDigest !== undefined && claimedDigest !== bodyDigest) {
    return refused("X-Amz-Content-Sha256 is not the digest of the body");
  }
  const expected = await sign({ request, signedHeaders, accessKey, date, region, service });
  return equal(signature, expected) ? { verdict: "genuine", accessKey } : refused("The signature does not match");
}

function refused(reason: string): Verdict {
  return { verdict: "refused", reason };
}

/** A canonical path leaves these segments out, so one signature would hold for several paths. */
function isAmbiguous(url: string): boolean {
  const [path = ""] = splitOnce(url, "?");
  return /\/(\/|\.{1,2}(\/|$))/.test(path);
}

function mustBeSigned(name: string): boolean {
  return name.startsWith("x-amz-");
}

function equal(left: string, right: string): boolean {
  const digests = [left, right].map((text) => createHash("sha256").update(text).digest());
  return timingSafeEqual(digests[0] ?? Buffer.alloc(0), digests[1] ?? Buffer.alloc(0));
}

function parseLongDate(text: string): Date | undefined {
  const parts = longDateFormat.exec(text);
  if (parts === null) return undefined;
  const [, year, month, day, hour, minute, second] = parts;
  const date = new Date(`${year}-${month}-${day}T${hour}:${minute}:${second}Z`);
  return Number.isNaN(date.getTime()) ? undefined : date;
}

interface Signing {
  readonly request: SignedRequest;
  readonly signedHeaders: ReadonlySet<string>;
  readonly accessKey: AccessKey;
  readonly date: Date;
  readonly region: string;
  readonly service: string;
}

async function sign({ request, signedHeaders, accessKey, date, region, service }: Signing): Promise<string> {
  const { accessKeyId, secretAccessKey } = accessKey;
  const signer = new SignatureV4({
    credentials: { accessKeyId, secretAccessKey },
    region,
    service,
    sha256: Sha256,
    applyChecksum: false,
  });
  const [path = "/", search = ""] = splitOnce(request.url, "?");
  const headers = [...signedHeaders].map((name) => [name, String(request.headers[name] ?? "")]);
  const signed = await signer.sign(
    {
      method: request.method,
      protocol: "http:",
      hostname: "",
      path,
      query: parseQuery(search),
      headers: Object.fromEntries(headers),
      body: request.body,
    },
    { signingDate: date, signableHeaders: new Set(signedHeaders) },
  );
  return signed.headers.authorization?.split("Signature=")[1] ?? "";
}

function splitOnce(text: string, separator: string): string[] {
  const at = text.indexOf(separator);
  return at < 0 ? [text] : [text.slice(0, at), text.slice(at + 1)];
}

function parseQuery(search: string): Record<string, string | string[]> {
  const query: Record<string, string[]> = {};
  for (const pair of search.split("&").filter((part) => part !== "")) {
    const [name = "", value = ""] = splitOnce(pair, "=").map(decodeLeniently);
    query[name] = [...(query[name] ?? []), value];
  }
  return query;
}

function decodeLeniently(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
