/**
 * Starling on one machine: the functions' handlers behind emulators, connected as the control stack connects them. All
 * servers listen on the loopback interface, and `stop` ends everything.
 */

import { randomBytes } from "node:crypto";
import { PurgeQueueCommand, SendMessageCommand } from "@aws-sdk/client-sqs";
import { EksRegister } from "#local/aws/eks/eks-register.ts";
import { type EksStsServer, startEksAndSts } from "#local/aws/eks/eks-sts-server.ts";
import type { LocalOrganization } from "#local/aws/eks/listing-operations.ts";
import { ParameterStore } from "#local/aws/eks/parameter-operations.ts";
import { IamRoles } from "#local/aws/iam/iam-roles.ts";
import { Principals } from "#local/aws/iam/principals.ts";
import { accountPool } from "#local/aws/lambda/account-pool.ts";
import { type EventSourceLoop, type InvocationReport, startEventSource } from "#local/aws/lambda/event-source-loop.ts";
import { type HttpFront, startHttpFront } from "#local/aws/lambda/http-front.ts";
import { lambdaApi } from "#local/aws/lambda/lambda-api.ts";
import { localAccountId, localRegion } from "#local/aws/lambda/lambda-context.ts";
import type { LambdaFunction } from "#local/aws/lambda/lambda-function.ts";
import { type FailureRecord, startSchedule } from "#local/aws/lambda/scheduler.ts";
import { type FaultProxy, startFaultProxy } from "#local/aws/proxy/fault-proxy.ts";
import { type AlarmControl, AlarmStore } from "#local/aws/services/alarm-store.ts";
import { startAlarms } from "#local/aws/services/alarms-server.ts";
import { startCloudFormation } from "#local/aws/services/cloudformation-server.ts";
import { putSecret } from "#local/aws/services/create-resources.ts";
import { startDynamo } from "#local/aws/services/dynamo-server.ts";
import { EventStore } from "#local/aws/services/event-store.ts";
import { startEvents } from "#local/aws/services/events-server.ts";
import { LogStore } from "#local/aws/services/log-store.ts";
import { startLogs } from "#local/aws/services/logs-server.ts";
import { startSecrets } from "#local/aws/services/secrets-server.ts";
import { startSqsAndS3 } from "#local/aws/services/sqs-s3-server.ts";
import { type FaultOptions, quiet } from "#local/aws/wire/fault-options.ts";
import {
  type Deployment,
  deploy,
  messagesOf,
  only,
  roleArnOf,
  sessionArnOf,
  zoneOfSource,
} from "#local/machine/deployment.ts";
import { keepGitCa } from "#local/machine/git-ca-file.ts";
import { functionMaker, type RunOptions } from "#local/machine/machine-functions.ts";
import { defaultTickEveryMs, largeAccount, overridePlan } from "#local/machine/plan-overrides.ts";
import { releaseHolds } from "#local/machine/release-holds.ts";
import { allowsSecrets } from "#local/machine/secret-access.ts";
import type { FunctionPlan, MachinePlan, Place, Places, SchedulePlan } from "#local/template/machine-plan.ts";
import { readPlan } from "#local/template/read-plan.ts";
import { synthesize } from "#local/template/synthesize.ts";
import { DynamoTable } from "#shared/adapters/aws/dynamo-table.ts";
import { defined } from "#shared/base/defined.ts";
import { namedTexts } from "#shared/base/named-texts.ts";
import { logGroupsOf, zoneQueues } from "#shared/fleet/zone-parts.ts";
import { type AwsClients, awsClients } from "#shared/lambda/aws-clients.ts";
import type { QueueName } from "#shared/messages.ts";

