import { gatewayName } from "#cli/session/endpoint-names.ts";
import { defined } from "#shared/base/defined.ts";
import { quoted } from "#shared/base/shell-word.ts";

export interface InvokePolicy {
  readonly resource: string;
  readonly document: string;
}

/** A policy that allows calls of the API. For a custom domain it allows any API. */
export function invokePolicy(endpoint: string): InvokePolicy {
  const [, api = "*", region = "*", china] = gatewayName.exec(new URL(endpoint).hostname) ?? [];
  const resource = `arn:aws${china === undefined ? "" : "-cn"}:execute-api:${region}:*:${api}/*`;
  const statement = { Effect: "Allow", Action: "execute-api:Invoke", Resource: resource };
  return { resource, document: JSON.stringify({ Version: "2012-10-17", Statement: [statement] }) };
}

/** The command that gives a principal the viewer's policy of the stack. Without a known stack: the right to call the whole API. */
export function permissionCommand(
  principalArn: string | undefined,
  {
    document,
    viewerOf,
  }: InvokePolicy & { readonly viewerOf: { readonly stack: string; readonly region: string } | undefined },
): string {
  if (viewerOf !== undefined) {
    const query = "Stacks[0].Outputs[?OutputKey=='ViewerPolicy'].OutputValue";
    const { stack, region } = viewerOf;
    const arn = `$(aws cloudformation describe-stacks --stack-name ${stack} --region ${region} --query "${query}" --output text)`;
    return attachCommand(principalArn, arn);
  }
  const given = `--policy-name starling --policy-document ${quoted(document)}`;
  const { user, role = "ROLE" } = nameOf(principalArn);
  if (user !== undefined) return `aws iam put-user-policy --user-name ${user} ${given}`;
  if (isOfIdentityCenter(role)) {
    return `aws sso-admin put-inline-policy-to-permission-set --instance-arn ARN --permission-set-arn ARN --inline-policy ${quoted(document)}`;
  }
  return `aws iam put-role-policy --role-name ${role} ${given}`;
}

function attachCommand(principalArn: string | undefined, policyArn: string): string {
  const { user, role = "ROLE" } = nameOf(principalArn);
  if (user !== undefined) return `aws iam attach-user-policy --user-name ${user} --policy-arn ${policyArn}`;
  if (isOfIdentityCenter(role)) return `in IAM Identity Center, attach the policy to the permission set: ${policyArn}`;
  return `aws iam attach-role-policy --role-name ${role} --policy-arn ${policyArn}`;
}

/** IAM Identity Center owns these roles, and overwrites them at its next change. */
function isOfIdentityCenter(role: string): boolean {
  return role.startsWith("AWSReservedSSO_");
}

function nameOf(principalArn = ""): { readonly user?: string; readonly role?: string } {
  const user = /:user\/(?:.*\/)?([^/]+)$/.exec(principalArn)?.[1];
  const role = /:assumed-role\/([^/]+)\//.exec(principalArn)?.[1];
  return defined({ user, role });
}
