/**
 * IAM on one machine: clients that check each of their requests against the policies of the synthesized stacks, as a
 * function's role would have it. Emulators allow everything, so a permission that is missing shows nowhere else.
 */
import type { AwsClients } from "#shared/lambda/aws-clients.ts";
import { listOf, type Statement, textOf } from "#test/synth/synthesized.ts";

/** One thing a request wants to do, in the terms of a policy. */
export interface Wish {
  readonly action: string;
  /** As `textOf` writes it, folders and names in place of a policy's wildcards. */
  readonly resource: string;
  /** Partition key, for the table and its indexes. */
  readonly partition?: string;
}

/** The parts of a signed HTTP request that say what it asks for. */
interface HttpRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: unknown;
}

export function mayDo(wish: Wish, statements: readonly Statement[]): boolean {
  return statements.some(
    ({ Action, Resource: on, Condition }) =>
      listOf(Action).includes(wish.action) &&
      listOf(on).some((resource) => matches(textOf(resource), wish.resource)) &&
      leadingKeysAllow(wish.partition, Condition),
  );
}

function leadingKeysAllow(partition: string | undefined, condition: Statement["Condition"]): boolean {
  const patterns = condition?.["ForAllValues:StringLike"]?.["dynamodb:LeadingKeys"] as string[] | undefined;
  if (patterns === undefined) return condition === undefined;
  return partition !== undefined && patterns.some((pattern) => matches(pattern, partition));
}

function matches(pattern: string, text: string): boolean {
  const literal = pattern.split("*").map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  return new RegExp(`^${literal.join(".*")}$`, "s").test(text);
}

/** Clients that tell every wish of theirs which the statements do not grant. */
export function guarded(
  aws: AwsClients,
  role: { readonly statements: readonly Statement[]; readonly onRefusal: (wish: Wish) => void },
): AwsClients {
  const watched = <T>(client: T, mine: () => Promise<boolean> = async () => true): T => {
    (client as AwsClients["sqs"]).middlewareStack.add(
      (next) => async (step) => {
        const wishes = (await mine()) ? wishesOf(step.request as HttpRequest) : [];
        for (const wish of wishes) if (!mayDo(wish, role.statements)) role.onRefusal(wish);
        return next(step);
      },
      { step: "finalizeRequest", name: "policyGuard" },
    );
    return client;
  };
  for (const client of [aws.dynamo, aws.sqs, aws.s3, aws.secrets]) watched(client);
  return {
    ...aws,
    sts: (scope) => watched(aws.sts(scope)),
    // What a role may do that is assumed is up to its own account.
    eks: (scope) =>
      watched(aws.eks(scope), async () => {
        const { accessKeyId } = await aws.sqs.config.credentials();
        return scope.credentials.accessKeyId === accessKeyId;
      }),
  };
}

function wishesOf(request: HttpRequest): readonly Wish[] {
  const target = request.headers["x-amz-target"];
  if (request.path.startsWith("/clusters/")) return [clusterWish(request)];
  if (request.method === "POST" && target === undefined) return [roleWish(request)];
  if (target === undefined) return [objectWish(request)];
  const [service = "", operation = ""] = target.split(".");
  const text = typeof request.body === "string" ? request.body : Buffer.from(request.body as Uint8Array).toString();
  const body = JSON.parse(text) as Record<string, unknown>;
  if (service.startsWith("DynamoDB")) return tableWishes(operation, body);
  if (service === "AmazonSQS") return [queueWish(operation, body)];
  return [{ action: `secretsmanager:${operation}`, resource: secretArn(String(body.SecretId)) }];
}

const TABLE = "<starling-state-table-arn>";
/** The `S` of a DynamoDB value. */
const textIn = (value: unknown): string => (value as { S: string }).S;

function tableWishes(operation: string, body: Record<string, unknown>): readonly Wish[] {
  const wish = (action: string, partition: string): Wish => ({
    action: `dynamodb:${action}`,
    resource: TABLE,
    partition,
  });
  const pkOf = (part: unknown) => textIn((part as Record<string, unknown>).pk);
  if (operation === "BatchGetItem") {
    const [{ Keys: wanted } = { Keys: [] }] = Object.values(body.RequestItems as Record<string, { Keys: unknown[] }>);
    return wanted.map((key) => wish("BatchGetItem", pkOf(key)));
  }
  if (operation === "Query") {
    const partition = textIn((body.ExpressionAttributeValues as Record<string, unknown>)[":pk"]);
    const resource = body.IndexName === undefined ? TABLE : `${TABLE}/index/${String(body.IndexName)}`;
    return [{ action: "dynamodb:Query", resource, partition }];
  }
  if (operation === "TransactWriteItems") {
    const actions = {
      Put: "PutItem",
      Update: "UpdateItem",
      Delete: "DeleteItem",
      ConditionCheck: "ConditionCheckItem",
    };
    return (body.TransactItems as Record<string, { Item?: unknown; Key?: unknown }>[]).flatMap((item) =>
      Object.entries(item).map(([kind, { Item, Key }]) =>
        wish(actions[kind as keyof typeof actions], pkOf(Item ?? Key)),
      ),
    );
  }
  return [wish(operation, pkOf(body.Item ?? body.Key))];
}

/** Queues are called `<stack>-<logical id>` here; the hash of the logical id is left out, as it is in the statements. */
function queueWish(operation: string, body: Record<string, unknown>): Wish {
  const queue = new URL(String(body.QueueUrl)).pathname.split("/").at(-1) ?? "";
  const name = /(WiringTo[A-Za-z]+?Queue)[0-9A-F]+(\.fifo)?$/.exec(queue)?.[1] ?? queue;
  return { action: `sqs:${operation.replace(/Batch$/, "")}`, resource: `<${name}>` };
}

/** `https://host/<bucket>/<folder>/<name>` */
function objectWish({ method, path }: HttpRequest): Wish {
  const key = decodeURIComponent(path).split("/").slice(2).join("/");
  return { action: method === "GET" ? "s3:GetObject" : "s3:PutObject", resource: `<starling-state-blobs-arn>/${key}` };
}

/** `/clusters/<name>` */
function clusterWish({ path }: HttpRequest): Wish {
  const name = decodeURIComponent(path.split("/")[2] ?? "");
  return {
    action: "eks:DescribeCluster",
    resource: `arn:<AWS::Partition>:eks:us-east-1:<AWS::AccountId>:cluster/${name}`,
  };
}

function roleWish({ body }: HttpRequest): Wish {
  const parameters = new URLSearchParams(typeof body === "string" ? body : Buffer.from(body as Uint8Array).toString());
  const resource = (parameters.get("RoleArn") ?? "").replace(/^arn:aws:/, "arn:<AWS::Partition>:");
  return { action: `sts:${parameters.get("Action")}`, resource };
}

/** Functions know the webhook's secret by its ARN, and the others by their names. */
function secretArn(id: string): string {
  if (id.includes(":secret:starling/webhook-")) return "<starling-state-webhook-secret-arn>";
  return `arn:<AWS::Partition>:secretsmanager:<AWS::Region>:<AWS::AccountId>:secret:${id}-AbCdEf`;
}
