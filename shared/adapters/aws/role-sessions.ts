import { AssumeRoleCommand, type Credentials, type STSClient, STSServiceException } from "@aws-sdk/client-sts";
import { LRUCache } from "lru-cache";
import type { SigningCredentials } from "#shared/adapters/aws/eks-token.ts";
import { SharedQuestions } from "#shared/adapters/aws/shared-questions.ts";
import type { Clock } from "#shared/base/clock.ts";
import { errorMessage, StarlingError } from "#shared/base/errors.ts";

export interface RoleIdentity {
  readonly arn: string;
  /** Of the Cluster, see shared/base/external-id.ts. */
  readonly externalId: string;
}

/** Who Starling is to be: a role, or itself where there is none. */
export interface Identity {
  readonly role?: RoleIdentity | undefined;
}

export interface SessionCredentials extends SigningCredentials {
  /** When they end; those of the function itself end with its sandbox. */
  readonly expiration?: Date;
}

export interface RoleSessionOptions {
  /**
   * Of Starling's own region, with the function's own credentials. Sessions of a regional endpoint are good in every region
   * that the role's account has enabled; in other regions Starling's account may not be known.
   */
  readonly sts: STSClient;
  readonly clock: Clock;
  /** Whose role is to be trusted, and which of the stacks' settings say whom it may assume. */
  readonly caller?: { readonly function: string; readonly settings: string };
  /** Shown in the CloudTrail of the account: `starling-<installation>`. */
  readonly sessionName: string;
}

interface KeptSession {
  readonly credentials: SessionCredentials & { readonly expiration: Date };
  readonly startedAt: number;
}

/** The most that a role may be assumed for by somebody who is a role himself, as every function is. */
const sessionSeconds = 3600;
/** So long before its end a session is replaced: one call for about 50 minutes, and a token from it outlives its use. */
const renewalSeconds = 600;
/** Nothing is begun with a session that has no longer to go. */
const lastSeconds = 60;
/** A session that is refused is not asked for again sooner: a cluster that knows nobody would cost a call each time. */
const refusalSeconds = 60;
/** Of some kilobytes each; every Cluster has its own. */
const mostKept = 1000;

/**
 * Temporary credentials of roles, kept for as long as the process lives: one AssumeRole for each role and
 * external id at a time, whoever asks.
 */
export class RoleSessions {
  readonly #options: RoleSessionOptions;
  readonly #kept = new LRUCache<string, KeptSession>({ max: mostKept });
  readonly #questions: SharedQuestions<KeptSession>;

  constructor(options: RoleSessionOptions) {
    this.#options = options;
    this.#questions = new SharedQuestions(options.clock);
  }

  /**
   * @param options.refused - credentials that were not accepted: gives others, where those are not brand new.
   * @throws StarlingError `RoleDenied`, `RegionDisabled`, `TokenTooLarge`, `StsUnavailable`
   */
  async credentials(
    identity: Identity,
    options: { readonly refused?: SessionCredentials } = {},
  ): Promise<SessionCredentials> {
    const { role } = identity;
    if (role === undefined) return this.#options.sts.config.credentials();
    const id = JSON.stringify([role.arn, role.externalId]);
    const kept = this.#kept.get(id);
    const now = this.#options.clock.now().getTime();
    const usable = kept !== undefined && !isRefused(kept, options.refused, now) ? kept : undefined;
    if (usable !== undefined && !endsWithin(renewalSeconds, usable, now)) return usable.credentials;
    try {
      return (await this.#started(id, role)).credentials;
    } catch (error) {
      // STS being away is no reason to give up what is good for some minutes more.
      if (usable === undefined || endsWithin(lastSeconds, usable, now)) throw error;
      return usable.credentials;
    }
  }

  #started(id: string, role: RoleIdentity): Promise<KeptSession> {
    return this.#questions.ask(id, async () => {
      const session = await this.#start(role);
      this.#kept.set(id, session);
      return session;
    });
  }

  async #start(role: RoleIdentity): Promise<KeptSession> {
    const { sts } = this.#options;
    const startedAt = this.#options.clock.now().getTime();
    try {
      const { Credentials: given } = await sts.send(
        new AssumeRoleCommand({
          RoleArn: role.arn,
          RoleSessionName: sessionNameOf(this.#options.sessionName),
          DurationSeconds: sessionSeconds,
          ExternalId: role.externalId,
        }),
      );
      return { credentials: credentialsIn(given), startedAt };
    } catch (error) {
      throw sessionError(error, { role, region: await sts.config.region() }, this.#options.caller ?? applyFunction);
    }
  }
}

/** @throws Error when the answer holds none. */
function credentialsIn(given: Credentials | undefined): KeptSession["credentials"] {
  const { AccessKeyId, SecretAccessKey, SessionToken, Expiration } = given ?? {};
  if (
    AccessKeyId === undefined ||
    SecretAccessKey === undefined ||
    SessionToken === undefined ||
    Expiration === undefined
  ) {
    throw new Error("the answer holds no credentials");
  }
  return {
    accessKeyId: AccessKeyId,
    secretAccessKey: SecretAccessKey,
    sessionToken: SessionToken,
    expiration: Expiration,
  };
}

function endsWithin(seconds: number, { credentials }: KeptSession, now: number): boolean {
  return credentials.expiration.getTime() - seconds * 1000 <= now;
}

function isRefused(session: KeptSession, refused: SessionCredentials | undefined, now: number): boolean {
  return refused?.accessKeyId === session.credentials.accessKeyId && session.startedAt + refusalSeconds * 1000 <= now;
}

/** The account that a role belongs to. */
function accountOf(roleArn: string): string {
  return roleArn.split(":")[4] ?? "";
}

/** STS takes 2 to 64 characters of these. */
function sessionNameOf(name: string): string {
  return name.replaceAll(/[^\w+=,.@-]/g, "-").slice(0, 64);
}

const applyFunction = { function: "apply", settings: "context clusterRoles, clusterAccounts and organization" };

function sessionError(
  error: unknown,
  { region, role: { arn, externalId } }: { readonly region: string; readonly role: RoleIdentity },
  caller: NonNullable<RoleSessionOptions["caller"]>,
): StarlingError {
  const name = error instanceof STSServiceException ? error.name : "";
  const data = { role: arn, region };
  if (name === "AccessDenied" || name === "AccessDeniedException") {
    return new StarlingError(
      `role ${arn} may not be assumed: let its trust policy allow sts:AssumeRole to the role of Starling's ${caller.function} function where sts:ExternalId is ${externalId}, and see that its name and account are among those that Starling may assume roles of (${caller.settings} of its stacks) (${errorMessage(error)})`,
      { code: "RoleDenied", retry: "transient", data, cause: error },
    );
  }
  if (name === "RegionDisabledException") {
    return new StarlingError(
      `role ${arn} cannot be assumed: STS is not active in ${region}, where Starling is, for account ${accountOf(arn)}; activate the region in the IAM settings of that account`,
      { code: "RegionDisabled", retry: "transient", data, cause: error },
    );
  }
  if (name === "PackedPolicyTooLarge" || name === "PackedPolicyTooLargeException") {
    return new StarlingError(
      `role ${arn} cannot be assumed: the session tags that are passed on to it are too large; pass on fewer`,
      { code: "TokenTooLarge", retry: "permanent", data, cause: error },
    );
  }
  return new StarlingError(`role ${arn} was not assumed: STS in ${region} says ${errorMessage(error)}`, {
    code: "StsUnavailable",
    retry: "transient",
    data,
    cause: error,
  });
}
