/**
 * What libraries and runtimes say, in words that tell a person what it is: sockets and name look-ups (Node, fetch), files,
 * JSON.parse and AWS's services. What they said stays behind it in brackets, unless it may quote what it was about.
 */

import { foreignText } from "#shared/base/foreign-text.ts";
import { ownValue } from "#shared/base/own-value.ts";

interface Thrown {
  readonly code: string;
  readonly name: string;
  readonly message: string;
}

type Words = (thrown: Thrown) => string;

const untrusted = "the certificate that answers is of an authority that is not trusted here";
const notTls = "what answers does not speak TLS as it is spoken here; is it http, or another port?";
const cut = "the other side closed the connection in the middle";
const expired = () => "the AWS credentials have expired; sign in again";
const unknownKey = () => "AWS does not know these credentials; check the access key, and the profile that they are of";
const wrongSignature = () => "AWS does not take the signature: check the secret access key, and this machine's clock";
const throttled = () => "AWS is asked too often for now; it passes, and is asked again later";
const denied: Words = ({ message }) => {
  const [, who = "the caller", action] = /User: (\S+) is not authorized to perform: (\S+)/.exec(message) ?? [];
  return action === undefined ? "AWS does not allow it" : `${who} may not ${action}`;
};

/** Legend: `code` of the error, and what it means. The message has the address where there is one. */
const byCode: Readonly<Record<string, Words>> = {
  ECONNREFUSED: ({ message }) => `nobody listens at ${addressIn(message)}`,
  ECONNRESET: () => cut,
  EPIPE: () => `${cut}: nobody read what was written to it`,
  ETIMEDOUT: ({ message }) => `${addressIn(message)} did not answer in time`,
  ESOCKETTIMEDOUT: ({ message }) => `${addressIn(message)} did not answer in time`,
  UND_ERR_CONNECT_TIMEOUT: () => "no connection in time",
  UND_ERR_HEADERS_TIMEOUT: () => "no answer in time",
  UND_ERR_BODY_TIMEOUT: () => "the answer stopped in the middle",
  UND_ERR_SOCKET: () => cut,
  ENOTFOUND: ({ message }) => `no host has the name ${hostIn(message)}; is it spelt right, and known where this runs?`,
  EAI_AGAIN: ({ message }) => `the name ${hostIn(message)} cannot be looked up for now`,
  EHOSTUNREACH: ({ message }) => `no way leads to ${addressIn(message)}`,
  ENETUNREACH: ({ message }) => `no way leads to ${addressIn(message)}`,
  EPROTO: () => notTls,
  ERR_SSL_WRONG_VERSION_NUMBER: () => notTls,
  CERT_HAS_EXPIRED: () => "the certificate that answers has expired",
  CERT_NOT_YET_VALID: () => "the certificate that answers is not valid yet; are both clocks right?",
  DEPTH_ZERO_SELF_SIGNED_CERT: () => untrusted,
  SELF_SIGNED_CERT_IN_CHAIN: () => untrusted,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: () => untrusted,
  UNABLE_TO_GET_ISSUER_CERT: () => untrusted,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: () => untrusted,
  ERR_TLS_CERT_ALTNAME_INVALID: () => "the certificate that answers is for another name",
  EADDRINUSE: ({ message }) => `${addressIn(message)} is taken by another process`,
  ENOENT: ({ message }) => `there is no ${pathIn(message)}`,
  EACCES: ({ message }) => `${pathIn(message)} may not be opened`,
  EISDIR: ({ message }) => `${pathIn(message)} is a folder, and a file is wanted`,
  ENOSPC: () => "the disk is full",
};

/** Legend: `name` of an exception of AWS's services, and what it means. */
const byName: Readonly<Record<string, Words>> = {
  ExpiredToken: expired,
  ExpiredTokenException: expired,
  RequestExpired: expired,
  UnrecognizedClientException: unknownKey,
  InvalidClientTokenId: unknownKey,
  SignatureDoesNotMatch: wrongSignature,
  InvalidSignatureException: wrongSignature,
  AccessDenied: denied,
  AccessDeniedException: denied,
  Throttling: throttled,
  ThrottlingException: throttled,
  TooManyRequestsException: throttled,
};

/** A connection that broke, as Node says it without its code. */
const broken = /^(?:socket hang up|other side closed|Client network socket disconnected before secure TLS)/;
const maxRaw = 300;

/**
 * What was thrown, in our words.
 * @returns undefined for what is said in our words already, and for what nobody knows here.
 */
export function ownWords(error: unknown): string | undefined {
  const thrown = innermost(error);
  if (thrown === undefined) return undefined;
  if (thrown.name === "SyntaxError") return jsonWords(thrown.message);
  if (broken.test(thrown.message)) return withRaw(cut, thrown);
  const words = isSystems(thrown) ? ownValue(byCode, thrown.code) : ownValue(byName, thrown.name);
  return words === undefined ? undefined : withRaw(words(thrown), thrown);
}

/** `fetch failed` and what tried several addresses say nothing themselves. */
function innermost(error: unknown): Thrown | undefined {
  if (!(error instanceof Error)) return undefined;
  const { code, name, message, cause } = error as NodeJS.ErrnoException;
  if (error instanceof AggregateError && error.errors.length > 0 && message === "") return innermost(error.errors[0]);
  if (message === "fetch failed" && cause instanceof Error) return innermost(cause);
  return { code: typeof code === "string" ? code : "", name, message };
}

/** What has the code in its message is the system's own; others of that code speak for themselves. */
function isSystems({ code, message }: Thrown): boolean {
  return /^(?:E[A-Z_]+)$/.test(code) && !code.startsWith("ERR_") ? message.includes(code) : code !== "";
}

function withRaw(words: string, { message, code }: Thrown): string {
  return `${words} (${foreignText(message === "" ? code : message, maxRaw)})`;
}

/** What V8 says of a text that is no JSON quotes the text, which may hold a secret. */
function jsonWords(message: string): string | undefined {
  if (/^(?:Unexpected end of JSON input|Unterminated string in JSON)/.test(message)) {
    return "the JSON ends too early: a brace, a bracket or a quote in it is not closed";
  }
  const [, line, column] = /in JSON at position \d+ \(line (\d+) column (\d+)\)/.exec(message) ?? [];
  if (line !== undefined) return `the JSON is wrong in line ${line}, column ${column}`;
  const [, character] = /^Unexpected token '(.)',? .*is not valid JSON$/s.exec(message) ?? [];
  return character === undefined ? undefined : `it is no JSON: nothing in it may begin with ${character}`;
}

/** `10.0.0.1:443` of `connect ECONNREFUSED 10.0.0.1:443`. */
function addressIn(message: string): string {
  return /\b(?:E[A-Z]+):? (?:[a-z ]+ )?(\S+:\d+)/.exec(message)?.[1] ?? "the address";
}

function hostIn(message: string): string {
  return /\b(?:ENOTFOUND|EAI_AGAIN) (\S+)/.exec(message)?.[1] ?? "of the host";
}

function pathIn(message: string): string {
  return /'([^']+)'/.exec(message)?.[1] ?? "such file";
}
