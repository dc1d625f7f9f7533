import { accountOf, canonicalArn } from "#local/aws/iam/principal-arns.ts";

/** The trust policy of a role. */
export interface Trust {
  /**
   * The ARN of the user or role that may assume this role. The ARN of an account's root allows everybody in that
   * account.
   */
  readonly principalArn: string;
  /** The value that `sts:ExternalId` must have. */
  readonly externalId?: string;
}

export interface IamRole {
  readonly arn: string;
  readonly trusts: readonly Trust[];
}

/** The IAM roles of the accounts of this machine. */
export class IamRoles {
  readonly #roles = new Map<string, IamRole>();

  put(role: IamRole): void {
    this.#roles.set(role.arn, role);
  }

  /** Finds a role by name. A name is unique in its account, whatever its path. */
  named(account: string, name: string): IamRole | undefined {
    return [...this.#roles.values()].find(({ arn }) => accountOf(arn) === account && arn.split("/").at(-1) === name);
  }

  /** @param callerArn - the ARN of a user or of a role's session. */
  mayAssume(roleArn: string, callerArn: string, externalId: string | undefined): boolean {
    const caller = canonicalArn(callerArn);
    const trusts = this.#roles.get(roleArn)?.trusts ?? [];
    return trusts.some(
      (trust) =>
        (trust.externalId === undefined || trust.externalId === externalId) &&
        (canonicalArn(trust.principalArn) === caller || isRootOf(trust.principalArn, accountOf(callerArn))),
    );
  }
}

function isRootOf(principalArn: string, account: string): boolean {
  return principalArn.endsWith(":root") && accountOf(principalArn) === account;
}
