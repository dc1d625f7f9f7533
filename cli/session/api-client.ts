import { request as httpRequest } from "node:http";
import { request as httpsRequest } from "node:https";
import { Sha256 } from "@aws-crypto/sha256-js";
import { SignatureV4 } from "@smithy/signature-v4";
import type { NamedContext } from "#cli/session/contexts.ts";
import { CliFailure, type ExitReason, usageFailure } from "#cli/session/failure.ts";
import type { SleepingClock } from "#shared/base/clock.ts";
import { defined } from "#shared/base/defined.ts";
import { errorMessage } from "#shared/base/errors.ts";
import { excerpt } from "#shared/base/excerpt.ts";
import { parseJson, stringifyJson } from "#shared/base/json.ts";
import { isPlainPath } from "#shared/base/path-segment.ts";
import { queryString } from "#shared/base/percent-encoding.ts";
import { type RetryPolicy, retrying } from "#shared/base/retrying.ts";
import { pathChoices } from "#shared/fleet/api/api-routes.ts";
import { missingRight } from "#shared/words/missing-right.ts";

/** API Gateway allows an integration 30 s. After that no answer comes. */
const requestTimeoutMs = 35_000;
const transientStatus = new Set([429, 502, 503, 504]);

export interface AwsKeys {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken?: string;
}

export interface ApiClientOptions {
  readonly context: NamedContext;
  readonly credentials: () => Promise<AwsKeys>;
  readonly signal: AbortSignal;
  /** A clock whose sleep ends with the signal. */
  readonly clock: SleepingClock;
  readonly trace: (line: string) => void;
}

export interface ApiCall {
  readonly method: "GET" | "POST" | "DELETE";
  readonly path: string;
  readonly query?: Readonly<Record<string, string | undefined>>;
  readonly body?: unknown;
}

export interface ApiClient {
  /** @throws ApiFailure for a refusal, CliFailure when there was no answer. */
  call<T>(call: ApiCall): Promise<T>;
}

/** A refusal of the API. */
export class ApiFailure extends CliFailure {
  readonly code: string;
  readonly status: number;
  readonly body: Readonly<Record<string, unknown>>;
  /** The id of the request in the installation's logs. */
  readonly correlationId: string | undefined;

  constructor(
    answer: {
      readonly status: number;
      readonly body: Readonly<Record<string, unknown>>;
      readonly correlationId?: string | undefined;
    },
    asked: { readonly method: string; readonly path: string; readonly context: string },
  ) {
    const { status, body } = answer;
    const code = typeof body.code === "string" ? body.code : `HTTP ${status}`;
    const message = isOfGateway(answer)
      ? `there is no ${asked.path.split("?")[0]}`
      : typeof body.message === "string"
        ? body.message
        : `the API answered ${status}`;
    // A refusal of the gateway has no code and no reason.
    const right = typeof body.code === "string" ? "" : `: ${missingRight(asked.method, asked.path)}`;
    const reported = status === 403 ? `${message} (context ${asked.context})${right}` : message;
    super(isOfAnotherVersion(answer, asked.path) ? `${reported}${otherVersionText}` : reported, {
      ...exitOf(status),
      ...nextAfter(code, asked.path),
      ...(isOfAnotherVersion(answer, asked.path) ? { exit: "unknown", next: "starling doctor" } : {}),
    });
    this.name = "ApiFailure";
    this.code = code;
    this.status = status;
    this.body = body;
    this.correlationId = answer.correlationId;
  }
}

/** Whether the gateway answered `Not Found`, because it has no such route. */
function isOfGateway({
  status,
  body,
}: {
  readonly status: number;
  readonly body: Readonly<Record<string, unknown>>;
}): boolean {
  return status === 404 && body.code === undefined && body.message === "Not Found";
}

const otherVersionText = ": the installation does not know this request; it may have another version than the command";

