/**
 * Starling on one machine: the handlers of the functions behind real emulators, wired as the control stack wires them.
 * Everything listens on the loopback interface, and everything ends with `stop`.
 */
import { randomBytes } from "node:crypto";
import { PurgeQueueCommand } from "@aws-sdk/client-sqs";
import { putSecret } from "#local/aws/create-resources.ts";
import { startDynamo } from "#local/aws/dynamo-server.ts";
import { EksRegister } from "#local/aws/eks-register.ts";
import { type EksStsServer, startEksAndSts } from "#local/aws/eks-sts-server.ts";
import { type EventSourceLoop, type InvocationReport, startEventSource } from "#local/aws/event-source-loop.ts";
import { type FaultOptions, quiet } from "#local/aws/fault-options.ts";
import { type FaultProxy, startFaultProxy } from "#local/aws/fault-proxy.ts";
import { type HttpFront, startHttpFront } from "#local/aws/http-front.ts";
import { IamRoles } from "#local/aws/iam-roles.ts";
import { type LambdaHandler, localAccountId, localRegion } from "#local/aws/lambda-context.ts";
import { Principals } from "#local/aws/principals.ts";
import { renewedCredentials } from "#local/aws/renewed-credentials.ts";
import { startSchedule } from "#local/aws/scheduler.ts";
import { startSecrets } from "#local/aws/secrets-server.ts";
import { startSqsAndS3 } from "#local/aws/sqs-s3-server.ts";
import { type Deployment, deploy, only, roleArnOf, sessionArnOf } from "#local/deployment.ts";
import { functionCode } from "#local/function-code.ts";
import type { PacedClock } from "#local/paced-clock.ts";
import { defaultTickEveryMs, overridePlan } from "#local/plan-overrides.ts";
import type { FunctionPlan, MachinePlan } from "#local/template/machine-plan.ts";
import { readPlan } from "#local/template/read-plan.ts";
import { synthesize } from "#local/template/synthesize.ts";
import { type AwsClients, awsClients } from "#shared/lambda/aws-clients.ts";
import type { WireOptions } from "#shared/lambda/wire-options.ts";
import type { QueueName } from "#shared/messages.ts";

export interface MachineOptions {
  /** Rows, blobs and secrets are kept here; left out, they live in memory. */
  readonly stateDir?: string;
  /** Seed of the faults; whoever chooses it prints it. */
  readonly seed?: number;
  readonly faults?: FaultOptions;
  readonly capacity?: "measured" | "unmeasured";
  /** Between ticks; `"manual"`: only `tick()` ticks. One second by default, where AWS has a minute. */
  readonly tickEveryMs?: number | "manual";
  /**
   * The clock of the functions; the system's by default. With one that runs faster, timeouts, delays and batching
   * windows are as much shorter, so that watchdogs and back-offs come soon.
   */
  readonly clock?: PacedClock;
  /**
   * A new sandbox of a function, by default what `wire` gives: the function with connections of its own and, where
   * given, a clock that goes wrong or clients that are watched. For tests that let sandboxes die or disagree.
   */
  readonly sandboxes?: (functionName: string, wire: (own?: SandboxOptions) => LambdaHandler) => LambdaHandler;
  /** Overrides of the functions' timeouts and of the visibility in their queues, for tests that let workers die. */
  readonly timeoutSeconds?: Partial<Readonly<Record<QueueName, number>>>;
  /** Event sources per queue: 2 gives two planners, two workers and so on at once. */
  readonly copies?: number;
  /** First part of the stacks' names and of what clusters are told; as in the app's context. */
  readonly installation?: string;
  /** PEM certificates of this machine's git hosts. */
  readonly gitCa?: string;
  readonly apiPort?: number;
  /** The access key of people; made up when left out. */
  readonly accessKey?: AccessKey;
  readonly onInvocation?: (report: InvocationReport) => void;
}

export interface SandboxOptions extends WireOptions {
  /** What is to be done to the clients of this sandbox. */
  readonly aws?: (clients: AwsClients) => AwsClients;
}

export interface AccessKey {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
}

