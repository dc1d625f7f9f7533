import { localAccountId, localRegion } from "#local/aws/lambda/lambda-context.ts";
import type { SecretsRequest } from "#local/aws/services/secrets-server.ts";

export interface SecretAccess {
  /** They may do everything. */
  readonly people: string;
  readonly functions: readonly {
    readonly principalArn: string;
    /** Patterns of ARNs, as in a policy. */
    readonly readable: readonly string[];
    readonly describable: readonly string[];
  }[];
}

/** Who may ask what of secrets: a function reads what its role grants, and a role of another account nothing. */
export function allowsSecrets({ people, functions }: SecretAccess): (request: SecretsRequest) => boolean {
  const granted = {
    GetSecretValue: new Map(functions.map((each) => [each.principalArn, each.readable.map(patternOf)])),
    DescribeSecret: new Map(functions.map((each) => [each.principalArn, each.describable.map(patternOf)])),
  };
  return ({ principalArn, operation, secretId }) => {
    if (principalArn === people) return true;
    if (operation !== "GetSecretValue" && operation !== "DescribeSecret") return false;
    const arn = secretId.startsWith("arn:") ? secretId : arnOf(secretId);
    return granted[operation].get(principalArn)?.some((pattern) => pattern.test(arn)) === true;
  };
}

/** With six letters in the place of those that Secrets Manager adds to a name. */
function arnOf(name: string): string {
  return `arn:aws:secretsmanager:${localRegion}:${localAccountId}:secret:${name}-??????`;
}

function patternOf(pattern: string): RegExp {
  const literal = pattern.split("*").map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  return new RegExp(`^${literal.join(".*")}$`, "s");
}
