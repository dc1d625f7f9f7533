import { isUtf8 } from "node:buffer";
import { randomUUID } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";
import type { AccessKey } from "#local/aws/iam/principals.ts";
import type { RouteMatch } from "#local/aws/lambda/http-routes.ts";
import { localAccountId } from "#local/aws/lambda/lambda-context.ts";

export interface ArrivedRequest {
  readonly method: string;
  /** The decoded path, without the query. */
  readonly path: string;
  readonly rawQueryString: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
  readonly at: Date;
}

/** The API Gateway HTTP API event, payload format 2.0. */
export type HttpApiEvent = ReturnType<typeof httpApiEvent>;

/**
 * An event in payload format 2.0 of
 * docs.aws.amazon.com/apigateway/latest/developerguide/http-api-develop-integrations-lambda.html. With an access key,
 * the caller is in `requestContext.authorizer.iam`. On a route without authorization the body is always base64, so that
 * a function can verify a signature over its raw bytes. On other routes it is base64 only if it is not UTF-8.
 */
export function httpApiEvent(request: ArrivedRequest, match: RouteMatch, accessKey: AccessKey | undefined) {
  const { method, path, rawQueryString, body, at } = request;
  const { cookie, ...others } = request.headers;
  const headers = Object.fromEntries(Object.entries(others).map(([name, value]) => [name, [value].flat().join(",")]));
  const isBase64Encoded = match.route.authorization === "none" || !isUtf8(body);
  const query = joinedQuery(rawQueryString);
  return {
    version: "2.0",
    routeKey: match.route.routeKey,
    rawPath: path,
    rawQueryString,
    ...(cookie === undefined ? {} : { cookies: cookie.split("; ") }),
    headers,
    ...(Object.keys(query).length === 0 ? {} : { queryStringParameters: query }),
    requestContext: {
      accountId: localAccountId,
      apiId: "local",
      ...(accessKey === undefined ? {} : { authorizer: { iam: iamIdentity(accessKey) } }),
      domainName: headers.host ?? "localhost",
      domainPrefix: "local",
      http: {
        method,
        path,
        protocol: "HTTP/1.1",
        sourceIp: "127.0.0.1",
        userAgent: headers["user-agent"] ?? "",
      },
      requestId: randomUUID(),
      routeKey: match.route.routeKey,
      stage: "$default",
      time: gatewayTime(at),
      timeEpoch: at.getTime(),
    },
    ...(Object.keys(match.pathParameters).length === 0 ? {} : { pathParameters: match.pathParameters }),
    ...(body.length === 0 ? {} : { body: body.toString(isBase64Encoded ? "base64" : "utf8") }),
    isBase64Encoded: body.length > 0 && isBase64Encoded,
  };
}

function iamIdentity({ accessKeyId, principalArn }: AccessKey) {
  return {
    accessKey: accessKeyId,
    accountId: principalArn.split(":")[4] ?? "",
    callerId: accessKeyId,
    cognitoIdentity: null,
    principalOrgId: null,
    userArn: principalArn,
    userId: accessKeyId,
  };
}

function joinedQuery(rawQueryString: string): Record<string, string> {
  const joined: Record<string, string> = {};
  for (const [name, value] of new URLSearchParams(rawQueryString)) {
    joined[name] = joined[name] === undefined ? value : `${joined[name]},${value}`;
  }
  return joined;
}

const months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/** For example `12/Mar/2026:19:03:58 +0000`. */
function gatewayTime(at: Date): string {
  const day = `${at.getUTCDate()}`.padStart(2, "0");
  return `${day}/${months[at.getUTCMonth()]}/${at.getUTCFullYear()}:${at.toISOString().slice(11, 19)} +0000`;
}
