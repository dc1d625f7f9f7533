import { createHash, createHmac, timingSafeEqual } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";
import { percentEncode } from "#shared/base/percent-encoding.ts";

/** The parts of a request that a signature covers, as sent. */
export interface SignedParts {
  readonly method: string;
  /** Path and query. */
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  /** Names in lower case, in the order of the request. */
  readonly signedHeaders: readonly string[];
  /** SHA-256 of the body in hex, or the value that replaces it. */
  readonly payload: string;
  readonly secretAccessKey: string;
  /** For example `20260101T000000Z`. */
  readonly longDate: string;
  readonly scope: Scope;
}

export interface Scope {
  readonly day: string;
  readonly region: string;
  readonly service: string;
}

const longDateFormat = /^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/;

/**
 * AWS Signature Version 4 in hex, after
 * docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html. This is not the SDK's signer,
 * because a signer with a mistake would accept its own signatures.
 */
export function signatureOf(parts: SignedParts): string {
  const { method, headers, signedHeaders, payload, longDate, scope } = parts;
  const { path, query } = splitUrl(parts.url);
  const canonical = [
    method,
    canonicalPath(path, scope.service),
    canonicalQuery(query),
    ...signedHeaders.map((name) => `${name}:${canonicalHeader(headers[name])}`),
    "",
    signedHeaders.join(";"),
    payload,
  ].join("\n");
  const { day, region, service } = scope;
  const scopeText = [day, region, service, "aws4_request"].join("/");
  const toSign = ["AWS4-HMAC-SHA256", longDate, scopeText, sha256(canonical)].join("\n");
  return createHmac("sha256", signingKey(parts.secretAccessKey, scopeText)).update(toSign).digest("hex");
}

/** A cache: signing keys change once a day and take half the time of a signature. */
const signingKeys = new Map<string, Buffer>();
const keptKeys = 1000;

function signingKey(secretAccessKey: string, scope: string): Buffer {
  const name = `${scope} ${secretAccessKey}`;
  const known = signingKeys.get(name);
  if (known !== undefined) return known;
  let key: Buffer = Buffer.from(`AWS4${secretAccessKey}`);
  for (const part of scope.split("/")) key = createHmac("sha256", key).update(part).digest();
  if (signingKeys.size >= keptKeys) signingKeys.clear();
  signingKeys.set(name, key);
  return key;
}

export function splitUrl(url: string): {
  readonly path: string;
  readonly query: readonly (readonly [string, string])[];
} {
  const [path = "/", search = ""] = url.split(/\?(.*)/s);
  const query = search
    .split("&")
    .filter((pair) => pair !== "")
    .map((pair) => {
      const [name = "", value = ""] = pair.split(/=(.*)/s);
      return [decodeLeniently(name), decodeLeniently(value)] as const;
    });
  return { path, query };
}

export function withoutParameter(url: string, parameter: string): string {
  const [path = "/", search = ""] = url.split(/\?(.*)/s);
  const kept = search.split("&").filter((pair) => decodeLeniently(pair.split("=")[0] ?? "") !== parameter);
  return `${path}?${kept.join("&")}`;
}

/** S3 encodes a key once. The other services encode the sent path again. */
function canonicalPath(path: string, service: string): string {
  const plain = (segment: string) => (service === "s3" ? decodeLeniently(segment) : segment);
  return path
    .split("/")
    .map((segment) => percentEncode(plain(segment)))
    .join("/");
}

function canonicalQuery(query: readonly (readonly [string, string])[]): string {
  return query
    .map(([name, value]) => [percentEncode(name), percentEncode(value)] as const)
    .sort(([left, leftValue], [right, rightValue]) => order(left, right) || order(leftValue, rightValue))
    .map((pair) => pair.join("="))
    .join("&");
}

function order(left: string, right: string): number {
  if (left === right) return 0;
  return left < right ? -1 : 1;
}

function canonicalHeader(value: string | readonly string[] | undefined): string {
  return [value ?? ""].flat().join(",").trim().replaceAll(/ +/g, " ");
}

function decodeLeniently(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

export function sha256(data: string | Buffer): string {
  return createHash("sha256").update(data).digest("hex");
}

/** Compares in constant time, so that the time does not reveal the first difference. */
export function isEqual(left: string, right: string): boolean {
  const [one, other] = [Buffer.from(left), Buffer.from(right)];
  return one.length === other.length && timingSafeEqual(one, other);
}

/** The milliseconds since the epoch of a date such as `20260101T000000Z`; NaN for any other text. */
export function timeOf(longDate: string): number {
  const parts = longDateFormat.exec(longDate);
  if (parts === null) return Number.NaN;
  const [, year, month, day, hour, minute, second] = parts;
  return Date.parse(`${year}-${month}-${day}T${hour}:${minute}:${second}Z`);
}