/** Whether the API has no route for a path whose parts are all valid names. */
function isOfAnotherVersion(
  answer: { readonly status: number; readonly body: Readonly<Record<string, unknown>> },
  path: string,
): boolean {
  const { status, body } = answer;
  const isRouteless = /^(there is no|\w+ is not possible on) \/v1\//.test(String(body.message));
  if (!isOfGateway(answer) && !((status === 404 || status === 405) && isRouteless)) return false;
  const [plain = ""] = path.split("?");
  return plain
    .split("/")
    .slice(1)
    .every((part) => /^[a-z0-9][-a-z0-9.]{0,127}$/.test(part));
}

/** Codes of refusals that the state of the rollouts explains. */
const ofRollouts: ReadonlySet<string> = new Set([
  "NotHeld",
  "NotStalled",
  "NotFailed",
  "NotATarget",
  "NotGated",
  "StageRunChanged",
  "RolloutRejected",
  "NothingToRollBack",
]);

function isRolloutVerb(path: string): boolean {
  const verbs: readonly string[] = pathChoices.rolloutVerb;
  return verbs.includes(path.split("/").at(-1) ?? "");
}

function nextAfter(code: string, path: string): { readonly next?: string } {
  const [, namespace, plural, name] = /^\/v1\/(?:namespaces\/([^/]+)\/)?([a-z]+)\/([^/]+)/.exec(path) ?? [];
  if (plural === undefined || name === undefined) return {};
  const [, place, source] = /^\/v1\/sources\/([^/]+)\/([^/]+)\/artifacts/.exec(path) ?? [];
  if (code === "NotFound" && source !== undefined) return { next: `starling history source/${source} -n ${place}` };
  const where = namespace === undefined ? "" : ` -n ${namespace}`;
  const isPart = path.split("?")[0]?.includes(`/${plural}/${name}/rollouts/`) === true;
  if (code === "NotFound" && isPart)
    return { next: `starling rollout list ${plural === "syncs" ? "sync/" : ""}${name}${where}` };
  if (code === "NotFound") return { next: `starling get ${plural}${where}` };
  if (ofRollouts.has(code) || (code === "BadRequest" && isRolloutVerb(path)))
    return { next: `starling rollout status ${plural === "syncs" ? "sync/" : ""}${name}${where}` };
  if (code === "GuardChanged") return { next: `starling guard list ${name}${where}` };
  if (code === "Suspended") return { next: `starling resume ${plural.slice(0, -1)}/${name}${where}` };
  if (code === "Deleting" || code === "InUse")
    return { next: `starling describe ${plural.slice(0, -1)}/${name}${where}` };
  return {};
}

function exitOf(status: number): { readonly exit: ExitReason; readonly next?: string } {
  if (status === 403)
    return { exit: "unknown", next: "starling doctor   (shows your principal, and the missing right)" };
  if (status === 401) return { exit: "unknown", next: "starling context list   (check the credentials)" };
  if (status === 404 || status === 409) return { exit: "no" };
  if (status >= 500 || status === 429) return { exit: "unknown", next: "try the same command again" };
  return { exit: "wrongInput" };
}

