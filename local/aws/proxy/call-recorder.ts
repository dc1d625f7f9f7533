/**
 * Records the AWS calls of each function in the terms of a policy. Tests compare the functions' roles with this record.
 */
import { NoSuchKey, NotFound } from "@aws-sdk/client-s3";
import type { AwsClients } from "#shared/lambda/aws-clients.ts";

export interface RecordedCall {
  /** The folder below functions/. */
  readonly function: string;
  /** For example `dynamodb:GetItem`. A transaction is recorded as the actions inside it, as IAM checks it. */
  readonly action: string;
  /**
   * `table/NAME`, `table/NAME/index/INDEX`, `queue/NAME`, `bucket`, `object/KEY`, `secret/NAME-OR-ARN`, `cluster/NAME`,
   * `function/NAME`, `event-bus/NAME`, or the ARN of a role.
   */
  readonly resource: string;
  /** The partition key of the item or of the queried index. */
  readonly leadingKey?: string;
  /** The key that a policy's `s3:prefix` matches. */
  readonly prefix?: string;
  /** The key that a stored object is copied from; undefined where the request contains the bytes. */
  readonly copySource?: string;
  /** The source that an event names. */
  readonly eventSource?: string;
}

export interface CallRecorder {
  /** Returns the same clients. From now on, every request that they send is recorded for the function. */
  watch(functionName: string, clients: AwsClients): AwsClients;
  /** Each distinct call once, in the order of first calls. */
  calls(): readonly RecordedCall[];
}

/** One line of a record: function, action and resource. Calls on rows, missing keys and copies also have the key. */
export function callLine(call: RecordedCall): string {
  const { function: name, action, resource, leadingKey, prefix, copySource, eventSource } = call;
  const key = copySource === undefined ? (leadingKey ?? prefix ?? eventSource ?? "") : `from ${copySource}`;
  return [name, action, resource, key].join(" ").trim();
}

/** @param onCall - called for every call, also for repeated ones. */
export function createCallRecorder(onCall: (call: RecordedCall) => void = () => {}): CallRecorder {
  const seen = new Map<string, RecordedCall>();

  function record(functionName: string, request: SignedRequest): void {
    for (const asked of askedBy(request)) note({ function: functionName, ...asked });
  }

  function note(call: RecordedCall): void {
    onCall(call);
    const line = callLine(call);
    if (!seen.has(line)) seen.set(line, call);
  }

  /**
   * S3 answers that a key does not exist only to callers that may list the bucket. The emulator answers it to every
   * caller.
   */
  function missing(functionName: string, error: unknown, request: SignedRequest): void {
    if (!(error instanceof NoSuchKey) && !(error instanceof NotFound)) return;
    const prefix = keyOf(request.path);
    note({ function: functionName, action: "s3:ListBucket", resource: "bucket", prefix });
  }

  function watched<T>(client: T, functionName: string, mine: () => Promise<boolean> = async () => true): T {
    (client as AwsClients["sqs"]).middlewareStack.add(
      (next) => async (step) => {
        const request = step.request as SignedRequest;
        if (await mine()) record(functionName, request);
        return next(step).catch((error: unknown) => {
          missing(functionName, error, request);
          throw error;
        });
      },
      { step: "finalizeRequest", name: "callRecorder", override: true },
    );
    return client;
  }

  return {
    watch(functionName, clients) {
      const { dynamo, sqs, s3, secrets, lambda, logs, events, presigner } = clients;
      for (const client of [dynamo, sqs, s3, secrets, lambda, logs, events]) watched(client, functionName);
      // For a presigned request the signer needs the permission, although another program sends it.
      presigner.middlewareStack.add(
        (next) => async (step) => {
          record(functionName, step.request as SignedRequest);
          return next(step);
        },
        { step: "build", name: "callRecorder", override: true },
      );
      return {
        ...clients,
        sts: watched(clients.sts, functionName),
        // In the terms of the role that these calls are made with.
        dataIn: (scope) => {
          const data = clients.dataIn(scope);
          for (const client of [data.dynamo, data.sqs, data.s3]) watched(client, `${functionName}-data`);
          return data;
        },
        // An assumed role has permissions of its own account, so only calls with the function's own credentials count.
        eks: (scope) =>
          watched(clients.eks(scope), functionName, async () => {
            const { accessKeyId } = await clients.sqs.config.credentials();
            return scope.credentials.accessKeyId === accessKeyId;
          }),
      };
    },
    calls: () => [...seen.values()],
  };
}

/** The parts of a request that identify its action. */
interface SignedRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: unknown;
}

type Asked = Omit<RecordedCall, "function">;

