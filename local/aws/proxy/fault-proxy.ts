import type { IncomingMessage, ServerResponse } from "node:http";
import type { Principals } from "#local/aws/iam/principals.ts";
import { expireEarly } from "#local/aws/iam/sessions.ts";
import { refusalReply } from "#local/aws/iam/signature-refusals.ts";
import { createLambdaFront } from "#local/aws/lambda/lambda-front.ts";
import {
  createCallFailures,
  type FailCallOptions,
  type FailureVerdict,
  type PlannedFailure,
} from "#local/aws/proxy/call-failures.ts";
import { type CallUnits, type ConsumedCapacity, createCapacityMeter } from "#local/aws/proxy/capacity-meter.ts";
import { createDynamoFront } from "#local/aws/proxy/dynamo-front.ts";
import { createS3Front } from "#local/aws/proxy/s3-front.ts";
import { createSilences } from "#local/aws/proxy/silences.ts";
import { createSqsFront } from "#local/aws/proxy/sqs-front.ts";
import { verifyCall } from "#local/aws/proxy/verify-call.ts";
import { type AwsCall, type AwsService, readCall } from "#local/aws/wire/aws-call.ts";
import { s3Denied, serverError } from "#local/aws/wire/aws-error-replies.ts";
import type { HttpReply } from "#local/aws/wire/emulator-client.ts";
import type { FaultContext, Forward, ServiceFront } from "#local/aws/wire/fault-context.ts";
import { type FaultOptions, quiet } from "#local/aws/wire/fault-options.ts";
import { type LoopbackServer, serveOnLoopback } from "#local/base/loopback-server.ts";
import { createRandom } from "#local/base/random.ts";
import { defined } from "#shared/base/defined.ts";

export type Endpoints = Readonly<Record<AwsService, string>>;

export interface FaultProxyOptions {
  /** The emulators: dynoxide, fauxqs for SQS and S3, and the functions of this process. */
  readonly targets: Readonly<Record<AwsService, Forward>>;
  /** The principals that may sign requests. */
  readonly principals: Principals;
  /** The seed of the faults. The caller prints it, so that a failed run can be repeated. */
  readonly seed: number;
  /** The default is `quiet`. */
  readonly faults?: FaultOptions;
  readonly ports?: Partial<Readonly<Record<AwsService, number>>>;
  /**
   * The number of a message delay's seconds that pass in one real second, for a machine with a faster clock. The
   * default is 1.
   */
  readonly rate?: number;
  /** `"measured"` sums the capacity units of DynamoDB calls and has to parse them. The default is `"unmeasured"`. */
  readonly capacity?: "measured" | "unmeasured";
}

/** Hooks around a call. The call waits for them, so a hook that never resolves stops the call. */
export interface Interceptor {
  /**
   * Runs before any effect. `"reset"` breaks the connection. `"denied"` answers a call of S3 like a policy that denies
   * it. Any other result lets the call pass.
   */
  before?(call: AwsCall): unknown;
  /** Runs after every effect, even if the answer is lost. `"reset"` breaks the connection. */
  after?(call: AwsCall, reply: HttpReply): unknown;
  /** Runs before `after`, for writes to a measured DynamoDB. */
  wrote?(call: AwsCall, units: CallUnits): void;
}

export interface FaultProxy {
  /** The endpoints for the SDK's clients. */
  readonly endpoints: Endpoints;
  /** Sets the faults. A seed restarts the random sequence, so that the same calls meet the same faults. */
  setFaults(faults: FaultOptions, seed?: number): void;
  /**
   * Calls since the start or the last reset, for example `{ "dynamodb:UpdateItem": 12, "sqs:ReceiveMessage:empty": 3
   * }`. `:left` counts polls whose client disconnected.
   */
  calls(): Readonly<Record<string, number>>;
  resetCalls(): void;
  /** Faults injected since the start, for example `{ "sqs:lose": 2 }`. */
  injected(): Readonly<Record<string, number>>;
  /** Zero unless measured. */
  capacity(): ConsumedCapacity;
  /** Makes exactly the n-th call from now fail (1 is the next call), before or after its effect. */
  failCall(n: number, when: "before" | "after", options?: FailCallOptions): PlannedFailure;
  /** Adds hooks around every call. @returns a function that removes them. */
  intercept(interceptor: Interceptor): () => void;
  stop(): Promise<void>;
}

