import { gatewayName } from "#cli/session/endpoint-names.ts";

export interface InvokePolicy {
  readonly resource: string;
  readonly document: string;
}

/** What lets somebody call the API; of a custom domain, any API. */
export function invokePolicy(endpoint: string): InvokePolicy {
  const [, api = "*", region = "*", china] = gatewayName.exec(new URL(endpoint).hostname) ?? [];
  const resource = `arn:aws${china === undefined ? "" : "-cn"}:execute-api:${region}:*:${api}/*`;
  const statement = { Effect: "Allow", Action: "execute-api:Invoke", Resource: resource };
  return { resource, document: JSON.stringify({ Version: "2012-10-17", Statement: [statement] }) };
}

/** Gives a principal the policy. */
export function permissionCommand(principalArn: string | undefined, { document }: InvokePolicy): string {
  const given = `--policy-name starling --policy-document '${document}'`;
  const user = /:user\/(?:.*\/)?([^/]+)$/.exec(principalArn ?? "")?.[1];
  if (user !== undefined) return `aws iam put-user-policy --user-name ${user} ${given}`;
  const role = /:assumed-role\/([^/]+)\//.exec(principalArn ?? "")?.[1];
  // IAM Identity Center writes these roles itself, and again at its next change.
  if (role?.startsWith("AWSReservedSSO_") === true) {
    return `aws sso-admin put-inline-policy-to-permission-set --instance-arn ARN --permission-set-arn ARN --inline-policy '${document}'`;
  }
  return `aws iam put-role-policy --role-name ${role ?? "ROLE"} ${given}`;
}
