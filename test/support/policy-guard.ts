/**
 * IAM on one machine: compares the AWS calls of the functions with the policies of the synthesized stacks. Emulators
 * allow everything, so only this comparison shows a missing permission.
 */

import { callLine, type RecordedCall } from "#local/aws/proxy/call-recorder.ts";
import { defined } from "#shared/base/defined.ts";
import {
  functionNamed,
  listOf,
  ofType,
  type Resource,
  roleOf,
  type Statement,
  statementsByRole,
  textOf,
} from "#test/synth/synthesized.ts";

/** One action of a request, in the terms of a policy. */
export interface Wish {
  readonly action: string;
  /** The resource as `textOf` writes it, with folders and names in place of a policy's wildcards. */
  readonly resource: string;
  /** The partition key, for the table and its indexes. */
  readonly partition?: string;
  /** The requested key prefix, for the bucket. */
  readonly prefix?: string;
  /** The bucket and key of the source of a copy. */
  readonly copySource?: string;
  /** The source of an event. */
  readonly eventSource?: string;
}

export function mayDo(wish: Wish, statements: readonly Statement[]): boolean {
  return statements.some(
    ({ Action, Resource: on, Condition }) =>
      listOf(Action).includes(wish.action) &&
      listOf(on).some((resource) => matches(textOf(resource), wish.resource)) &&
      conditionAllows(wish, Condition),
  );
}

function conditionAllows(wish: Wish, condition: Statement["Condition"]): boolean {
  const { partition, prefix, copySource, eventSource } = wish;
  if (condition === undefined) return true;
  const eventSources = condition["ForAllValues:StringEquals"]?.["events:source"];
  if (eventSources !== undefined) return eventSource !== undefined && listOf(eventSources).includes(eventSource);
  const partitions = condition["ForAllValues:StringLike"]?.["dynamodb:LeadingKeys"] as string[] | undefined;
  const prefixes = condition.StringLike?.["s3:prefix"] as string[] | undefined;
  const copied = condition.StringLike?.["s3:x-amz-copy-source"];
  if (copied !== undefined) return copySource !== undefined && matches(textOf(copied), copySource);
  const [patterns, text] = partitions === undefined ? [prefixes, prefix] : [partitions, partition];
  return text !== undefined && listOf(patterns ?? []).some((pattern) => matches(pattern, text));
}

function matches(pattern: string, text: string): boolean {
  const literal = pattern.split("*").map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  return new RegExp(`^${literal.join(".*")}$`, "s").test(text);
}

/** The statements of a function's role. The names of its queues lack the hashes of their logical ids. */
export function statementsOf(resources: readonly Resource[], folder: string): readonly Statement[] {
  const role = roleOf(functionNamed(resources, folder));
  const text = JSON.stringify(statementsByRole(resources).get(role) ?? []);
  return JSON.parse(
    text.replace(
      /\{"Fn::GetAtt":\["(WiringTo[A-Za-z]+?Queue|WiringZone[a-z0-9]+To[A-Za-z]+?Queue|Wiring[A-Za-z]+?(?:Function|DeadLetters))[0-9A-F]+","Arn"\]\}/g,
      '"<$1>"',
    ),
  ) as Statement[];
}

/** Everybody with credentials may do this, whatever a policy says. */
const freeToAll = new Set(["sts:GetCallerIdentity"]);

/** The calls that the role of their function does not grant, one line per call. */
export function refusedCalls(calls: readonly RecordedCall[], resources: readonly Resource[]): readonly string[] {
  const statements = new Map<string, readonly Statement[]>();
  for (const { function: name } of calls) {
    if (!statements.has(name)) statements.set(name, statementsOf(resources, name));
  }
  const bound = calls.filter(({ action }) => !freeToAll.has(action));
  return bound.filter((call) => !mayDo(wishOf(call), statements.get(call.function) ?? [])).map(callLine);
}

/** The actions of Lambda itself under a function's role: it polls the queue and writes the log. */
const doneByLambda = new Set([
  ...["sqs:ChangeMessageVisibility", "sqs:DeleteMessage", "sqs:GetQueueAttributes", "sqs:GetQueueUrl"],
  ...["sqs:ReceiveMessage", "logs:CreateLogStream", "logs:PutLogEvents"],
]);

/**
 * The unused grants. `function action resource` is a granted action that the function never called. `function key` is a
 * leading key without a call. Functions without any call are left out.
 */
