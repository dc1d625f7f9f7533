import type { AwsCall } from "#local/aws/wire/aws-call.ts";
import { s3Error } from "#local/aws/wire/aws-error-replies.ts";
import type { HttpReply } from "#local/aws/wire/emulator-client.ts";
import type { FaultContext, Forward, ServiceFront } from "#local/aws/wire/fault-context.ts";
import { takeTurns } from "#local/base/take-turns.ts";

const objectWrites = new Set(["PutObject", "CopyObject", "DeleteObject", "CompleteMultipartUpload"]);

/**
 * S3 with conditional writes, which the emulator ignores, and with injected errors. Writes of one key run one after
 * another, so that exactly one of several creators succeeds.
 */
export function createS3Front(options: { readonly context: FaultContext; readonly forward: Forward }): ServiceFront {
  const { context, forward } = options;
  const oneAtATime = takeTurns();

  async function answer(call: AwsCall): Promise<HttpReply> {
    const { random, injected } = context;
    const { slowDown, conditionalConflict, preconditionFailed: rivalled } = context.faults().s3;
    if (random.chance(slowDown)) {
      injected("s3:slowDown");
      return s3Error({ status: 503, code: "SlowDown", message: "Please reduce your request rate." });
    }
    if (!objectWrites.has(call.operation)) return forward(call.http);
    if (conditionOf(call) !== undefined && random.chance(conditionalConflict)) {
      injected("s3:conditionalConflict");
      return s3Error({
        status: 409,
        code: "ConditionalRequestConflict",
        message: "The conditional request cannot succeed due to a conflicting operation against this resource.",
      });
    }
    const rival = conditionOf(call) !== undefined && random.chance(rivalled);
    const write = rival ? writeAfterRival : writeConditionally;
    return oneAtATime(`${call.request.bucket}/${call.request.key}`, () => write(call));
  }

  /**
   * Simulates a rival. For `If-None-Match` the rival creates the same object first. For `If-Match` the rival overwrites
   * the object and restores it.
   */
  async function writeAfterRival(call: AwsCall): Promise<HttpReply> {
    const condition = conditionOf(call);
    const refusal = condition === undefined ? undefined : await check(call, condition);
    if (condition === undefined || refusal !== undefined) return refusal ?? forward(call.http);
    context.injected("s3:preconditionFailed");
    if (condition.header === "If-None-Match") {
      const written = await forward(call.http);
      if (written.status >= 300) return written;
    }
    return preconditionFailed(condition.header);
  }

  async function writeConditionally(call: AwsCall): Promise<HttpReply> {
    const condition = conditionOf(call);
    const refusal = condition === undefined ? undefined : await check(call, condition);
    return refusal ?? forward(call.http);
  }

  async function check(call: AwsCall, condition: Condition): Promise<HttpReply | undefined> {
    if (condition.header === "If-None-Match" && condition.value !== "*") {
      return s3Error({
        status: 501,
        code: "NotImplemented",
        message: "A header you provided implies functionality that is not implemented",
        elements: { Header: "If-None-Match" },
      });
    }
    const path = new URL(call.http.path, "http://127.0.0.1").pathname;
    const { authorization } = call.http.headers;
    const existing = await forward({
      method: "HEAD",
      path,
      headers: authorization === undefined ? {} : { authorization },
      body: Buffer.alloc(0),
    });
    const exists = existing.status === 200;
    if (condition.header === "If-None-Match") return exists ? preconditionFailed("If-None-Match") : undefined;
    if (!exists) {
      return s3Error({ status: 404, code: "NoSuchKey", message: "The specified key does not exist." });
    }
    return unquoted(String(existing.headers.etag)) === unquoted(condition.value)
      ? undefined
      : preconditionFailed("If-Match");
  }

  return answer;
}

interface Condition {
  readonly header: "If-None-Match" | "If-Match";
  readonly value: string;
}

function conditionOf({ http: { headers } }: AwsCall): Condition | undefined {
  const none = headers["if-none-match"];
  if (none !== undefined) return { header: "If-None-Match", value: none };
  const match = headers["if-match"];
  return match === undefined ? undefined : { header: "If-Match", value: match };
}

function preconditionFailed(condition: Condition["header"]): HttpReply {
  return s3Error({
    status: 412,
    code: "PreconditionFailed",
    message: "At least one of the pre-conditions you specified did not hold",
    elements: { Condition: condition },
  });
}

function unquoted(etag: string): string {
  return etag.replaceAll('"', "");
}
