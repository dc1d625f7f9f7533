/**
 * Starling on one machine: the handlers of the functions behind real emulators, wired as the control stack wires them.
 * Everything listens on the loopback interface, and everything ends with `stop`.
 */
import { randomBytes } from "node:crypto";
import { CreateSecretCommand, PutSecretValueCommand, ResourceExistsException } from "@aws-sdk/client-secrets-manager";
import { PurgeQueueCommand } from "@aws-sdk/client-sqs";
import { wireApi } from "#functions/api/wire.ts";
import { wireTick } from "#functions/tick/wire.ts";
import { wireWebhook } from "#functions/webhook/wire.ts";
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
import { startSchedule } from "#local/aws/scheduler.ts";
import { startSecrets } from "#local/aws/secrets-server.ts";
import { startSqsAndS3 } from "#local/aws/sqs-s3-server.ts";
import { type LocalEnvironment, queueFunctions } from "#local/functions.ts";
import type { PacedClock } from "#local/paced-clock.ts";
import {
  bucketName,
  createBucket,
  createQueues,
  createTable,
  type QueueTimeouts,
  tableName,
} from "#local/resources.ts";
import { type AwsClients, awsClients } from "#shared/lambda/aws-clients.ts";
import type { WireOptions } from "#shared/lambda/wire-options.ts";
import type { QueueName } from "#shared/messages.ts";

export const webhookSecretName = "starling/webhook";

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
   * What an event source or the schedule invokes: by default one sandbox of the function for as long as the machine
   * runs. `wire` gives a new one, with connections of its own and, where given, a clock that goes wrong: for tests that
   * let sandboxes die or disagree.
   */
  readonly sandboxes?: (functionName: string, wire: (options?: WireOptions) => LambdaHandler) => LambdaHandler;
  /** Overrides of the functions' timeouts, for tests that let workers die. */
  readonly timeoutSeconds?: Partial<QueueTimeouts>;
  /** Event sources per queue: 2 gives two planners, two workers and so on at once. */
  readonly copies?: number;
  readonly installation?: string;
  /** PEM certificates of this machine's git hosts. */
  readonly gitCa?: string;
  readonly apiPort?: number;
  /** The access key of people; made up when left out. */
  readonly accessKey?: AccessKey;
  readonly onInvocation?: (report: InvocationReport) => void;
}

export interface AccessKey {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
}

export interface Machine {
  /** Through the fault proxy, as the functions see them. */
  readonly aws: AwsClients;
  readonly proxy: FaultProxy;
  readonly environment: LocalEnvironment;
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
  /** Who the functions are to STS. */
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
  const [dynamo, sqsAndS3, secrets] = await Promise.all([
    started(startDynamo(state)),
    started(startSqsAndS3(state)),
    started(startSecrets(state)),
  ]);
  const proxy = await started(
    startFaultProxy({
      targets: { dynamodb: dynamo.endpoint, sqs: sqsAndS3.endpoint, s3: sqsAndS3.endpoint },
      seed: options.seed ?? 1,
      faults: quiet,
      rate: options.clock?.rate ?? 1,
      capacity: options.capacity ?? "unmeasured",
    }),
  );
  const accessKey = options.accessKey ?? newAccessKey();
  const principals = new Principals([{ ...accessKey, principalArn }]);
  const eksParts = { clusters: new EksRegister(), roles: new IamRoles(), now: clockOf(options) };
  const eks = await started(startEksAndSts({ ...eksParts, principals }));
  const { dynamodb, sqs, s3 } = proxy.endpoints;
  const newClients = () =>
    awsClients({
      region: localRegion,
      credentials: accessKey,
      endpoints: { dynamo: dynamodb, sqs, s3, secrets: secrets.endpoint, sts: eks.endpoint, eks: eks.endpoint },
    });
  const aws = newClients();
  const timeouts = Object.fromEntries(
    Object.entries(queueFunctions).map(([name, { timeoutSeconds }]) => [
      name,
      options.timeoutSeconds?.[name as QueueName] ?? timeoutSeconds,
    ]),
  ) as unknown as QueueTimeouts;
  await Promise.all([createTable(aws), createBucket(aws)]);
  const queues = await createQueues(aws.sqs, timeouts, options.clock?.rate ?? 1);
  proxy.setFaults(options.faults ?? quiet);
  const environment: LocalEnvironment = {
    table: tableName,
    bucket: bucketName,
    installation: options.installation ?? "local",
    queues,
    ...(options.gitCa === undefined ? {} : { gitCa: options.gitCa }),
  };

