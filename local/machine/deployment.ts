/**
 * Deploys the stacks on this machine: creates the resources of the templates, and builds the environment of each
 * function.
 */

import { localAccountId, localRegion } from "#local/aws/lambda/lambda-context.ts";
import type { DeployedStack } from "#local/aws/services/cloudformation-server.ts";
import {
  type CreatedQueue,
  createBucket,
  createQueues,
  createSecret,
  createTable,
  putSecret,
  queueNameOf,
} from "#local/aws/services/create-resources.ts";
import { namedValues } from "#local/machine/named-values.ts";
import { physicalName } from "#local/template/cloudformation.ts";
import type { EventSourcePlan, FunctionPlan, MachinePlan, Place, Planned } from "#local/template/machine-plan.ts";
import { type ResourceValues, resolveValue, type ValueScope } from "#local/template/resolve-value.ts";
import { defined } from "#shared/base/defined.ts";
import type { AwsClients } from "#shared/lambda/aws-clients.ts";
import type { QueueName } from "#shared/messages.ts";

export interface DeploymentOptions {
  /** The number of the stacks' seconds that pass in one real second. */
  readonly rate: number;
  /** The value of every secret of the stacks that operators write. By default these secrets have no value. */
  readonly secretValue?: string;
  /** Clients of regions, where zones are in other regions. */
  readonly sqsIn?: (region: string) => AwsClients["sqs"];
}

export interface Deployment {
  readonly table: string;
  readonly bucket: string;
  /** The URLs of queues, by the function that works on the queue. */
  readonly queues: Readonly<Record<QueueName, string>>;
  /** The URLs of all queues that functions work on, with those of zones. */
  readonly everyQueue: readonly CreatedQueue[];
  queue(name: string): CreatedQueue;
  /** The environment of a function, as Lambda sets it. */
  variables(lambda: FunctionPlan): Readonly<Record<string, string>>;
  /** The roles that only one other role may assume, each with the ARNs of both. */
  readonly assumedRoles: readonly { readonly arn: string; readonly principalArn: string }[];
  /** Patterns of the ARNs of secrets, as a policy of the function's role contains them. */
  secretsFor(named: readonly unknown[], lambda: FunctionPlan): readonly string[];
  /** The stacks as CloudFormation describes them, with an API at this endpoint. */
  stacks(apiEndpoint: string): readonly DeployedStack[];
}

const pseudo = {
  "AWS::AccountId": localAccountId,
  "AWS::Region": localRegion,
  "AWS::Partition": "aws",
  "AWS::URLSuffix": "amazonaws.com",
} as const;

/** Creates every resource of the plan. */
export async function deploy(aws: AwsClients, plan: MachinePlan, options: DeploymentOptions): Promise<Deployment> {
  const [queues, secrets] = await Promise.all([
    createQueues(options.sqsIn ?? aws.sqs, plan.queues, options.rate),
    Promise.all(
      plan.secrets.map(async (secret) => {
        const { secretName: name } = secret;
        const { secretValue: value } = options;
        const ref = await (value === undefined
          ? createSecret(aws.secrets, name)
          : putSecret(aws.secrets, { name, value }));
        return [secret.name, { ref, attributes: {} }] as const;
      }),
    ),
    ...plan.tables.map((table) => createTable(aws.dynamo, table)),
    ...plan.buckets.map(({ name }) => createBucket(aws.s3, name)),
  ]);
  const values = new Map<string, ResourceValues>([
    ...secrets,
    ...plan.tables.map(({ name }) => entry(name, { ref: name, Arn: arn("dynamodb", `table/${name}`) })),
    ...plan.buckets.map((bucket) => entry(keyOf(bucket), { ref: bucket.name, Arn: `arn:aws:s3:::${bucket.name}` })),
    ...[...queues].map(([name, { url, arn: Arn, queueName: QueueName }]) => entry(name, { ref: url, Arn, QueueName })),
    ...plan.functions.map(({ name, functionName }) =>
      entry(name, { ref: functionName, Arn: arn("lambda", `function:${functionName}`) }),
    ),
  ]);
  const ownNames = namedValues(plan.namedOnly, "");
  const scope = (stack: string, named: ReadonlyMap<string, ResourceValues> = ownNames): ValueScope => ({
    pseudo: pseudoOf(plan.places.get(stack)),
    resource: (logicalId) => {
      const name = physicalName(stack, logicalId);
      return values.get(name) ?? named.get(name);
    },
    output(stack, name) {
      const found = plan.outputs.find((output) => output.stack === stack && output.name === name);
      return found === undefined ? undefined : resolveValue(found.value, scope(found.stack));
    },
  });
  return {
    table: only(plan.tables, "table").name,
    bucket: only(plan.buckets, "bucket").name,
    queues: urlsByWorker(plan, queues),
    everyQueue: plan.eventSources.flatMap(({ queue }) => queues.get(queue) ?? []),
    assumedRoles: plan.assumedRoles.map(({ stack, roleName, principalArn }) => ({
      arn: roleArnOf({ role: roleName, ...defined({ place: plan.places.get(stack) }) }),
      principalArn: resolveValue(principalArn, scope(stack)),
    })),
    queue(name) {
      const found = queues.get(name);
      if (found === undefined) throw new Error(`the stacks have no queue named ${name}`);
      return found;
    },
    stacks: (apiEndpoint) => describedStacks(plan, (stack) => scope(stack, namedValues(plan.namedOnly, apiEndpoint))),
    // The secrets of all accounts are in one account of the emulator.
    secretsFor: (named, { stack }) => named.map((each) => resolveValue(each, { ...scope(stack), pseudo })),
    variables: ({ stack, logicalId, environment }) =>
      Object.fromEntries(
        Object.entries(environment).map(([variable, value]) => {
          try {
            return [variable, withLocalQueues(resolveValue(value, scope(stack)), plan)];
          } catch (error) {
            throw new Error(`${variable} of ${logicalId} in ${stack}: ${(error as Error).message}`, { cause: error });
          }
        }),
      ),
  };
}

