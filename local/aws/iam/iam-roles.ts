import { accountOf, canonicalArn } from "#local/aws/iam/principal-arns.ts";

/** Who may assume a role, as its trust policy says. */
export interface Trust {
  /** ARN of a user or role, or of an account's root: then everybody in that account. */
  readonly principalArn: string;
  /** What `sts:ExternalId` has to be. */
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

  /** A name is unique in an account, whatever the path. */
  named(account: string, name: string): IamRole | undefined {
    return [...this.#roles.values()].find(({ arn }) => accountOf(arn) === account && arn.split("/").at(-1) === name);
  }

  /** @param callerArn - a user's, or that of a session. */
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
