/** ARNs of principals, as IAM, STS and EKS write them. */

/** The account in an ARN. */
export function accountOf(arn: string): string {
  return arn.split(":")[4] ?? "";
}

/**
 * The IAM identity of a caller's ARN. For an assumed role it is the role, for any other principal the principal itself.
 * The ARN of a session lacks the path of its role, so paths of roles are removed, too. As `arn.Canonicalize` of
 * aws-iam-authenticator. @throws Error when the text is not the ARN of a principal.
 */
export function canonicalArn(arn: string): string {
  const [scheme, partition, service, , account, ...rest] = arn.split(":");
  const resource = rest.join(":");
  const parts = resource.split("/");
  const [kind] = parts;
  if (scheme !== "arn" || partition === undefined || account === undefined) throw notPrincipal(arn);
  if (service === "sts" && kind === "assumed-role" && parts.length >= 3) {
    return `arn:${partition}:iam::${account}:role/${parts.slice(1, -1).join("/")}`;
  }
  if (service === "sts" && kind === "federated-user") return arn;
  if (service === "iam" && kind === "role") return `arn:${partition}:iam::${account}:role/${parts.at(-1)}`;
  if (service === "iam" && (kind === "user" || kind === "root")) return arn;
  throw notPrincipal(arn);
}

/** The session name in the ARN of an assumed role. */
export function sessionNameOf(arn: string): string | undefined {
  return /^arn:[^:]+:sts::\d+:assumed-role\/.+\/([^/]+)$/.exec(arn)?.[1];
}

function notPrincipal(arn: string): Error {
  return new Error(`${JSON.stringify(arn)} is not the ARN of a user, a role or a session`);
}
