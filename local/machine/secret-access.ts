import { localAccountId, localRegion } from "#local/aws/lambda/lambda-context.ts";
import type { SecretsRequest } from "#local/aws/services/secrets-server.ts";

export interface SecretAccess {
  /** The ARN of people, who may do everything. */
  readonly people: string;
  readonly functions: readonly {
    readonly principalArn: string;
    /** Patterns of ARNs, as in a policy. */
    readonly readable: readonly string[];
    readonly describable: readonly string[];
  }[];
}

/**
 * Decides who may call which operation on a secret. A function may read the secrets that its role grants. A role of
 * another account may read none.
 */
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

/** The ARN of a secret. Secrets Manager adds six random letters to the name; here they are fixed. */
function arnOf(name: string): string {
  return `arn:aws:secretsmanager:${localRegion}:${localAccountId}:secret:${name}-??????`;
}

function patternOf(pattern: string): RegExp {
  const literal = pattern.split("*").map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  return new RegExp(`^${literal.join(".*")}$`, "s");
}