export interface Machine {
  /** Through the fault proxy, as the functions see them, but with the credentials of people. */
  readonly aws: AwsClients;
  readonly proxy: FaultProxy;
  /** What the stacks are made of. */
  readonly plan: MachinePlan;
  /** What of the stacks is called how. */
  readonly environment: Pick<Deployment, "table" | "bucket" | "queues">;
  /** Everybody whose signature is known: people, and the sessions of the functions' roles. */
  readonly principals: Principals;
  /** Where `starling` and git hosts call. */
  readonly api: { readonly endpoint: string; readonly region: string; readonly credentials: AccessKey };
  readonly webhook: { readonly url: string; readonly secret: string };
  /** The EKS clusters and IAM roles that the functions find. */
  readonly eks: LocalEks;
  readonly sources: ReadonlyMap<QueueName, readonly EventSourceLoop[]>;
  tick(): Promise<void>;
  putSecret(name: string, value: string): Promise<void>;
  /** Every message of every queue is gone, as after `aws sqs purge-queue`. */
  purgeQueues(): Promise<void>;
  stop(): Promise<void>;
}

export interface LocalEks extends Pick<EksStsServer, "endpoint" | "calls"> {
  readonly clusters: EksRegister;
  readonly roles: IamRoles;
  /** The role of the function that reaches clusters. */
  readonly callerArn: string;
  /** What tokens and sessions end by. */
  readonly now: () => Date;
}

const principalArn = `arn:aws:iam::${localAccountId}:user/local`;

export async function startMachine(options: MachineOptions = {}): Promise<Machine> {
  quietPowertools();
  const stops: (() => Promise<void>)[] = [];
  try {
    return await assemble(options, stops);
  } catch (error) {
    await stopAll(stops);
    throw error;
  }
}

async function assemble(options: MachineOptions, stops: (() => Promise<void>)[]): Promise<Machine> {
  const state = options.stateDir === undefined ? {} : { stateDir: options.stateDir };
  const started = async <T extends { stop(): Promise<void> }>(starting: Promise<T>): Promise<T> => {
    const part = await starting;
    stops.unshift(() => part.stop());
    return part;
  };
  const context = options.installation === undefined ? {} : { installation: options.installation };
  const [stacks, dynamo, sqsAndS3, secrets] = await Promise.all([
    synthesize(context),
    started(startDynamo(state)),
    started(startSqsAndS3(state)),
    started(startSecrets(state)),
  ]);
  const plan = overridePlan(readPlan(stacks), options);
  const rate = options.clock?.rate ?? 1;
  const accessKey = options.accessKey ?? newAccessKey();
  const principals = new Principals([{ ...accessKey, principalArn }]);
  const proxy = await started(
    startFaultProxy({
      targets: { dynamodb: dynamo.endpoint, sqs: sqsAndS3.endpoint, s3: sqsAndS3.endpoint },
      seed: options.seed ?? 1,
      faults: quiet,
      rate,
      capacity: options.capacity ?? "unmeasured",
      principals,
    }),
  );
  const eksParts = { clusters: new EksRegister(), roles: new IamRoles(), now: clockOf(options) };
  const eks = await started(startEksAndSts({ ...eksParts, principals }));
  const { dynamodb, sqs, s3 } = proxy.endpoints;
  const endpoints = {
    dynamo: dynamodb,
    sqs,
    s3,
    secrets: secrets.endpoint,
    sts: eks.endpoint,
    eks: eks.endpoint,
  };
  const aws = awsClients({ region: localRegion, credentials: accessKey, endpoints });
  const secret = randomBytes(24).toString("base64url");
  const deployment = await deploy(aws, plan, { rate, secretValue: JSON.stringify([secret]) });
  proxy.setFaults(options.faults ?? quiet);

  const wiring: WireOptions = options.clock === undefined ? {} : { clock: options.clock };
  const custom = options.sandboxes ?? ((_name, wire) => wire());
  const newSandbox = (lambda: FunctionPlan): LambdaHandler => {
    const wire = functionCode(lambda.folder);
    return custom(lambda.folder, ({ aws: watch = (clients: AwsClients) => clients, ...own } = {}) => {
      const credentials = renewedCredentials(principals, sessionArnOf(lambda));
      const clients = watch(awsClients({ region: localRegion, credentials, endpoints }));
      return wire(deployment.variables(lambda), clients, { ...wiring, ...own });
    });
  };
  const parts: Parts = { plan, deployment, newSandbox, rate, options };
  const front = await started(openFront(parts, principals));
  const sources = await startSources(parts, aws.sqs);
  stops.unshift(async () => {
    await Promise.all([...sources.values()].flat().map((source) => source.stop()));
  });
  const everyMinute = only(plan.schedules, "schedule");
  const tick = functionOf(plan, everyMinute.function);
  const tickHandler = newSandbox(tick) as (event: unknown) => Promise<void>;
  const everyMs = options.tickEveryMs ?? defaultTickEveryMs;
  if (everyMs !== "manual") {
    const schedule = startSchedule({
      functionName: tick.folder,
      timeoutSeconds: tick.timeoutSeconds,
      everyMs,
      event: everyMinute.input,
      handler: tickHandler,
    });
    stops.unshift(() => schedule.stop());
  }
  return {
    aws,
    proxy,
    plan,
    environment: deployment,
    principals,
    api: { endpoint: front.url, region: localRegion, credentials: accessKey },
    webhook: { url: `${front.url}/hook/github`, secret },
    eks: {
      ...eksParts,
      endpoint: eks.endpoint,
      calls: eks.calls,
      callerArn: roleArnOf(
        only(
          plan.functions.filter(({ folder }) => folder === "apply"),
          "apply",
        ),
      ),
    },
    sources,
    tick: () => tickHandler(everyMinute.input),
    async putSecret(name, value) {
      await putSecret(aws.secrets, { name, value });
    },
    async purgeQueues() {
      await Promise.all(
        Object.values(deployment.queues).map((QueueUrl) => aws.sqs.send(new PurgeQueueCommand({ QueueUrl }))),
      );
    },
    stop: () => stopAll(stops),
  };
}