export interface MachineOptions extends RunOptions {
  /** The folder for rows, blobs and secrets. The default keeps them in memory. */
  readonly stateDir?: string;
  readonly faults?: FaultOptions;
  readonly capacity?: "measured" | "unmeasured";
  /**
   * With `pipe`, DynamoDB's emulator has no port that other users of the machine could use. It then reports no
   * capacity.
   */
  readonly database?: "port" | "pipe";
  /**
   * The time between ticks. The default is one second, where AWS has a minute. With `"manual"`, only `tick()` ticks.
   */
  readonly tickEveryMs?: number | "manual";
  /** Timeouts of the functions and visibility timeouts of their queues, for tests that let workers die. */
  readonly timeoutSeconds?: Partial<Readonly<Record<QueueName | "api", number>>>;
  /** The number of event sources per queue. With 2, two planners and two workers run at once. */
  readonly copies?: number;
  /** The context of the app: the size of the fleet, and the concurrency of the account. */
  readonly account?: { readonly clusters: string; readonly concurrency: string };
  /** The setting of this name. */
  readonly guard?: string;
  /** The setting of this name, as JSON. */
  readonly zones?: string;
  /** The settings of these names. Hosts on the loopback interface are allowed in any case. */
  readonly resolveZone?: string;
  readonly gitAllow?: string;
  /** With `unwritten`, the secret has no value, as after a deployment and before an operator has written it. */
  readonly webhookSecret?: "unwritten";
  /** The first part of the stacks' names and of the installation's name, as in the context of the app. */
  readonly installation?: string;
  /** The installation id that clusters get. The default is the stacks' id, which is the same on every machine. */
  readonly installationId?: string;
  /** The certificates of this machine's git hosts in PEM. */
  readonly gitCa?: string;
  readonly apiPort?: number;
  /** The access key of people. The default is a random key. */
  readonly accessKey?: AccessKey;
  readonly onInvocation?: (report: InvocationReport) => void;
}

export interface AccessKey {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
}

export interface Machine {
  /** Clients through the fault proxy, like those of the functions, but with the credentials of people. */
  readonly aws: AwsClients;
  readonly proxy: FaultProxy;
  /** The plan of the stacks. */
  readonly plan: MachinePlan;
  /** The names of the stacks' resources. */
  readonly environment: Pick<Deployment, "table" | "bucket" | "queues">;
  /** All known signers: people, and the sessions of the functions' roles. */
  readonly principals: Principals;
  /** The endpoint for `starling` and git hosts. */
  readonly api: { readonly endpoint: string; readonly region: string; readonly credentials: AccessKey };
  readonly webhook: { readonly url: string; readonly secret: string };
  /** Answers with the outputs of the stacks. */
  readonly cloudFormation: { readonly endpoint: string };
  /** The EKS clusters and IAM roles that the functions see. */
  readonly eks: LocalEks;
  /** The CloudWatch alarms that bakes are watched by. */
  readonly alarms: AlarmControl & { readonly endpoint: string };
  /** The events that the bus of the account took. */
  readonly events: Pick<EventStore, "list">;
  /** By the messages of their queues; those of zones stand beside those of `home`. */
  readonly sources: ReadonlyMap<QueueName, readonly EventSourceLoop[]>;
  /** The event sources of the zones besides `home`, by zone. */
  readonly zones: ReadonlyMap<string, readonly EventSourceLoop[]>;
  tick(): Promise<void>;
  putSecret(name: string, value: string): Promise<void>;
  /** Deletes every message of every queue, like `aws sqs purge-queue`. */
  purgeQueues(): Promise<void>;
  stop(): Promise<void>;
}

export interface LocalEks extends Pick<EksStsServer, "endpoint" | "calls"> {
  readonly clusters: EksRegister;
  readonly roles: IamRoles;
  /** The role of the function that connects to clusters. */
  readonly callerArn: string;
  /** The role of the function that lists clusters. */
  readonly discovererArn: string;
  /** The first part of the installation's external ids. */
  readonly installation: string;
  /** The clock for the expiry of tokens and sessions. */
  readonly now: () => Date;
  /** The Parameter Store of every account and region. */
  readonly parameters: ParameterStore;
  /** Puts the accounts into an organization. Before this call there is none. */
  organize(organization: LocalOrganization): void;
}

/** A function may wait three minutes for a silent server. The person who ends the machine should not. */
const stopGraceMs = 5000;

/** The name of the installation in cdk.json. */
const defaultInstallation = "starling";

