import * as z from "zod";
import { refusal } from "#functions/api/request/refusal.ts";
import { defined } from "#shared/base/defined.ts";
import { errorMessage } from "#shared/base/errors.ts";
import { excerpt } from "#shared/base/excerpt.ts";
import { findPath } from "#shared/base/find-path.ts";
import { type Json, parseJson } from "#shared/base/json.ts";
import { loopback } from "#shared/source/http-url.ts";

/** API Gateway accepts more; a request of this size has some thousand objects. */
const maxBodyBytes = 1_000_000;
/** Documents are nested at most 100 levels deep; a deeper value would overflow the stack of its readers. */
const maxBodyDepth = 200;
/** Longer than any valid label selector, name or token. */
const maxQueryValue = 10_000;

/** The part of an HTTP API event (payload format 2.0) that Starling reads. */
const httpEvent = z.object({
  rawPath: z.string(),
  rawQueryString: z.string().default(""),
  body: z.string().optional(),
  isBase64Encoded: z.boolean().default(false),
  requestContext: z.object({
    domainName: z.string().optional(),
    http: z.object({ method: z.string() }),
    authorizer: z.object({ iam: z.object({ userArn: z.string().min(1) }) }).optional(),
  }),
});

export interface HttpRequest {
  readonly method: string;
  /** Decoded segments of the path. */
  readonly path: readonly string[];
  readonly query: Readonly<Record<string, string>>;
  readonly body: Json;
  /** ARN of the principal who signed the request. */
  readonly principal: string;
  /** The address at which the caller reaches the API, `https://HOST`; absent for requests that no gateway passed on. */
  readonly origin?: string;
}

/** @throws StarlingError `Forbidden` without a verified signature, `BodyTooLarge`, `BadRequest`. */
export function readRequest(event: unknown): HttpRequest {
  const parsed = httpEvent.safeParse(event);
  if (!parsed.success) throw refusal("BadRequest", "the event is not one of an HTTP API with payload format 2.0");
  const { rawPath, rawQueryString, body, isBase64Encoded, requestContext } = parsed.data;
  const principal = requestContext.authorizer?.iam.userArn;
  if (principal === undefined) {
    throw refusal("Forbidden", "the request is not signed by an IAM principal; sign it with SigV4 for execute-api");
  }
  return {
    method: requestContext.http.method,
    path: decodedPath(rawPath),
    query: readQuery(rawQueryString),
    body: readBody(body, isBase64Encoded ? "base64" : "utf8"),
    principal,
    ...defined({ origin: requestContext.domainName === undefined ? undefined : originOf(requestContext.domainName) }),
  };
}

/** A gateway has TLS; a server on this machine has none. */
function originOf(host: string): string {
  const { hostname } = new URL(`https://${host}`);
  return `${loopback.has(hostname) ? "http" : "https"}://${host}`;
}

function decodedPath(rawPath: string): readonly string[] {
  try {
    return rawPath.split("/").slice(1).map(decodeURIComponent);
  } catch {
    throw refusal("BadRequest", `the path ${excerpt(rawPath)} is not percent-encoded UTF-8`);
  }
}

function readQuery(text: string): Readonly<Record<string, string>> {
  const query = new Map<string, string>(new URLSearchParams(text));
  for (const [name, value] of query) {
    if (value.length <= maxQueryValue) continue;
    const shown = excerpt(name);
    throw refusal("BadRequest", `${shown} has ${value.length} characters; expected at most ${maxQueryValue}`);
  }
  return Object.fromEntries(query);
}

function readBody(body: string | undefined, encoding: "base64" | "utf8"): Json {
  if (body === undefined || body === "") return {};
  const bytes = Buffer.from(body, encoding);
  if (bytes.length > maxBodyBytes) {
    throw refusal(
      "BodyTooLarge",
      `the body has ${bytes.length} bytes; at most ${maxBodyBytes}: apply in several parts`,
    );
  }
  const text = bytes.toString("utf8");
  const deep = findPath(jsonOf(text), ({ depth }) => depth > maxBodyDepth);
  if (deep === undefined) return parseJson(text);
  const field = excerpt(deep.slice(0, 4).join("."));
  throw refusal("BadRequest", `${field} is nested deeper than ${maxBodyDepth} levels; remove it`);
}

/** Reads once without 64-bit integers, which needs no stack. */
function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw refusal("BadRequest", `the body is not JSON: ${excerpt(errorMessage(error), 200)}`);
  }
}
