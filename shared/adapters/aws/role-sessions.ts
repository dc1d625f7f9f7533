import { AssumeRoleCommand, type Credentials, type STSClient, STSServiceException } from "@aws-sdk/client-sts";
import { LRUCache } from "lru-cache";
import type { SigningCredentials } from "#shared/adapters/aws/eks-token.ts";
import { SharedQuestions } from "#shared/adapters/aws/shared-questions.ts";
import type { Clock } from "#shared/base/clock.ts";
import { defined } from "#shared/base/defined.ts";
import { errorMessage, StarlingError } from "#shared/base/errors.ts";
import { homeZone } from "#shared/fleet/kinds/zone-name.ts";

export interface RoleIdentity {
  readonly arn: string;
  /** The external id of the Cluster, see shared/base/external-id.ts. */
  readonly externalId: string;
}

/** A role; one of Starling's own asks for no external id. */
type AssumedRole = Pick<RoleIdentity, "arn"> & Partial<RoleIdentity>;

/** The identity to use: a role, or without one Starling's own. */
export interface Identity {
  readonly role?: AssumedRole | undefined;
}

export interface SessionCredentials extends SigningCredentials {
  /** The end of the credentials. Those of the function itself end with its sandbox. */
  readonly expiration?: Date;
}

export interface RoleSessionOptions {
  /**
   * Starling's own region, with the function's own credentials. Sessions of a regional endpoint are valid in every
   * region that the role's account has enabled. In other regions Starling's own account may not be enabled.
   */
  readonly sts: STSClient;
  readonly clock: Clock;
  /**
   * For error messages: the function whose role must be trusted, and the settings that say which roles it may assume.
   */
  readonly caller?: { readonly name: string; readonly settings: string };
  /** Shown in the account's CloudTrail: `starling-<installation>`. */
  readonly sessionName: string;
}

interface KeptSession {
  readonly credentials: SessionCredentials & { readonly expiration: Date };
  readonly startedAt: number;
}

/** The longest session that a role may start for another role. Every function has a role. */
const sessionSeconds = 3600;
/**
 * How long before its end a session is replaced. This means one call in about 50 minutes, and a token of the session
 * stays valid until it is used.
 */
const renewalSeconds = 600;
/** No work begins with a session that ends sooner. */
const lastSeconds = 60;
/**
 * A refused session is not replaced sooner. A cluster that refuses every identity would otherwise cost a call each
 * time.
 */
const refusalSeconds = 60;
/** Each has some kilobytes, and every Cluster has its own. */
const mostKept = 1000;

/**
 * Temporary credentials of roles, cached as long as the process lives. For each role and external id, only one
 * AssumeRole runs at a time.
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
   *
   * @param options.refused - credentials that were refused: returns other ones, unless the session is new.
   * @param options.ended - credentials that AWS calls expired: returns other ones.
   * @throws StarlingError `RoleDenied`, `RegionDisabled`, `TokenTooLarge`, `StsUnavailable`
   */
  async credentials(
    identity: Identity,
    options: { readonly refused?: SessionCredentials; readonly ended?: SessionCredentials } = {},
  ): Promise<SessionCredentials> {
    const { role } = identity;
    if (role === undefined) return this.#options.sts.config.credentials();
    const id = JSON.stringify([role.arn, role.externalId]);
    const kept = this.#kept.get(id);
    const now = this.#options.clock.now().getTime();
    const isOver = options.ended?.accessKeyId === kept?.credentials.accessKeyId;
    const usable = kept !== undefined && !isOver && !isRefused(kept, options.refused, now) ? kept : undefined;
    if (usable !== undefined && !endsWithin(renewalSeconds, usable, now)) return usable.credentials;
    try {
      return (await this.#started(id, role)).credentials;
    } catch (error) {
      // While STS does not answer, a session that is still valid for some minutes is used.
      if (usable === undefined || endsWithin(lastSeconds, usable, now)) throw error;
      return usable.credentials;
    }
  }

  #started(id: string, role: AssumedRole): Promise<KeptSession> {
    return this.#questions.ask(id, async () => {
      const session = await this.#start(role);
      this.#kept.set(id, session);
      return session;
    });
  }

  async #start(role: AssumedRole): Promise<KeptSession> {
    const { sts } = this.#options;
    const startedAt = this.#options.clock.now().getTime();
    try {
      const { Credentials: given } = await sts.send(
        new AssumeRoleCommand({
          RoleArn: role.arn,
          RoleSessionName: sessionNameOf(this.#options.sessionName),
          DurationSeconds: sessionSeconds,
          ...defined({ ExternalId: role.externalId }),
        }),
      );
      return { credentials: credentialsIn(given), startedAt };
    } catch (error) {
      throw sessionError(error, { role, region: await sts.config.region() }, this.#options.caller ?? applyFunction);
    }
  }
}

/** @throws Error when the answer contains no credentials. */
function credentialsIn(given: Credentials | undefined): KeptSession["credentials"] {
  const { AccessKeyId, SecretAccessKey, SessionToken, Expiration } = given ?? {};
  if (
    AccessKeyId === undefined ||
    SecretAccessKey === undefined ||
    SessionToken === undefined ||
    Expiration === undefined
  ) {
    throw new Error("the answer contains no credentials");
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

/** The account of a role. */
function accountOf(roleArn: string): string {
  return roleArn.split(":")[4] ?? "";
}

/** STS accepts 2 to 64 of these characters. */
function sessionNameOf(name: string): string {
  return name.replaceAll(/[^\w+=,.@-]/g, "-").slice(0, 64);
}

const applySettings = "context clusterRoles, clusterAccounts and organization";
const applyFunction = { name: "apply function", settings: applySettings };

/** The workers of a zone, whose role is not that of `home`. */
export function callerOfZone(zone: string): NonNullable<RoleSessionOptions["caller"]> {
  return zone === homeZone ? applyFunction : { name: `apply function of zone ${zone}`, settings: applySettings };
}

function sessionError(
  error: unknown,
  { region, role: { arn, externalId } }: { readonly region: string; readonly role: AssumedRole },
  caller: NonNullable<RoleSessionOptions["caller"]>,
): StarlingError {
  const name = error instanceof STSServiceException ? error.name : "";
  const data = { role: arn, region };
  if (name === "AccessDenied" || name === "AccessDeniedException") {
    return new StarlingError(
      `Starling may not assume role ${arn}: let its trust policy allow sts:AssumeRole to the role of Starling's ${caller.name} where sts:ExternalId is ${externalId}, and check that the settings of Starling's stacks (${caller.settings}) allow the role's name and account (${errorMessage(error)})`,
      { code: "RoleDenied", retry: "transient", data, cause: error },
    );
  }
  if (name === "RegionDisabledException") {
    return new StarlingError(
      `Starling cannot assume role ${arn}: STS in Starling's region ${region} is not active for account ${accountOf(arn)}; activate the region in the IAM settings of that account`,
      { code: "RegionDisabled", retry: "transient", data, cause: error },
    );
  }
  if (name === "PackedPolicyTooLarge" || name === "PackedPolicyTooLargeException") {
    return new StarlingError(
      `Starling cannot assume role ${arn}: the session tags passed to it are too large; pass fewer`,
      { code: "TokenTooLarge", retry: "permanent", data, cause: error },
    );
  }
  return new StarlingError(
    `Starling did not get a session of role ${arn}: STS in ${region} answered ${errorMessage(error)}`,
    {
      code: "StsUnavailable",
      retry: "transient",
      data,
      cause: error,
    },
  );
}