/** The bus that every account has. */
const defaultBus = "default";

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
  const { account = largeAccount } = options;
  const context = {
    ...account,
    ...defined({
      installation: options.installation,
      guard: options.guard,
      zones: options.zones,
      resolveZone: options.resolveZone,
      gitAllow: options.gitAllow,
    }),
  };
  const elsewhere = zonesElsewhere(options);
  const accessKey = options.accessKey ?? newAccessKey();
  const principals = new Principals([{ ...accessKey, principalArn }]);
  let secretAccess = allowsSecrets({ people: principalArn, functions: [] });
  const [stacks, dynamo, sqsAndS3, secrets] = await Promise.all([
    synthesize(elsewhere.size === 0 ? context : { ...context, home: await homeSetting(context) }),
    started(startDynamo({ ...state, transport: options.database ?? "port" })),
    started(startSqsAndS3(state)),
    started(startSecrets({ ...state, principals, allows: (request) => secretAccess(request) })),
  ]);
  const gitCa = options.gitCa === undefined ? undefined : await started(keepGitCa(options.gitCa));
  const plan = overridePlan(readPlan(stacks, elsewhere), { ...options, ...defined({ gitCaFile: gitCa?.path }) });
  const rate = options.clock?.rate ?? 1;
  /** The functions, for calls between functions. They are created later than the proxy that calls them. */
  const byName = new Map<string, LambdaFunction>();
  const proxy = await started(
    startFaultProxy({
      targets: {
        dynamodb: dynamo.send,
        sqs: sqsAndS3.send,
        s3: sqsAndS3.send,
        lambda: lambdaApi((name) => byName.get(name), Number(account.concurrency)),
      },
      seed: options.seed ?? 1,
      faults: quiet,
      rate,
      capacity: options.capacity ?? "unmeasured",
      principals,
    }),
  );
  const eksParts = {
    clusters: new EksRegister(),
    roles: new IamRoles(),
    parameters: new ParameterStore(),
    now: clockOf(options),
  };
  let organization: LocalOrganization | undefined;
  const eks = await started(startEksAndSts({ ...eksParts, principals, organization: () => organization }));
  const alarms = new AlarmStore();
  const alarmsServer = await started(startAlarms({ principals, store: alarms, arnOf: localAlarmArn }));
  const eventStore = new EventStore();
  const events = await started(startEvents({ principals, store: eventStore, buses: [defaultBus] }));
  const logStore = new LogStore();
  const logs = await started(startLogs({ principals, store: logStore }));
  const { dynamodb, sqs, s3, lambda } = proxy.endpoints;
  const endpoints = {
    dynamo: dynamodb,
    sqs,
    s3,
    lambda,
    secrets: secrets.endpoint,
    logs: logs.endpoint,
    alarms: alarmsServer.endpoint,
    events: events.endpoint,
    sts: eks.endpoint,
    eks: eks.endpoint,
  };
  const aws = awsClients({ region: localRegion, credentials: accessKey, endpoints });
  const secret = randomBytes(24).toString("base64url");
  const secretValue = options.webhookSecret === "unwritten" ? undefined : JSON.stringify([secret]);
  const regional = new Map([[localRegion, aws.sqs]]);
  const sqsIn = (region: string) => {
    const sqs = regional.get(region) ?? awsClients({ region, credentials: accessKey, endpoints }).sqs;
    regional.set(region, sqs);
    return sqs;
  };
  const deployment = await deploy(aws, plan, { rate, sqsIn, ...defined({ secretValue }) });
  for (const { arn, principalArn } of deployment.assumedRoles) eksParts.roles.put({ arn, trusts: [{ principalArn }] });
  if (options.stateDir !== undefined) {
    await releaseHolds(new DynamoTable(aws.dynamo, deployment.table), clockOf(options)());
  }
  const functionAccess = plan.functions.map((each) => ({
    principalArn: sessionArnOf(each),
    readable: deployment.secretsFor(each.readableSecrets, each),
    describable: deployment.secretsFor(each.describableSecrets, each),
  }));
  secretAccess = allowsSecrets({ people: principalArn, functions: functionAccess });
  proxy.setFaults(options.faults ?? quiet);

  const make = functionMaker({
    deployment,
    principals,
    endpoints,
    account: accountPool(Number(account.concurrency)),
    run: { ...options, onLine: keptLines({ plan, deployment, options }, logStore) },
  });
  const functions = new Map(plan.functions.map((each) => [each.name, make(each, paceOf(plan, each))]));
  for (const each of functions.values()) byName.set(each.functionName, each);
  stops.unshift(async () => {
    for (const lambda of functions.values()) lambda.close();
  });
  const parts: Parts = { plan, deployment, lambda: (name) => named(functions, name), rate, options };
  const front = await started(openFront(parts, principals));
  const stacksNow = deployment.stacks(front.url);
  const cloudFormation = await started(startCloudFormation({ principals, stacks: () => stacksNow }));
  const { sources, zones } = await startSources(parts, sqsIn);
  stops.unshift(() => stopSources([...sources.values()].flat()));
  const inFolder = (name: string) =>
    only(
      plan.functions.filter(({ functionName }) => functionName === name),
      name,
    );
  const [apply, discover] = [inFolder("apply"), inFolder("discover")];
  const everyMinute = only(plan.schedules, "schedule");
  const tick = parts.lambda(everyMinute.function);
  const everyMs = options.tickEveryMs ?? defaultTickEveryMs;
  if (everyMs !== "manual") {
    const onFailure = destinationOf(everyMinute, { deployment, sqs: aws.sqs });
    const schedule = startSchedule({ lambda: tick, everyMs, event: everyMinute.input, ...defined({ onFailure }) });
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
    cloudFormation: { endpoint: cloudFormation.endpoint },
    eks: {
      ...eksParts,
      endpoint: eks.endpoint,
      calls: eks.calls,
      callerArn: roleArnOf(apply),
      discovererArn: roleArnOf(discover),
      installation: deployment.variables(apply).STARLING_INSTALLATION ?? "",
      organize(next) {
        organization = next;
      },
    },
    alarms: {
      endpoint: alarmsServer.endpoint,
      set(alarm) {
        alarms.set(alarm.name, alarm.state, clockOf(options)());
        return { ...alarm, arn: localAlarmArn(alarm.name) };
      },
    },
    events: { list: () => eventStore.list() },
    sources,
    zones,
    async tick() {
      const ticked = await tick.invoke({ event: everyMinute.input, killed: new AbortController().signal });
      if (ticked.outcome === "failed") throw ticked.error;
      if (ticked.outcome !== "returned") throw new Error(`the tick ended with: ${ticked.outcome}`);
    },
    async putSecret(name, value) {
      await putSecret(aws.secrets, { name, value });
    },
    async purgeQueues() {
      await Promise.all(
        deployment.everyQueue.map(({ url, region }) => sqsIn(region).send(new PurgeQueueCommand({ QueueUrl: url }))),
      );
    },
    stop: () => stopAll(stops),
  };
}

