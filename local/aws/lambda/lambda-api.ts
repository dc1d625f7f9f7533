import { functionError } from "#local/aws/lambda/function-error.ts";
import type { Invocation, LambdaFunction } from "#local/aws/lambda/lambda-function.ts";
import { restJsonError } from "#local/aws/wire/aws-error-replies.ts";
import type { HttpReply } from "#local/aws/wire/emulator-client.ts";
import type { Forward } from "#local/aws/wire/fault-context.ts";
import { defined } from "#shared/base/defined.ts";

const invocationPath = /^\/2015-03-31\/functions\/([^/?]+)\/invocations$/;

const settingsPath = "/2016-08-19/account-settings";

/** The default concurrency of an AWS account. */
const usualConcurrency = 1000;

/**
 * Lambda's API, reduced to synchronous invocations and to the concurrency limit of the account. @param concurrency -
 * the number of invocations that the account may run at once.
 */
export function lambdaApi(
  find: (functionName: string) => LambdaFunction | undefined,
  concurrency: number = usualConcurrency,
): Forward {
  return async ({ method, path, headers, body }) => {
    if (method === "GET" && path.replace(/\/$/, "") === settingsPath) return accountSettings(concurrency);
    const name = decodeURIComponent(invocationPath.exec(path)?.[1] ?? "");
    if (method !== "POST" || name === "") return invalid(`the local Lambda does not support ${method} ${path}`);
    const type = headers["x-amz-invocation-type"] ?? "RequestResponse";
    if (type !== "RequestResponse") return invalid(`the local Lambda does not support invocations of type ${type}`);
    const lambda = find(name);
    if (lambda === undefined) return restJsonError(404, "ResourceNotFoundException", `Function not found: ${name}`);
    const tenantId = headers["x-amz-tenant-id"]?.toString();
    if ((tenantId === undefined) !== (lambda.tenancy === "shared")) {
      return invalid(
        tenantId === undefined
          ? "Add a valid tenant ID in your request. The invoked function is enabled with tenancy configuration."
          : "The invoked function is not enabled with tenancy configuration. Remove the tenant ID from your request.",
      );
    }
    const trace = headers["x-amzn-trace-id"]?.toString();
    const invocation = await lambda.invoke({
      event: JSON.parse(body.toString() || "null"),
      killed: new AbortController().signal,
      ...defined({ tenantId }),
      traces: [trace],
    });
    return replyTo(invocation, lambda);
  };
}

function accountSettings(concurrent: number): HttpReply {
  const AccountLimit = { ConcurrentExecutions: concurrent, UnreservedConcurrentExecutions: concurrent };
  return answer({ AccountLimit, AccountUsage: {} });
}

function invalid(message: string): HttpReply {
  return restJsonError(400, "InvalidParameterValueException", message);
}

function replyTo(invocation: Invocation, lambda: LambdaFunction): HttpReply {
  if (invocation.outcome === "returned") return answer(invocation.result ?? null);
  if (invocation.outcome === "throttled") return restJsonError(429, "TooManyRequestsException", "Rate Exceeded.");
  return answer(functionError(invocation, lambda), "Unhandled");
}

function answer(payload: unknown, functionError?: string): HttpReply {
  const body = Buffer.from(JSON.stringify(payload));
  return {
    status: 200,
    headers: {
      "content-type": "application/json",
      "content-length": body.length,
      "x-amz-executed-version": "$LATEST",
      ...(functionError === undefined ? {} : { "x-amz-function-error": functionError }),
    },
    body,
  };
}