/** A client that signs its calls with SigV4 for `execute-api`. */
export function createApiClient(options: ApiClientOptions): ApiClient {
  const { name, context } = options.context;
  const signer = new SignatureV4({
    service: "execute-api",
    region: context.region,
    credentials: options.credentials,
    sha256: Sha256,
  });
  /** Every route can be called twice, so that a call without an answer is repeated. */
  const policy: RetryPolicy = {
    tries: (error) => (mayPass(error) ? 4 : 1),
    firstWaitMs: 100,
    growth: 3,
    jitter: "none",
  };
  return {
    async call<T>(call: ApiCall): Promise<T> {
      try {
        return parseAnswer(await retrying(policy, options, () => once(call))) as T;
      } catch (error) {
        if (error instanceof Refused) {
          const { status, correlationId } = error.answer;
          const answer = { status, body: parseAnswer(error.answer), correlationId };
          throw new ApiFailure(answer, { method: call.method, path: call.path, context: name });
        }
        if (!isOfTheNetwork(error)) throw error;
        throw new CliFailure(`no answer from ${context.endpoint} (context ${name}): ${errorMessage(error)}`, {
          exit: "unknown",
          next: "starling context list   (check the endpoint)",
        });
      }
    },
  };

  function mayPass(error: unknown): boolean {
    return error instanceof Refused ? transientStatus.has(error.answer.status) : isOfTheNetwork(error);
  }

  /** Whether the network failed. An interrupt or the command's own timeout is not a failure of the network. */
  function isOfTheNetwork(error: unknown): boolean {
    return !options.signal.aborted && !(error instanceof CliFailure);
  }

  /** @throws Refused */
  async function once(call: ApiCall): Promise<Answer> {
    if (!isPlainPath(call.path))
      throw usageFailure(
        `${excerpt(call.path)} is not a path of the API: a part of it is not a valid name`,
        "starling get --help",
      );
    const url = new URL(context.endpoint.replace(/\/$/, "") + call.path);
    url.search = queryString(call.query ?? {});
    const body = call.body === undefined ? undefined : stringifyJson(call.body);
    const headers: Record<string, string> = {
      host: url.host,
      accept: "application/json",
      ...(body === undefined ? {} : { "content-type": "application/json" }),
    };
    const request = {
      method: call.method,
      protocol: url.protocol,
      hostname: url.hostname,
      ...(url.port === "" ? {} : { port: Number(url.port) }),
      path: url.pathname,
      query: Object.fromEntries(url.searchParams),
      headers,
      ...defined({ body }),
    };
    const signed = await signer.sign(request, { signingDate: options.clock.now() });
    const started = performance.now();
    const answer = await send(url, {
      method: call.method,
      headers: signed.headers,
      body,
      ca: context.caData,
      signal: options.signal,
    });
    const took = Math.round(performance.now() - started);
    options.trace(`${call.method} ${url.pathname}${url.search} ${answer.status} ${took}ms`);
    if (answer.status >= 300) throw new Refused(answer);
    return answer;
  }
}

class Refused extends Error {
  readonly answer: Answer;

  constructor(answer: Answer) {
    super();
    this.answer = answer;
  }
}

interface Answer {
  readonly status: number;
  readonly text: string;
  readonly correlationId: string | undefined;
}

interface Sending {
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | undefined;
  readonly ca: string | undefined;
  readonly signal: AbortSignal;
}

function send(url: URL, sending: Sending): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const start = url.protocol === "https:" ? httpsRequest : httpRequest;
    const request = start(
      url,
      {
        method: sending.method,
        headers: sending.headers,
        signal: AbortSignal.any([sending.signal, AbortSignal.timeout(requestTimeoutMs)]),
        ...(sending.ca === undefined ? {} : { ca: Buffer.from(sending.ca, "base64").toString("utf8") }),
      },
      (response) => {
        const chunks: Buffer[] = [];
        response.on("data", (chunk: Buffer) => chunks.push(chunk));
        response.on("error", reject);
        response.on("end", () =>
          resolve({
            status: response.statusCode ?? 0,
            text: Buffer.concat(chunks).toString("utf8"),
            correlationId: response.headers["x-correlation-id"]?.toString(),
          }),
        );
      },
    );
    request.on("error", reject);
    request.end(sending.body);
  });
}

function parseAnswer(answer: Answer): Readonly<Record<string, unknown>> {
  try {
    return parseJson(answer.text) as Record<string, unknown>;
  } catch {
    throw new CliFailure(`the endpoint answered ${answer.status} without JSON`, {
      exit: "unknown",
      next: "starling context list   (check that the endpoint belongs to Starling)",
    });
  }
}