  const secret = randomBytes(24).toString("base64url");
  const putSecret = (name: string, value: string) => storeSecret(aws, name, value);
  await putSecret(webhookSecretName, JSON.stringify([secret]));
  const wiring: WireOptions = options.clock === undefined ? {} : { clock: options.clock };
  const front = await started(
    openFront({
      environment,
      aws,
      principals,
      wiring,
      ...(options.apiPort === undefined ? {} : { port: options.apiPort }),
    }),
  );
  const parts = { environment, newClients, wiring, sandboxes: options.sandboxes ?? ((_name, wire) => wire()) };
  const sources = await startSources({ ...parts, sqs: aws.sqs, timeouts, options });
  stops.unshift(async () => {
    await Promise.all([...sources.values()].flat().map((source) => source.stop()));
  });
  const tickHandler = parts.sandboxes("tick", (own) => wireLocalTick(parts, own)) as () => Promise<void>;
  const everyMs = options.tickEveryMs ?? 1000;
  if (everyMs !== "manual") {
    const schedule = startSchedule({ functionName: "tick", timeoutSeconds: 55, everyMs, handler: tickHandler });
    stops.unshift(() => schedule.stop());
  }
  return {
    aws,
    proxy,
    environment,
    api: { endpoint: front.url, region: localRegion, credentials: accessKey },
    webhook: { url: `${front.url}/hook/github`, secret },
    eks: { ...eksParts, endpoint: eks.endpoint, calls: eks.calls, callerArn: principalArn },
    sources,
    tick: tickHandler,
    putSecret,
    async purgeQueues() {
      await Promise.all(Object.values(queues).map((QueueUrl) => aws.sqs.send(new PurgeQueueCommand({ QueueUrl }))));
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

interface FunctionParts {
  readonly environment: LocalEnvironment;
  readonly newClients: () => AwsClients;
  readonly wiring: WireOptions;
  readonly sandboxes: NonNullable<MachineOptions["sandboxes"]>;
}

function wireLocalTick(
  { environment, newClients, wiring }: FunctionParts,
  own: WireOptions | undefined,
): () => Promise<void> {
  const { queues } = environment;
  return wireTick(
    {
      STARLING_TABLE: environment.table,
      STARLING_QUEUE_RESOLVE: queues.resolve,
      STARLING_QUEUE_RENDER: queues.render,
      STARLING_QUEUE_ROLLOUT: queues.rollout,
      STARLING_QUEUE_APPLY: queues.apply,
    },
    newClients(),
    { ...wiring, ...own },
  );
}

interface FrontParts {
  readonly environment: LocalEnvironment;
  readonly aws: AwsClients;
  readonly principals: Principals;
  readonly wiring: WireOptions;
  readonly port?: number;
}

function openFront({ environment, aws, principals, wiring, port }: FrontParts): Promise<HttpFront> {
  const api = wireApi(
    {
      STARLING_TABLE: environment.table,
      STARLING_QUEUE_RESOLVE: environment.queues.resolve,
      STARLING_QUEUE_ROLLOUT: environment.queues.rollout,
    },
    aws,
    wiring,
  );
  const webhook = wireWebhook(
    {
      STARLING_TABLE: environment.table,
      STARLING_QUEUE_RESOLVE: environment.queues.resolve,
      STARLING_WEBHOOK_SECRET: webhookSecretName,
    },
    aws,
  );
  return startHttpFront({
    routes: [
      {
        routeKey: "POST /hook/{provider}",
        functionName: "webhook",
        timeoutSeconds: 10,
        authorization: "none",
        handler: webhook as LambdaHandler,
      },
      {
        routeKey: "ANY /v1/{proxy+}",
        functionName: "api",
        timeoutSeconds: 29,
        authorization: "iam",
        handler: api as LambdaHandler,
      },
    ],
    principals,
    ...(port === undefined ? {} : { port }),
  });
}

interface SourceParts extends FunctionParts {
  readonly sqs: AwsClients["sqs"];
  readonly timeouts: QueueTimeouts;
  readonly options: MachineOptions;
}

async function startSources({ environment, newClients, wiring, sandboxes, sqs, timeouts, options }: SourceParts) {
  const rate = options.clock?.rate ?? 1;
  const sources = new Map<QueueName, readonly EventSourceLoop[]>();
  for (const [key, queueFunction] of Object.entries(queueFunctions)) {
    const name = key as QueueName;
    const copies = Array.from({ length: options.copies ?? 1 }, () =>
      startEventSource({
        functionName: name,
        sqs,
        queueUrl: environment.queues[name],
        handler: paced(
          sandboxes(name, (own) => queueFunction.wire(environment, newClients(), { ...wiring, ...own })),
          rate,
        ),
        timeoutSeconds: timeouts[name] / rate,
        batchSize: queueFunction.batchSize,
        maximumConcurrency: queueFunction.maximumConcurrency,
        ...(queueFunction.batchingWindowSeconds === undefined
          ? {}
          : { batchingWindowSeconds: queueFunction.batchingWindowSeconds / rate }),
        ...(options.onInvocation === undefined ? {} : { onInvocation: options.onInvocation }),
      }),
    );
    sources.set(name, await Promise.all(copies));
  }
  return sources;
}

/** The time that is left, in seconds of the functions' clock. */
function paced(handler: LambdaHandler, rate: number): LambdaHandler {
  if (rate === 1) return handler;
  return (event, context) =>
    handler(event, { ...context, getRemainingTimeInMillis: () => context.getRemainingTimeInMillis() * rate });
}

async function storeSecret(aws: AwsClients, name: string, value: string): Promise<void> {
  try {
    await aws.secrets.send(new CreateSecretCommand({ Name: name, SecretString: value }));
  } catch (error) {
    if (!(error instanceof ResourceExistsException)) throw error;
    await aws.secrets.send(new PutSecretValueCommand({ SecretId: name, SecretString: value }));
  }
}

async function stopAll(stops: (() => Promise<void>)[]): Promise<void> {
  for (const stop of stops.splice(0)) await stop();
}

/** The functions' logs and metrics are CloudWatch's business; on a terminal they are asked for with POWERTOOLS_LOG_LEVEL. */
function quietPowertools(): void {
  process.env.POWERTOOLS_LOG_LEVEL ??= "SILENT";
  process.env.POWERTOOLS_METRICS_DISABLED ??= "true";
}