/** The places of the stacks of zones that the setting puts into another account or region. */
function zonesElsewhere({ zones, installation = defaultInstallation }: MachineOptions): Places {
  const given = JSON.parse(zones ?? "[]") as readonly (Partial<Place> & { readonly name: string })[];
  return new Map(
    given.flatMap(({ name, account, region }) =>
      (account ?? region) === undefined
        ? []
        : [[`${installation}-zone-${name}`, { account: account ?? localAccountId, region: region ?? localRegion }]],
    ),
  );
}

/** The setting `home`, which names the table and the bucket of the installation. Zones change neither. */
async function homeSetting({ zones: _zones, ...context }: Readonly<Record<string, string>>): Promise<string> {
  const { tables, buckets } = readPlan(await synthesize(context));
  const names = { table: only(tables, "table").name, bucket: only(buckets, "bucket").name };
  return JSON.stringify({ account: localAccountId, region: localRegion, ...names });
}

function localAlarmArn(name: string): string {
  return `arn:aws:cloudwatch:${localRegion}:${localAccountId}:alarm:${name}`;
}

function clockOf({ clock }: MachineOptions): () => Date {
  return clock === undefined ? () => new Date() : () => clock.now();
}

/** Two machines on one cluster are two installations. Each sees that the other owns its objects. */
export function newInstallationId(): string {
  return `starling.local-${randomBytes(6).toString("hex")}`;
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
  readonly lambda: (name: string) => LambdaFunction;
  readonly rate: number;
  readonly options: MachineOptions;
}

/** Functions that answer people or the schedule use the machine's clock, like their callers. */
function paceOf(plan: MachinePlan, { name }: FunctionPlan): "paced" | "unpaced" {
  const answers = plan.routes.some((route) => route.function === name);
  return answers || plan.schedules.some((schedule) => schedule.function === name) ? "unpaced" : "paced";
}