function clockOf({ clock }: MachineOptions): () => Date {
  return clock === undefined ? () => new Date() : () => clock.now();
}

export function newAccessKey(): AccessKey {
  return {
    accessKeyId: `AKLOCAL${randomBytes(6).toString("hex").toUpperCase()}`,
    secretAccessKey: randomBytes(30).toString("base64"),
  };
}

interface Parts {
  readonly plan: MachinePlan;
  readonly deployment: Deployment;
  readonly newSandbox: (lambda: FunctionPlan) => LambdaHandler;
  readonly rate: number;
  readonly options: MachineOptions;
}

function functionOf(plan: MachinePlan, name: string): FunctionPlan {
  return only(
    plan.functions.filter((candidate) => candidate.name === name),
    name,
  );
}

function openFront({ plan, newSandbox, options }: Parts, principals: Principals): Promise<HttpFront> {
  return startHttpFront({
    routes: plan.routes.map(({ routeKey, authorization, function: name }) => {
      const lambda = functionOf(plan, name);
      const { folder: functionName, timeoutSeconds } = lambda;
      return { routeKey, authorization, functionName, timeoutSeconds, handler: newSandbox(lambda) };
    }),
    principals,
    ...(options.apiPort === undefined ? {} : { port: options.apiPort }),
  });
}

async function startSources({ plan, deployment, newSandbox, rate, options }: Parts, sqs: AwsClients["sqs"]) {
  const sources = new Map<QueueName, readonly EventSourceLoop[]>();
  for (const source of plan.eventSources) {
    const lambda = functionOf(plan, source.function);
    const copies = Array.from({ length: options.copies ?? 1 }, () =>
      startEventSource({
        functionName: lambda.folder,
        sqs,
        queueUrl: deployment.queue(source.queue).url,
        handler: paced(newSandbox(lambda), rate),
        timeoutSeconds: lambda.timeoutSeconds / rate,
        batchSize: source.batchSize,
        maximumConcurrency: source.maximumConcurrency,
        batchingWindowSeconds: source.batchingWindowSeconds / rate,
        reportBatchItemFailures: source.reportBatchItemFailures,
        ...(options.onInvocation === undefined ? {} : { onInvocation: options.onInvocation }),
      }),
    );
    sources.set(lambda.folder as QueueName, await Promise.all(copies));
  }
  return sources;
}

/** The time that is left, in seconds of the functions' clock. */
function paced(handler: LambdaHandler, rate: number): LambdaHandler {
  if (rate === 1) return handler;
  return (event, context) =>
    handler(event, { ...context, getRemainingTimeInMillis: () => context.getRemainingTimeInMillis() * rate });
}

async function stopAll(stops: (() => Promise<void>)[]): Promise<void> {
  for (const stop of stops.splice(0)) await stop();
}

/** The functions' logs and metrics are CloudWatch's business; on a terminal they are asked for with POWERTOOLS_LOG_LEVEL. */
function quietPowertools(): void {
  process.env.POWERTOOLS_LOG_LEVEL ??= "SILENT";
  process.env.POWERTOOLS_METRICS_DISABLED ??= "true";
}
