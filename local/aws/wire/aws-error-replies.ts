import { randomUUID } from "node:crypto";
import type { AwsService } from "#local/aws/wire/aws-call.ts";
import type { HttpReply } from "#local/aws/wire/emulator-client.ts";

/** A reply of a JSON protocol (DynamoDB and SQS) with its headers. */
export function jsonReply(status: number, body: object): HttpReply {
  const bytes = Buffer.from(JSON.stringify(body));
  return {
    status,
    headers: {
      "content-type": "application/x-amz-json-1.0",
      "content-length": bytes.length,
      "x-amzn-requestid": randomUUID(),
    },
    body: bytes,
  };
}

export interface DynamoError {
  /** For example `ThrottlingException`. */
  readonly code: string;
  readonly message: string;
  readonly members?: object;
}

/** An error of a REST API with JSON (Lambda). */
export function restJsonError(status: number, code: string, message: string): HttpReply {
  const body = Buffer.from(JSON.stringify({ Type: status < 500 ? "User" : "Service", message }));
  return {
    status,
    headers: {
      "content-type": "application/json",
      "content-length": body.length,
      "x-amzn-errortype": code,
      "x-amzn-requestid": randomUUID(),
    },
    body,
  };
}

/** An error in the format of DynamoDB. */
export function dynamoError({ code, message, members = {} }: DynamoError): HttpReply {
  return jsonReply(400, { __type: `com.amazonaws.dynamodb.v20120810#${code}`, message, ...members });
}

export interface S3Error {
  readonly status: number;
  readonly code: string;
  readonly message: string;
  /** Additional elements, for example `{ Condition: "If-None-Match" }`. */
  readonly elements?: Readonly<Record<string, string>>;
}

/** An error in the format of S3. */
export function s3Error({ status, code, message, elements = {} }: S3Error): HttpReply {
  const requestId = randomUUID().replaceAll("-", "").slice(0, 16).toUpperCase();
  const members = Object.entries({ Code: code, Message: message, ...elements, RequestId: requestId, HostId: "local" });
  const xml = members.map(([name, value]) => `<${name}>${value}</${name}>`).join("");
  const body = Buffer.from(`<?xml version="1.0" encoding="UTF-8"?>\n<Error>${xml}</Error>`);
  return {
    status,
    headers: { "content-type": "application/xml", "content-length": body.length, "x-amz-request-id": requestId },
    body,
  };
}

/**
 * The error of S3 when a policy denies the request. A caller that may not list the bucket gets it for a missing key,
 * too.
 */
export function s3Denied(): HttpReply {
  return s3Error({ status: 403, code: "AccessDenied", message: "Access Denied" });
}

/** A failure of the service itself, which the SDK repeats. */
export function serverError(service: AwsService): HttpReply {
  if (service === "s3") {
    return s3Error({
      status: 500,
      code: "InternalError",
      message: "We encountered an internal error. Please try again.",
    });
  }
  if (service === "lambda") {
    return restJsonError(500, "ServiceException", "The Lambda service encountered an internal error.");
  }
  const types = {
    dynamodb: "com.amazonaws.dynamodb.v20120810#InternalServerError",
    sqs: "com.amazonaws.sqs#ServiceUnavailable",
  };
  return jsonReply(service === "sqs" ? 503 : 500, {
    __type: types[service],
    message: "The request processing has failed",
  });
}
