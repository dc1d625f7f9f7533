import { randomUUID } from "node:crypto";
import type { HttpRequest } from "#local/aws/wire/emulator-client.ts";

export type AwsService = "dynamodb" | "sqs" | "s3" | "lambda";

/** One request of an SDK client, before any effect. */
export interface AwsCall {
  readonly service: AwsService;
  /** For example `UpdateItem`, `ReceiveMessage` or `PutObject`. */
  readonly operation: string;
  /** The same for all attempts of one SDK call (`amz-sdk-invocation-id`). */
  readonly invocationId: string;
  /**
   * For DynamoDB and SQS the JSON body, for S3 `{ bucket, key, query }`, for Lambda the function's name, tenant and
   * event.
   */
  readonly request: Readonly<Record<string, unknown>>;
  readonly http: HttpRequest;
}

/** Reads the call from a request. The body is parsed on first use. */
export function readCall(service: AwsService, http: HttpRequest): AwsCall {
  const invocationId = String(http.headers["amz-sdk-invocation-id"] ?? randomUUID());
  if (service === "s3") {
    const request = readS3Request(http);
    return { service, operation: s3Operation(http, request), invocationId, request: { ...request }, http };
  }
  if (service === "lambda") {
    const name = /^\/2015-03-31\/functions\/([^/?]+)\/invocations$/.exec(http.path)?.[1];
    const operation = name !== undefined ? "Invoke" : isAccountSettings(http) ? "GetAccountSettings" : "Unknown";
    const request = { functionName: name, tenantId: http.headers["x-amz-tenant-id"], event: http.body.toString() };
    return { service, operation, invocationId, request, http };
  }
  const target = String(http.headers["x-amz-target"] ?? "");
  let parsed: Record<string, unknown> | undefined;
  return {
    service,
    operation: target.slice(target.indexOf(".") + 1) || "Unknown",
    invocationId,
    get request() {
      parsed ??= JSON.parse(http.body.toString() || "{}") as Record<string, unknown>;
      return parsed;
    },
    http,
  };
}

function isAccountSettings({ method, path }: HttpRequest): boolean {
  return method === "GET" && /^\/2016-08-19\/account-settings\/?$/.test(path);
}

/** The request of the same call with another JSON body. */
export function withBody(call: AwsCall, body: object): HttpRequest {
  return { ...call.http, body: Buffer.from(JSON.stringify(body)) };
}

interface S3Request {
  readonly bucket: string;
  readonly key: string;
  readonly query: Readonly<Record<string, string>>;
}

function readS3Request({ path }: HttpRequest): S3Request {
  const { pathname, searchParams } = new URL(path, "http://127.0.0.1");
  const [, bucket = "", ...key] = pathname.split("/");
  return {
    bucket: decodeURIComponent(bucket),
    key: decodeURIComponent(key.join("/")),
    query: Object.fromEntries(searchParams),
  };
}

function s3Operation({ method, headers }: HttpRequest, { bucket, key, query }: S3Request): string {
  const level = key !== "" ? "object" : bucket !== "" ? "bucket" : "service";
  if ("uploads" in query && method === "POST") return "CreateMultipartUpload";
  if ("uploadId" in query) return multipartOperations[method] ?? "Unknown";
  if (method === "PUT" && level === "object" && headers["x-amz-copy-source"] !== undefined) return "CopyObject";
  if (method === "GET" && level === "bucket") return query["list-type"] === "2" ? "ListObjectsV2" : "ListObjects";
  return s3Operations[`${method} ${level}`] ?? "Unknown";
}

const multipartOperations: Readonly<Record<string, string>> = {
  PUT: "UploadPart",
  POST: "CompleteMultipartUpload",
  DELETE: "AbortMultipartUpload",
  GET: "ListParts",
};

const s3Operations: Readonly<Record<string, string>> = {
  "GET service": "ListBuckets",
  "PUT bucket": "CreateBucket",
  "HEAD bucket": "HeadBucket",
  "DELETE bucket": "DeleteBucket",
  "POST bucket": "DeleteObjects",
  "PUT object": "PutObject",
  "GET object": "GetObject",
  "HEAD object": "HeadObject",
  "DELETE object": "DeleteObject",
};
