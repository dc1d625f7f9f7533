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
  /** Who may sign requests. */
  readonly principals: Principals;
  /** Seed of the faults; whoever chooses it prints it, so that a failing run can be repeated. */
  readonly seed: number;
  /** Default `quiet`. */
  readonly faults?: FaultOptions;
  readonly ports?: Partial<Readonly<Record<AwsService, number>>>;
  /** How many seconds of a message's own delay pass in one, for a machine whose clock runs faster. Default 1. */
  readonly rate?: number;
  /** `"measured"` sums the capacity units of DynamoDB calls, at the price of parsing them. Default `"unmeasured"`. */
  readonly capacity?: "measured" | "unmeasured";
}

/** Hooks around a call, which may be asynchronous. The call waits for them: what never resolves stops the world there. */
export interface Interceptor {
  /**
   * Before anything was done, `"reset"` breaks the connection, and `"denied"` answers a call of S3 as a policy that denies
   * it; any other result lets the call pass.
   */
  before?(call: AwsCall): unknown;
  /** Called for whatever was done, also where its answer gets lost. `"reset"` breaks the connection now. */
  after?(call: AwsCall, reply: HttpReply): unknown;
  /** Before `after`, of writes to a measured DynamoDB. */
  wrote?(call: AwsCall, units: CallUnits): void;
}

export interface FaultProxy {
  /** What SDK clients are given as their endpoints. */
  readonly endpoints: Endpoints;
  /** With a seed, chance begins anew: the same calls from here on meet the same faults. */
  setFaults(faults: FaultOptions, seed?: number): void;
  /** Calls since the start or the last reset, e.g. `{ "dynamodb:UpdateItem": 12, "sqs:ReceiveMessage:empty": 3 }`; `:left` are polls whose client went away. */
  calls(): Readonly<Record<string, number>>;
  resetCalls(): void;
  /** Faults that were injected since the start, e.g. `{ "sqs:lose": 2 }`. */
  injected(): Readonly<Record<string, number>>;
  /** Zero unless measured. */
  capacity(): ConsumedCapacity;
  /** Fails exactly the n-th call from now (1 = the next), before or after its effect. */
  failCall(n: number, when: "before" | "after", options?: FailCallOptions): PlannedFailure;
  /** Adds hooks around every call; gives a function that removes them. */
  intercept(interceptor: Interceptor): () => void;
  stop(): Promise<void>;
}

class ConnectionReset extends Error {
  /** What the client would have been told, when the work was done. */
  readonly undelivered: HttpReply | undefined;

  constructor(undelivered?: HttpReply) {
    super("Connection reset by the fault proxy");
    this.undelivered = undelivered;
  }
}

/** Longer than any pause between the calls of a worker: a server that closes an idle connection races with its reuse. */
const keepAliveTimeoutMs = 120_000;

/**
 * Stands between the SDK's clients and the emulators, one endpoint per service: lets in what a principal signed, counts every call, adds what AWS does and
 * the emulators do not (conditional writes on S3, queue URLs of the endpoint that was asked), and injects seeded faults.
 *
 * The SDK repeats broken connections, throttles and 503 by itself (standard retry mode, three attempts); every attempt is
 * a call and is counted. What it does not repeat, a TransactionConflict above all, its caller has to.
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

  /** @param expired - the answer to a call of a session that has ended. */
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

  /** @param undelivered - of a call that had its effect. */
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