function named<T>(things: ReadonlyMap<string, T>, name: string): T {
  const found = things.get(name);
  if (found === undefined) throw new Error(`the stacks have no ${name}; they have ${[...things.keys()].join(", ")}`);
  return found;
}

function openFront({ plan, lambda, options }: Parts, principals: Principals): Promise<HttpFront> {
  return startHttpFront({
    routes: plan.routes.map(({ function: name, ...route }) => ({ ...route, lambda: lambda(name) })),
    principals,
    ...defined({ port: options.apiPort }),
  });
}

/** The failure destination of the schedule's function in the stacks. */
function destinationOf(
  { failures }: SchedulePlan,
  { deployment, sqs }: Pick<Parts, "deployment"> & Pick<AwsClients, "sqs">,
): ((record: FailureRecord) => Promise<void>) | undefined {
  if (failures === undefined) return undefined;
  const QueueUrl = deployment.queue(failures).url;
  return async (record) =>
    void (await sqs.send(new SendMessageCommand({ QueueUrl, MessageBody: JSON.stringify(record) })));
}

async function startSources(
  { plan, deployment, lambda, rate, options }: Parts,
  sqsIn: (region: string) => AwsClients["sqs"],
) {
  const sources = new Map<QueueName, readonly EventSourceLoop[]>();
  const zones = new Map<string, readonly EventSourceLoop[]>();
  for (const source of plan.eventSources) {
    const worker = lambda(source.function);
    const queue = deployment.queue(source.queue);
    const copies = Array.from({ length: options.copies ?? 1 }, () =>
      startEventSource({
        lambda: worker,
        sqs: sqsIn(queue.region),
        queueUrl: queue.url,
        batchSize: source.batchSize,
        maximumConcurrency: source.maximumConcurrency,
        batchingWindowSeconds: source.batchingWindowSeconds / rate,
        reportBatchItemFailures: source.reportBatchItemFailures,
        ...defined({ onInvocation: options.onInvocation }),
      }),
    );
    const [messages, zone, loops] = [
      messagesOf(plan, source.queue),
      zoneOfSource(plan, source),
      await Promise.all(copies),
    ];
    sources.set(messages, [...(sources.get(messages) ?? []), ...loops]);
    if (zone !== undefined) zones.set(zone, [...(zones.get(zone) ?? []), ...loops]);
  }
  return { sources, zones };
}

/**
 * Waits for current invocations. After the grace period their sandboxes end, and their messages return to the queues.
 */
async function stopSources(sources: readonly EventSourceLoop[]): Promise<void> {
  const killing = setTimeout(() => {
    for (const source of sources) source.kill();
  }, stopGraceMs);
  try {
    await Promise.all(sources.map((source) => source.stop()));
  } finally {
    clearTimeout(killing);
  }
}

async function stopAll(stops: (() => Promise<void>)[]): Promise<void> {
  for (const stop of stops.splice(0)) await stop();
}

/**
 * Stores log lines in the log groups of the stacks and passes them to the caller. It also prints them if the
 * environment asks for logs.
 */
function keptLines(
  { plan, deployment, options }: Pick<Parts, "plan" | "deployment" | "options">,
  store: LogStore,
): (functionName: string, line: string) => void {
  const api = only(
    plan.functions.filter(({ folder }) => folder === "api"),
    "api",
  );
  const { STARLING_LOG_GROUPS, STARLING_ZONE_QUEUES, STARLING_QUEUE_APPLY = "" } = deployment.variables(api);
  const zones = zoneQueues(STARLING_ZONE_QUEUES, STARLING_QUEUE_APPLY);
  const groups = new Map([...namedTexts(STARLING_LOG_GROUPS), ...logGroupsOf(zones)]);
  for (const group of groups.values()) store.create(group);
  const now = clockOf(options);
  const isAsked = process.env.POWERTOOLS_LOG_LEVEL !== "SILENT";
  return (functionName, line) => {
    store.put(groups.get(functionName) ?? functionName, line, now());
    options.onLine?.(functionName, line);
    if (isAsked) process.stdout.write(`${line}\n`);
  };
}

/** Turns off logs and metrics in the terminal. POWERTOOLS_LOG_LEVEL turns logs on. */
function quietPowertools(): void {
  process.env.POWERTOOLS_LOG_LEVEL ??= "SILENT";
  process.env.POWERTOOLS_METRICS_DISABLED ??= "true";
}
