import type { IncomingMessage, ServerResponse } from "node:http";
import type { Principals } from "#local/aws/iam/principals.ts";
import { queryRefusal } from "#local/aws/iam/signature-refusals.ts";
import { type Refused, verifySigV4 } from "#local/aws/iam/sigv4-verifier.ts";
import { type QueryValue, queryErrorXml, queryXml } from "#local/aws/wire/query-xml.ts";
import { serveOnLoopback } from "#local/base/loopback-server.ts";
import { readBytesUpTo } from "#local/base/read-bytes.ts";

export interface DeployedStack {
  readonly name: string;
  readonly arn: string;
  /** For example `CREATE_COMPLETE`. */
  readonly status: string;
  /** The values of the outputs by name; empty until the stack exists. */
  readonly outputs: Readonly<Record<string, string>>;
}

export interface CloudFormationOptions {
  readonly principals: Pick<Principals, "find">;
  /** Returns the current stacks. */
  readonly stacks: () => readonly DeployedStack[];
  /** Decides who may describe stacks. The default allows every caller with a valid signature. */
  readonly allows?: (principalArn: string) => boolean;
  /** The default takes any free port. */
  readonly port?: number;
}

export interface CloudFormationServer {
  readonly endpoint: string;
  stop(): Promise<void>;
}

interface Reply {
  readonly status: number;
  readonly body: string;
}

const maxBodyBytes = 64 * 1024;
const namespace = "http://cloudformation.amazonaws.com/doc/2010-05-15/";

/**
 * CloudFormation on 127.0.0.1, reduced to the outputs of stacks: DescribeStacks of one stack, by name or ARN, or of
 * all.
 */
export async function startCloudFormation(options: CloudFormationOptions): Promise<CloudFormationServer> {
  const { principals, stacks, allows = () => true } = options;

  function answer(principalArn: string, parameters: URLSearchParams): Reply {
    const action = parameters.get("Action") ?? "";
    if (action !== "DescribeStacks") {
      return refused(400, "InvalidAction", `Could not find operation ${action} for version 2010-05-15`);
    }
    const desired = parameters.get("StackName") ?? undefined;
    if (!allows(principalArn)) {
      const wish = `cloudformation:DescribeStacks on resource: ${desired ?? "*"}`;
      const why = "because no identity-based policy allows the cloudformation:DescribeStacks action";
      return refused(403, "AccessDenied", `User: ${principalArn} is not authorized to perform: ${wish} ${why}`);
    }
    const found = stacks().filter(({ name, arn }) => desired === undefined || desired === name || desired === arn);
    if (desired !== undefined && found.length === 0) {
      return refused(400, "ValidationError", `Stack with id ${desired} does not exist`);
    }
    return { status: 200, body: queryXml({ action, namespace, result: { Stacks: found.map(description) } }) };
  }

  async function respond(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = "GET", url = "/", headers } = request;
    const arrived = { method, url, headers, body: () => readBytesUpTo(maxBodyBytes, request) };
    const verdict = await verifySigV4(arrived, { principals, service: "cloudformation", now: () => new Date() });
    const { status, body } =
      verdict.verdict === "refused"
        ? refusedSignature(verdict)
        : answer(verdict.accessKey.principalArn, new URLSearchParams(verdict.body.toString()));
    response.writeHead(status, { "content-type": "text/xml" }).end(body);
  }

  const listening = await serveOnLoopback(
    (request, response) => {
      // An error here means that the sender closed the connection before its request was complete.
      respond(request, response).catch(() => response.destroy());
    },
    options.port === undefined ? {} : { port: options.port },
  );
  return { endpoint: listening.origin, stop: () => listening.stop() };
}

function description({ name, arn, status, outputs }: DeployedStack): QueryValue {
  return {
    StackId: arn,
    StackName: name,
    CreationTime: "2026-01-01T00:00:00.000Z",
    StackStatus: status,
    Outputs: Object.entries(outputs).map(([OutputKey, OutputValue]) => ({ OutputKey, OutputValue })),
  };
}

function refusedSignature(verdict: Refused): Reply {
  const { code, message } = queryRefusal(verdict);
  return refused(403, code, message);
}

function refused(status: number, code: string, message: string): Reply {
  return { status, body: queryErrorXml(namespace, { code, message }) };
}
