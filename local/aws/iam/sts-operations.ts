import { createHash, randomUUID } from "node:crypto";
import type { IamRoles } from "#local/aws/iam/iam-roles.ts";
import { accountOf, canonicalArn, sessionNameOf } from "#local/aws/iam/principal-arns.ts";
import type { AccessKey, Principals } from "#local/aws/iam/principals.ts";
import { queryErrorXml, queryXml } from "#local/aws/wire/query-xml.ts";

export interface StsParts {
  readonly principals: Principals;
  readonly roles: IamRoles;
  readonly now: Date;
}

export class StsRefusal extends Error {
  readonly code: string;
  readonly status: number;

  constructor(code: string, message: string, status = 403) {
    super(message);
    this.code = code;
    this.status = status;
  }
}

/** The elements of an answer, in their order. */
export type StsAnswer = Readonly<Record<string, string | Readonly<Record<string, string>>>>;

const shortestSeconds = 900;
const longestSeconds = 43_200;
const defaultSeconds = 3600;
/** The longest session of a role that is assumed by a session of another role. */
const longestChainedSeconds = 3600;

export function getCallerIdentity({ principalArn }: AccessKey): StsAnswer {
  return { Arn: principalArn, UserId: userIdOf(principalArn), Account: accountOf(principalArn) };
}

/** @throws StsRefusal */
export function assumeRole(request: URLSearchParams, caller: AccessKey, parts: StsParts): StsAnswer {
  const roleArn = request.get("RoleArn") ?? "";
  const session = request.get("RoleSessionName") ?? "";
  const seconds = Number(request.get("DurationSeconds") ?? defaultSeconds);
  if (!/^arn:aws[\w-]*:iam::\d{12}:role\/.+$/.test(roleArn)) throw invalid(`${roleArn} is invalid`);
  if (!/^[\w+=,.@-]{2,64}$/.test(session)) throw invalid(`Value '${session}' at 'roleSessionName' failed`);
  if (!Number.isInteger(seconds) || seconds < shortestSeconds || seconds > longestSeconds) {
    throw invalid(`Value '${seconds}' at 'durationSeconds' failed`);
  }
  if (!parts.roles.mayAssume(roleArn, caller.principalArn, request.get("ExternalId") ?? undefined)) {
    throw new StsRefusal(
      "AccessDenied",
      `User: ${caller.principalArn} is not authorized to perform: sts:AssumeRole on resource: ${roleArn}`,
    );
  }
  if (caller.sessionToken !== undefined && seconds > longestChainedSeconds) {
    throw invalid("The requested DurationSeconds exceeds the 1 hour session limit for roles assumed by role chaining");
  }
  const name = roleArn.split("/").at(-1);
  const arn = `arn:${roleArn.split(":")[1]}:sts::${accountOf(roleArn)}:assumed-role/${name}/${session}`;
  const expiresAt = new Date(Math.floor(parts.now.getTime() / 1000 + seconds) * 1000);
  const key = parts.principals.startSession({ principalArn: arn, expiresAt });
  return {
    AssumedRoleUser: { AssumedRoleId: userIdOf(arn), Arn: arn },
    Credentials: {
      AccessKeyId: key.accessKeyId,
      SecretAccessKey: key.secretAccessKey,
      SessionToken: key.sessionToken,
      Expiration: expiresAt.toISOString(),
    },
  };
}

function invalid(message: string): StsRefusal {
  return new StsRefusal("ValidationError", `1 validation error detected: ${message}`, 400);
}

/** `AROA…:session` for a role's session and `AIDA…` for a user. The same principal always has the same id. */
function userIdOf(principalArn: string): string {
  const id = createHash("sha256").update(canonicalArn(principalArn)).digest("hex").slice(0, 17).toUpperCase();
  const session = sessionNameOf(principalArn);
  return session === undefined ? `AIDA${id}` : `AROA${id}:${session}`;
}

const namespace = "https://sts.amazonaws.com/doc/2011-06-15/";

/** An answer in the XML of the Query protocol. */
export function stsXml(action: string, answer: StsAnswer): string {
  return queryXml({ action, namespace, result: answer });
}

/** An answer in JSON, for clients that accept only JSON, such as authenticators. */
export function stsJson(action: string, answer: StsAnswer): string {
  return JSON.stringify({
    [`${action}Response`]: { [`${action}Result`]: answer, ResponseMetadata: { RequestId: randomUUID() } },
  });
}

export function stsErrorXml(refusal: StsRefusal): string {
  return queryErrorXml(namespace, refusal);
}

export function stsErrorJson({ code, message }: StsRefusal): string {
  return JSON.stringify({ Error: { Type: "Sender", Code: code, Message: message }, RequestId: randomUUID() });
}
