/**
 * Explains errors of libraries and runtimes: sockets and DNS lookups (Node, fetch), files, JSON.parse and AWS services.
 * The original message follows in brackets, unless it can quote the input.
 */

import { foreignText } from "#shared/base/foreign-text.ts";
import { ownValue } from "#shared/base/own-value.ts";

interface Thrown {
  readonly code: string;
  readonly name: string;
  readonly message: string;
}

type Words = (thrown: Thrown) => string;

export const untrustedAuthority = "the server's certificate comes from an authority that is not trusted here";
const notTls =
  "the server does not answer with a supported version of TLS; check whether it uses http, or another port";
const cut = "the other side closed the connection too early";
const expired = () => "the AWS credentials have expired; sign in again";
const unknownKey = () => "AWS does not know these credentials; check the access key and its profile";
const wrongSignature = () => "AWS refused the signature; check the secret access key and this machine's clock";
const throttled = () => "AWS throttles the requests; Starling tries again later";
const denied: Words = ({ message }) => {
  const [, who = "the caller", action] = /User: (\S+) is not authorized to perform: (\S+)/.exec(message) ?? [];
  return action === undefined ? "AWS does not allow it" : `${who} is not allowed to ${action}`;
};

/** The explanation for each `code` of an error. The message contains the address, if there is one. */
const byCode: Readonly<Record<string, Words>> = {
  ECONNREFUSED: ({ message }) => `no server listens at ${addressIn(message)}`,
  ECONNRESET: () => cut,
  EPIPE: () => `${cut}, before it had read everything`,
  ETIMEDOUT: ({ message }) => `${addressIn(message)} did not answer in time`,
  ESOCKETTIMEDOUT: ({ message }) => `${addressIn(message)} did not answer in time`,
  UND_ERR_CONNECT_TIMEOUT: () => "no connection in time",
  UND_ERR_HEADERS_TIMEOUT: () => "no answer in time",
  UND_ERR_BODY_TIMEOUT: () => "the answer is incomplete",
  UND_ERR_SOCKET: () => cut,
  ENOTFOUND: ({ message }) =>
    `no host has the name ${hostIn(message)}; check its spelling, and the DNS of this machine`,
  EAI_AGAIN: ({ message }) => `the name ${hostIn(message)} cannot be resolved at the moment`,
  EHOSTUNREACH: ({ message }) => `there is no route to ${addressIn(message)}`,
  ENETUNREACH: ({ message }) => `there is no route to ${addressIn(message)}`,
  EPROTO: () => notTls,
  ERR_SSL_WRONG_VERSION_NUMBER: () => notTls,
  CERT_HAS_EXPIRED: () => "the server's certificate has expired",
  CERT_NOT_YET_VALID: () => "the server's certificate is not valid yet; check both clocks",
  DEPTH_ZERO_SELF_SIGNED_CERT: () => untrustedAuthority,
  SELF_SIGNED_CERT_IN_CHAIN: () => untrustedAuthority,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: () => untrustedAuthority,
  UNABLE_TO_GET_ISSUER_CERT: () => untrustedAuthority,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: () => untrustedAuthority,
  ERR_TLS_CERT_ALTNAME_INVALID: () => "the server's certificate is for another name",
  EADDRINUSE: ({ message }) => `${addressIn(message)} is in use by another process`,
  ENOENT: ({ message }) => `${pathIn(message)} does not exist`,
  EACCES: ({ message }) => `no permission to open ${pathIn(message)}`,
  EISDIR: ({ message }) => `${pathIn(message)} is a folder, but a file is expected`,
  ENOSPC: () => "the disk is full",
};

/** The explanation for each `name` of an exception of AWS services. */
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

/** A broken connection, as Node reports it without a code. */
const broken = /^(?:socket hang up|other side closed|Client network socket disconnected before secure TLS)/;
const maxRaw = 300;

/**
 * Explains an error in Starling's words.
 * @returns undefined for Starling's own errors, and for unknown errors.
 */
export function ownWords(error: unknown): string | undefined {
  const thrown = innermost(error);
  if (thrown === undefined) return undefined;
  if (thrown.name === "SyntaxError") return jsonWords(thrown.message);
  if (broken.test(thrown.message)) return withRaw(cut, thrown);
  const words = isSystems(thrown) ? ownValue(byCode, thrown.code) : ownValue(byName, thrown.name);
  return words === undefined ? undefined : withRaw(words(thrown), thrown);
}

/** `fetch failed` and an AggregateError of several addresses say nothing themselves. */
function innermost(error: unknown): Thrown | undefined {
  if (!(error instanceof Error)) return undefined;
  const { code, name, message, cause } = error as NodeJS.ErrnoException;
  if (error instanceof AggregateError && error.errors.length > 0 && message === "") return innermost(error.errors[0]);
  if (message === "fetch failed" && cause instanceof Error) return innermost(cause);
  return { code: typeof code === "string" ? code : "", name, message };
}

/** A system error has its code in its message. Other errors with such a code explain themselves. */
function isSystems({ code, message }: Thrown): boolean {
  return /^(?:E[A-Z_]+)$/.test(code) && !code.startsWith("ERR_") ? message.includes(code) : code !== "";
}

function withRaw(words: string, { message, code }: Thrown): string {
  return `${words} (${foreignText(message === "" ? code : message, maxRaw)})`;
}

/** V8 quotes the text that is not JSON, which may contain a secret. */
function jsonWords(message: string): string | undefined {
  if (/^(?:Unexpected end of JSON input|Unterminated string in JSON)/.test(message)) {
    return "the JSON is incomplete: a brace, a bracket or a quote is not closed";
  }
  const [, line, column] = /in JSON at position \d+ \(line (\d+) column (\d+)\)/.exec(message) ?? [];
  if (line !== undefined) return `the JSON is invalid in line ${line}, column ${column}`;
  const [, character] = /^Unexpected token '(.)',? .*is not valid JSON$/s.exec(message) ?? [];
  return character === undefined ? undefined : `it is not JSON: no value may begin with ${character}`;
}

/** `10.0.0.1:443` of `connect ECONNREFUSED 10.0.0.1:443`. */
function addressIn(message: string): string {
  return /\b(?:E[A-Z]+):? (?:[a-z ]+ )?(\S+:\d+)/.exec(message)?.[1] ?? "the address";
}

function hostIn(message: string): string {
  return /\b(?:ENOTFOUND|EAI_AGAIN) (\S+)/.exec(message)?.[1] ?? "of the host";
}

function pathIn(message: string): string {
  return /'([^']+)'/.exec(message)?.[1] ?? "the file";
}
