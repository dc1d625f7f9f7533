import {
  DecryptionFailure,
  GetSecretValueCommand,
  ResourceNotFoundException,
  type SecretsManagerClient,
  SecretsManagerServiceException,
} from "@aws-sdk/client-secrets-manager";
import type { Clock } from "#shared/base/clock.ts";
import { StarlingError } from "#shared/base/errors.ts";
import type { SecretReader } from "#shared/ports.ts";

/** A changed secret is seen after this long at the latest. */
const CACHE_SECONDS = 300;

interface CachedSecret {
  readonly value: string;
  readonly until: number;
}

/** What an error says to do. */
export interface SecretAdvice {
  /** What the names of the secrets start with that may be read; absent where it is one alone. */
  readonly prefix?: string;
}

/** Secrets Manager with a short memory; only values that were read successfully are remembered. */
export class SecretsManagerReader implements SecretReader {
  readonly #client: SecretsManagerClient;
  readonly #clock: Clock;
  readonly #prefix: string | undefined;
  readonly #cache = new Map<string, CachedSecret>();

  constructor(client: SecretsManagerClient, clock: Clock, advice: SecretAdvice = {}) {
    this.#client = client;
    this.#clock = clock;
    this.#prefix = advice.prefix;
  }

  async read(name: string, options: { readonly fresh?: boolean } = {}): Promise<string> {
    const now = this.#clock.now().getTime();
    const cached = options.fresh === true ? undefined : this.#cache.get(name);
    if (cached !== undefined && cached.until > now) return cached.value;
    const value = await this.#fetch(name);
    this.#cache.set(name, { value, until: now + CACHE_SECONDS * 1000 });
    return value;
  }

  async #fetch(name: string): Promise<string> {
    try {
      const answer = await this.#client.send(new GetSecretValueCommand({ SecretId: name }));
      if (answer.SecretString !== undefined) return answer.SecretString;
    } catch (error) {
      if (isOfTheKey(error)) throw keyDenied(name, error);
      if (isDenied(error)) throw denied(name, { prefix: this.#prefix, cause: error });
      if (!(error instanceof ResourceNotFoundException)) throw error;
    }
    throw new StarlingError(`secret ${name} does not exist or holds no text; create it, or name another one`, {
      code: "SecretNotFound",
      retry: "transient",
      data: { name },
    });
  }
}

function isDenied(error: unknown): error is SecretsManagerServiceException {
  return error instanceof SecretsManagerServiceException && error.name === "AccessDeniedException";
}

/** Secrets Manager says "Access to KMS is not allowed" where the secret may be read and the key of it may not be used. */
function isOfTheKey(error: unknown): boolean {
  return error instanceof DecryptionFailure || (isDenied(error) && /\bKMS\b/.test(error.message));
}

function keyDenied(name: string, cause: unknown): StarlingError {
  return new StarlingError(
    `secret ${name} is encrypted under a KMS key that Starling's role may not use, or that is disabled or deleted: allow ` +
      "the role kms:Decrypt in the policy of the key (docs/security.md, Keys of your own), enable the key, or encrypt the " +
      "secret under aws/secretsmanager",
    { code: "SecretKeyDenied", retry: "transient", data: { name }, cause },
  );
}

function denied(
  name: string,
  { prefix, cause }: { readonly prefix: string | undefined; readonly cause: unknown },
): StarlingError {
  const allowed =
    prefix === undefined ? "" : ` only secrets whose name starts with ${prefix} may be; name one of those, or`;
  return new StarlingError(
    `secret ${name} may not be read:${allowed} look for a Deny in its resource policy and in those of the organisation`,
    { code: "SecretDenied", retry: "permanent", data: { name }, cause },
  );
}