function askedBy({ method, path, headers, body }: SignedRequest): readonly Asked[] {
  const target = headers["x-amz-target"];
  if (path.startsWith("/clusters/")) {
    return [{ action: "eks:DescribeCluster", resource: `cluster/${decodeURIComponent(path.split("/")[2] ?? "")}` }];
  }
  const invoked = /^\/2015-03-31\/functions\/([^/]+)\/invocations$/.exec(path)?.[1];
  if (invoked !== undefined) {
    return [{ action: "lambda:InvokeFunction", resource: `function/${decodeURIComponent(invoked)}` }];
  }
  if (path.startsWith("/2016-08-19/account-settings")) {
    return [{ action: "lambda:GetAccountSettings", resource: "*" }];
  }
  if (target === undefined && method === "POST") {
    const parameters = new URLSearchParams(textOf(body));
    return [{ action: `sts:${parameters.get("Action")}`, resource: parameters.get("RoleArn") ?? "*" }];
  }
  if (target === undefined) return askedOfBucket(method, path, headers["x-amz-copy-source"]);
  const [service = "", operation = ""] = target.split(".");
  const request = JSON.parse(textOf(body)) as Request;
  if (service.startsWith("DynamoDB")) return askedOfTable(operation, request);
  if (service === "AmazonSQS") {
    const queue = new URL(String(request.QueueUrl)).pathname.split("/").at(-1);
    return [{ action: `sqs:${operation.replace(/Batch$/, "")}`, resource: `queue/${queue}` }];
  }
  if (service.startsWith("Logs_"))
    return [{ action: `logs:${operation}`, resource: `log-group/${request.logGroupName}` }];
  if (service === "AWSEvents") {
    const entries = request.Entries as readonly { readonly EventBusName: string; readonly Source: string }[];
    return entries.map(({ EventBusName, Source }) => ({
      action: `events:${operation}`,
      resource: `event-bus/${EventBusName}`,
      eventSource: Source,
    }));
  }
  return [{ action: `secretsmanager:${operation}`, resource: `secret/${request.SecretId}` }];
}

function textOf(body: unknown): string {
  return typeof body === "string" ? body : new TextDecoder().decode(body as Uint8Array);
}

type Request = Readonly<Record<string, unknown>>;
type Key = Readonly<Record<string, { readonly S?: string } | undefined>>;

interface TransactAction {
  readonly TableName: string;
  readonly Item?: Key;
  readonly Key?: Key;
}

const actionOf: Readonly<Record<string, string>> = {
  Put: "PutItem",
  Update: "UpdateItem",
  Delete: "DeleteItem",
  ConditionCheck: "ConditionCheckItem",
};

function askedOfTable(operation: string, request: Request): readonly Asked[] {
  const asked = (action: string, table: unknown, key: Key | undefined): Asked => ({
    action: `dynamodb:${action}`,
    resource: `table/${table}`,
    ...(key?.pk?.S === undefined ? {} : { leadingKey: key.pk.S }),
  });
  switch (operation) {
    case "BatchGetItem": {
      const tables = Object.entries(
        request.RequestItems as Readonly<Record<string, { readonly Keys: readonly Key[] }>>,
      );
      return tables.flatMap(([table, { Keys }]) => Keys.map((key) => asked(operation, table, key)));
    }
    case "BatchWriteItem": {
      const tables = Object.entries(
        request.RequestItems as Readonly<Record<string, readonly { readonly PutRequest?: { readonly Item: Key } }[]>>,
      );
      return tables.flatMap(([table, writes]) =>
        writes.map(({ PutRequest }) => asked(operation, table, PutRequest?.Item)),
      );
    }
    case "TransactWriteItems": {
      const items = request.TransactItems as readonly Readonly<Record<string, TransactAction>>[];
      return items.flatMap((item) =>
        Object.entries(item).map(([kind, { TableName, Item, Key }]) =>
          asked(actionOf[kind] ?? kind, TableName, Item ?? Key),
        ),
      );
    }
    case "Query": {
      const index = request.IndexName === undefined ? "" : `/index/${request.IndexName}`;
      const values = request.ExpressionAttributeValues as Key | undefined;
      return [asked(operation, `${request.TableName}${index}`, { pk: values?.[":pk"] })];
    }
    default:
      return [asked(operation, request.TableName, (request.Item ?? request.Key) as Key | undefined)];
  }
}

/** The actions on `/<bucket>/<folder>/<name>`. A copy reads one object and stores another. */
function askedOfBucket(method: string, path: string, source: string | undefined): readonly Asked[] {
  const resource = `object/${keyOf(path)}`;
  if (method === "GET" || method === "HEAD") return [{ action: "s3:GetObject", resource }];
  if (source === undefined) return [{ action: "s3:PutObject", resource }];
  const copySource = keyOf(`/${source}`);
  return [
    { action: "s3:GetObject", resource: `object/${copySource}` },
    { action: "s3:PutObject", resource, copySource },
  ];
}

function keyOf(path: string): string {
  return decodeURIComponent(path).split("/").slice(2).join("/");
}
