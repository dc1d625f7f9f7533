import type { IncomingMessage, ServerResponse } from "node:http";
import type { IamRole, IamRoles } from "#local/aws/iam/iam-roles.ts";
import { accountOf } from "#local/aws/iam/principal-arns.ts";
import type { Principals } from "#local/aws/iam/principals.ts";
import { queryRefusal } from "#local/aws/iam/signature-refusals.ts";
import { verifySigV4 } from "#local/aws/iam/sigv4-verifier.ts";
import { queryErrorXml, queryXml } from "#local/aws/wire/query-xml.ts";
import { serveOnLoopback } from "#local/base/loopback-server.ts";
import { readBytesUpTo } from "#local/base/read-bytes.ts";

export interface IamServerOptions {
  readonly principals: Pick<Principals, "find">;
  readonly roles: IamRoles;
  /** Decides who may read roles. The default allows every caller with a valid signature. */
  readonly allows?: (principalArn: string) => boolean;
}

interface Reply {
  readonly status: number;
  readonly body: string;
}

const maxBodyBytes = 64 * 1024;
const namespace = "https://iam.amazonaws.com/doc/2010-05-08/";

/** IAM on 127.0.0.1, reduced to GetRole. It answers whom a role of the caller's account trusts. */
export async function startIam({ principals, roles, allows = () => true }: IamServerOptions): Promise<{
  readonly endpoint: string;
  stop(): Promise<void>;
}> {
  function answer(principalArn: string, parameters: URLSearchParams): Reply {
    const action = parameters.get("Action") ?? "";
    const name = parameters.get("RoleName") ?? "";
    if (action !== "GetRole") return refused(400, "InvalidAction", `Could not find operation ${action}`);
    if (!allows(principalArn)) {
      return refused(403, "AccessDenied", `User: ${principalArn} is not authorized to perform: iam:GetRole`);
    }
    const found = roles.named(accountOf(principalArn), name);
    if (found === undefined) return refused(404, "NoSuchEntity", `The role with name ${name} cannot be found.`);
    return { status: 200, body: queryXml({ action, namespace, result: { Role: described(found, name) } }) };
  }

  async function respond(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = "GET", url = "/", headers } = request;
    const arrived = { method, url, headers, body: () => readBytesUpTo(maxBodyBytes, request) };
    const verdict = await verifySigV4(arrived, { principals, service: "iam", now: () => new Date() });
    const { status, body } =
      verdict.verdict === "refused"
        ? refused(403, queryRefusal(verdict).code, queryRefusal(verdict).message)
        : answer(verdict.accessKey.principalArn, new URLSearchParams(verdict.body.toString()));
    response.writeHead(status, { "content-type": "text/xml" }).end(body);
  }

  const listening = await serveOnLoopback((request, response) => {
    // An error here means that the sender closed the connection before its request was complete.
    respond(request, response).catch(() => response.destroy());
  }, {});
  return { endpoint: listening.origin, stop: () => listening.stop() };
}

/** IAM percent-encodes the policy. */
function described({ arn, trusts }: IamRole, name: string) {
  const Statement = trusts.map(({ principalArn, externalId }) => ({
    Effect: "Allow",
    Action: "sts:AssumeRole",
    Principal: { AWS: principalArn },
    ...(externalId === undefined ? {} : { Condition: { StringEquals: { "sts:ExternalId": externalId } } }),
  }));
  const policy = JSON.stringify({ Version: "2012-10-17", Statement });
  return {
    Path: arn.slice(arn.indexOf("/"), arn.lastIndexOf("/") + 1),
    RoleName: name,
    RoleId: "AROAEXAMPLE",
    Arn: arn,
    CreateDate: "2026-01-01T00:00:00Z",
    AssumeRolePolicyDocument: encodeURIComponent(policy),
  };
}

function refused(status: number, code: string, message: string): Reply {
  return { status, body: queryErrorXml(namespace, { code, message }) };
}