class ConnectionReset extends Error {
  /** The answer that the client does not get although the work was done. */
  readonly undelivered: HttpReply | undefined;

  constructor(undelivered?: HttpReply) {
    super("Connection reset by the fault proxy");
    this.undelivered = undelivered;
  }
}

/** Longer than any pause between calls of a worker. A server that closes an idle connection races with its next use. */
const keepAliveTimeoutMs = 120_000;

/**
 * A proxy between the SDK's clients and the emulators, with one endpoint per service. It accepts requests that a
 * principal has signed and counts every call. It adds behaviour of AWS that the emulators lack: conditional writes on
 * S3, and queue URLs of the requested endpoint. It injects seeded faults.
 *
 * The SDK itself repeats broken connections, throttles and 503 (standard retry mode, three attempts). Every attempt
 * counts as a call. Callers must repeat all other errors themselves, above all TransactionConflict.
 */
export async function startFaultProxy(options: FaultProxyOptions): Promise<FaultProxy> {
  const { targets, seed, principals, ports = {}, capacity = "unmeasured", rate = 1 } = options;
  const calls = createTally();
  const injected = createTally();
  const failures = createCallFailures();
  const interceptors = new Set<Interceptor>();
  let faults = options.faults ?? quiet;

  let random = createRandom(seed);
  const context: FaultContext = {
    get random() {
      return random;
    },
    faults: () => faults,
    injected: injected.add,
  };
  const dynamo = createDynamoFront({ context, forward: targets.dynamodb });
  const meter = createCapacityMeter(dynamo.answer, (call, units) => {
    for (const interceptor of interceptors) interceptor.wrote?.(call, units);
  });
  const sqs = createSqsFront({ context, forward: targets.sqs, rate });
  const silences = createSilences(context);
  const fronts: Readonly<Record<AwsService, ServiceFront>> = {
    dynamodb: capacity === "measured" ? meter.answer : dynamo.answer,
    sqs: sqs.answer,
    s3: createS3Front({ context, forward: targets.s3 }),
    lambda: createLambdaFront({ context, forward: targets.lambda }),
  };

  /** @param expired - the answer to a call of an expired session. */
  async function perform(call: AwsCall, expired: HttpReply | undefined): Promise<HttpReply> {
    const verdict = failures.verdict(call);
    if (verdict?.when === "before") return fail(call, verdict);
    for (const interceptor of interceptors) {
      const word = await interceptor.before?.(call);
      if (word === "reset") throw new ConnectionReset();
      if (word === "denied") return s3Denied();
    }
    if (breaks(call, "resetBefore")) throw new ConnectionReset();
    if ((await silences.before(call)) === "reset") throw new ConnectionReset();
    const refusal = expired ?? expireEarly(call, { context, principals });
    if (refusal !== undefined) return refusal;
    const errs = breaks(call, "serverError");
    if (errs && random.chance(0.5)) return serverError(call.service);
    const reply = await fronts[call.service](call);
    let reset = breaks(call, "resetAfter");
    for (const interceptor of interceptors) {
      if ((await interceptor.after?.(call, reply)) === "reset") reset = true;
    }
    if ((await silences.after(call)) === "reset") reset = true;
    if (reset) throw new ConnectionReset(reply);
    if (verdict !== undefined) return fail(call, verdict, reply);
    return errs ? fail(call, { as: "serverError" }, reply) : reply;
  }

  /** @param undelivered - the answer of a call that had its effect. */
  function fail(call: AwsCall, { as }: Pick<FailureVerdict, "as">, undelivered?: HttpReply): HttpReply {
    if (as === "reset") throw new ConnectionReset(undelivered);
    if (undelivered !== undefined && call.service === "sqs") sqs.undelivered(call, undelivered);
    return serverError(call.service);
  }

  function breaks({ service }: AwsCall, fault: "resetBefore" | "resetAfter" | "serverError"): boolean {
    if (!context.random.chance(faults[service][fault])) return false;
    injected.add(`${service}:${fault}`);
    return true;
  }

  async function serve(service: AwsService, { request, response }: Exchange): Promise<void> {
    const { method = "GET", url: path = "/", headers } = request;
    const verdict = await verifyCall(service, request, principals);
    const refusal = verdict.verdict === "refused" ? refusalReply(service, verdict) : undefined;
    if (refusal !== undefined && verdict.body === undefined) {
      response.writeHead(refusal.status, refusal.headers).end(method === "HEAD" ? undefined : refusal.body);
      return;
    }
    const call = readCall(service, { method, path, headers, body: verdict.body ?? Buffer.alloc(0) });
    calls.add(`${service}:${call.operation}`);
    let takenOver = false;
    response.on("close", () => {
      if (response.writableEnded || service !== "sqs") return;
      takenOver = sqs.abandoned(call);
      if (takenOver) calls.add("sqs:ReceiveMessage:left");
    });
    try {
      const reply = await perform(call, refusal);
      if (isEmptyReceive(call, reply)) calls.add("sqs:ReceiveMessage:empty");
      if (response.destroyed) throw new ConnectionReset(reply);
      response.writeHead(reply.status, reply.headers);
      response.end(method === "HEAD" ? undefined : reply.body);
    } catch (error) {
      if (!(error instanceof ConnectionReset)) return answerBroken(response, error);
      if (error.undelivered !== undefined && !takenOver) sqs.undelivered(call, error.undelivered);
      request.socket.resetAndDestroy();
    }
  }

  function listen(service: AwsService): Promise<LoopbackServer> {
    const port = ports[service];
    return serveOnLoopback(
      (request, response) => {
        serve(service, { request, response }).catch((error: unknown) => answerBroken(response, error));
      },
      { server: { keepAliveTimeout: keepAliveTimeoutMs }, ...defined({ port }) },
    );
  }

  const servers = {
    dynamodb: await listen("dynamodb"),
    sqs: await listen("sqs"),
    s3: await listen("s3"),
    lambda: await listen("lambda"),
  };
  return {
    endpoints: {
      dynamodb: servers.dynamodb.origin,
      sqs: servers.sqs.origin,
      s3: servers.s3.origin,
      lambda: servers.lambda.origin,
    },
    setFaults(next, nextSeed) {
      faults = next;
      if (nextSeed !== undefined) random = createRandom(nextSeed);
    },
    calls: calls.read,
    resetCalls() {
      calls.reset();
      meter.reset();
    },
    injected: injected.read,
    capacity: meter.consumed,
    failCall: failures.plan,
    intercept(interceptor) {
      interceptors.add(interceptor);
      return () => void interceptors.delete(interceptor);
    },
    async stop() {
      silences.stop();
      dynamo.stop();
      sqs.stop();
      for (const server of Object.values(servers)) await server.stop();
    },
  };
}

interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
}

function isEmptyReceive(call: AwsCall, { status, body }: HttpReply): boolean {
  return (
    call.service === "sqs" && call.operation === "ReceiveMessage" && status === 200 && !body.includes('"Messages"')
  );
}

function answerBroken(response: ServerResponse, error: unknown): void {
  if (response.headersSent || response.destroyed) return;
  response.writeHead(502, { "content-type": "text/plain" });
  response.end(`The emulator did not answer: ${error instanceof Error ? error.message : error}`);
}

interface Tally {
  add(name: string): void;
  read(): Readonly<Record<string, number>>;
  reset(): void;
}

function createTally(): Tally {
  const counts = new Map<string, number>();
  return {
    add: (name) => void counts.set(name, (counts.get(name) ?? 0) + 1),
    read: () => Object.fromEntries([...counts].sort(([left], [right]) => (left < right ? -1 : 1))),
    reset: () => counts.clear(),
  };
}