export function unusedGrants(calls: readonly RecordedCall[], resources: readonly Resource[]): readonly string[] {
  const byFunction = Map.groupBy(calls, (call) => call.function);
  const unused = [...byFunction].flatMap(([name, own]) => {
    const wishes = own.map(wishOf);
    const isUnused = (grant: Statement) => !wishes.some((wish) => mayDo(wish, [grant]));
    return statementsOf(resources, name).flatMap((statement) => [
      ...actionsOf(statement)
        .filter(isUnused)
        .map(({ Action, Resource: on }) => `${name} ${Action} ${textOf(on)}`),
      ...keysOf(statement)
        .filter((key) => isUnused({ ...statement, Condition: { "ForAllValues:StringLike": { [leadingKeys]: [key] } } }))
        .map((key) => `${name} ${key}`),
    ]);
  });
  return unused.sort();
}

function actionsOf(statement: Statement): readonly Statement[] {
  return listOf(statement.Action)
    .filter((action) => !doneByLambda.has(action))
    .flatMap((Action) => listOf(statement.Resource).map((on) => ({ ...statement, Action, Resource: on })));
}

const leadingKeys = "dynamodb:LeadingKeys";

function keysOf({ Condition }: Statement): readonly string[] {
  return listOf((Condition?.["ForAllValues:StringLike"]?.[leadingKeys] ?? []) as string[]);
}

function wishOf({ action, resource, leadingKey, prefix, copySource, eventSource }: RecordedCall): Wish {
  return {
    action,
    resource: policyResource(resource),
    ...defined({
      partition: leadingKey,
      prefix,
      eventSource,
      copySource: copySource && `<starling-state-blobs-name>/${copySource}`,
    }),
  };
}

/** The logical id of a zone's queue, without its hash. */
function zoneQueueId(name: string): string | undefined {
  const [, zone, slow, dead] = /^starling-zone-(.+)-apply(-slow)?(-dead)?$/.exec(name) ?? [];
  if (zone === undefined) return undefined;
  const kind = dead === undefined ? "Queue" : "DeadLetters";
  return `WiringZone${zone.replaceAll("-", "")}ToApply${slow === undefined ? "" : "Slow"}${kind}`;
}

/** The resources of this machine in the form of a policy. */
function policyResource(resource: string): string {
  const [kind = "", ...rest] = resource.split("/");
  const name = rest.join("/");
  const account = "<AWS::Region>:<AWS::AccountId>";
  switch (kind) {
    case "table":
      return `<starling-state-table-arn>${name.includes("/") ? name.slice(name.indexOf("/")) : ""}`;
    case "bucket":
      return "<starling-state-blobs-arn>";
    case "object":
      return `<starling-state-blobs-arn>/${name}`;
    case "queue":
      return `<${zoneQueueId(name) ?? /(WiringTo[A-Za-z]+?Queue|Wiring[A-Za-z]+?DeadLetters)[0-9A-F]+(\.fifo)?$/.exec(name)?.[1] ?? name}>`;
    case "function":
      return `<Wiring${name[0]?.toUpperCase()}${name.slice(1)}Function>`;
    case "event-bus":
      return `arn:<AWS::Partition>:events:${account}:event-bus/${name}`;
    case "cluster":
      return `arn:<AWS::Partition>:eks:us-east-1:<AWS::AccountId>:cluster/${name}`;
    case "secret":
      // Functions know the webhook's secret by its ARN and other secrets by their names.
      if (name.includes(":secret:starling/webhook-")) return "<starling-state-webhook-secret-arn>";
      return `arn:<AWS::Partition>:secretsmanager:${account}:secret:${name}-AbCdEf`;
    default:
      return resource.replace(/^arn:aws:/, "arn:<AWS::Partition>:");
  }
}

/** The API requests that a policy allows people, as method and path, for example `GET/v1/*`. */
export function requestsOf(resources: readonly Resource[], policy: string): readonly string[] {
  const found = ofType(resources, "AWS::IAM::ManagedPolicy").filter(({ id }) => id.includes(`Policies${policy}`));
  return found.flatMap(({ Properties }) =>
    (Properties.PolicyDocument as { readonly Statement: readonly Statement[] }).Statement.flatMap(({ Resource: on }) =>
      listOf(on).map((resource) => textOf(resource).split("/$default/")[1] ?? ""),
    ),
  );
}