function describedStacks(plan: MachinePlan, scope: (stack: string) => ValueScope): readonly DeployedStack[] {
  return [...Map.groupBy(plan.outputs, ({ stack }) => stack)].map(([name, outputs]) => ({
    name,
    arn: arn("cloudformation", `stack/${name}/local`),
    status: "CREATE_COMPLETE",
    outputs: Object.fromEntries(outputs.map((output) => [output.name, resolveValue(output.value, scope(name))])),
  }));
}

/** The messages of a queue. The queue's construct has their name, for example `ToApplySlow`. */
export function messagesOf(plan: MachinePlan, queue: string): QueueName {
  const { logicalId = queue } = plan.queues.find(({ name }) => name === queue) ?? {};
  const [, first = "", rest = ""] = /To([A-Z])(\w*?)Queue/.exec(logicalId) ?? [];
  return `${first.toLowerCase()}${rest}` as QueueName;
}

/** The zone besides `home` whose workers take the messages of the event source. */
export function zoneOfSource(plan: MachinePlan, source: Pick<EventSourcePlan, "function">): string | undefined {
  return plan.functions.find(({ name }) => name === source.function)?.zone;
}

/** The URLs of the queues that functions of `home` work on, by their messages. */
export function urlsByWorker(
  plan: MachinePlan,
  queues: ReadonlyMap<string, CreatedQueue>,
): Readonly<Record<QueueName, string>> {
  const urls: Partial<Record<string, string>> = {};
  for (const { queue, ...source } of plan.eventSources) {
    const url = queues.get(queue)?.url;
    if (url !== undefined && zoneOfSource(plan, source) === undefined) urls[messagesOf(plan, queue)] = url;
  }
  return urls as Record<QueueName, string>;
}

/** The IAM identity of a function: the session that Lambda starts for its role. */
export function sessionArnOf({ role, functionName, place }: FunctionPlan): string {
  return `arn:aws:sts::${place?.account ?? localAccountId}:assumed-role/${role}/${functionName}`;
}

export function roleArnOf({ role, place }: Pick<FunctionPlan, "role" | "place">): string {
  return `arn:aws:iam::${place?.account ?? localAccountId}:role/${role}`;
}

function pseudoOf(place: Place | undefined): ValueScope["pseudo"] {
  return place === undefined ? pseudo : { ...pseudo, "AWS::AccountId": place.account, "AWS::Region": place.region };
}

/** URLs of queues that a stack knows by their names: on this machine the names are others, and the hosts stay. */
function withLocalQueues(text: string, { queues }: MachinePlan): string {
  return text.replaceAll(
    /(https:\/\/sqs\.[a-z0-9-]+\.amazonaws\.com\/\d{12}\/)([\w-]+(?:\.fifo)?)/g,
    (url, place, name) => {
      const found = queues.find(({ queueName }) => queueName === name);
      return found === undefined ? url : `${place}${queueNameOf(found)}`;
    },
  );
}

function keyOf({ stack, logicalId }: Planned): string {
  return physicalName(stack, logicalId);
}

function entry(name: string, { ref, ...attributes }: { readonly ref: string } & Readonly<Record<string, string>>) {
  return [name, { ref, attributes }] as const;
}

function arn(service: string, resource: string): string {
  return `arn:aws:${service}:${localRegion}:${localAccountId}:${resource}`;
}

/** Tests and tools ask for such a resource without a name, because the stacks have exactly one of its kind. */
export function only<T>(items: readonly T[], what: string): T {
  const [item] = items;
  if (item === undefined || items.length > 1)
    throw new Error(`expected exactly one ${what} in the stacks, found ${items.length}`);
  return item;
}
