import {
  DecryptionFailure,
  GetSecretValueCommand,
  ResourceNotFoundException,
  type SecretsManagerClient,
  SecretsManagerServiceException,
} from "@aws-sdk/client-secrets-manager";
import { LRUCache } from "lru-cache";
import { expiringAfter } from "#shared/adapters/aws/expiring-after.ts";
import { inNewSession } from "#shared/adapters/aws/in-new-session.ts";
import type { Clock } from "#shared/base/clock.ts";
import { errorMessage, StarlingError } from "#shared/base/errors.ts";
import type { SecretReader } from "#shared/ports.ts";

/** A changed secret is seen after this time at the latest. */
const keptMs = 300_000;
/** Short enough for a user who waits after a repair. */
const failureKeptMs = 30_000;
/** More than one process has clusters. */
const mostKept = 10_000;

export interface SecretsManagerReaderOptions {
  /** The prefix of the names of readable secrets, for error messages; absent when only one secret is readable. */
  readonly prefix?: string;
}

/** Reads Secrets Manager with a short cache, also of refusals. Only one request for a secret runs at a time. */
export class SecretsManagerReader implements SecretReader {
  readonly #client: SecretsManagerClient;
  readonly #prefix: string | undefined;
  readonly #kept: LRUCache<string, string | Failure>;

  constructor(client: SecretsManagerClient, clock: Clock, { prefix }: SecretsManagerReaderOptions = {}) {
    this.#client = client;
    this.#prefix = prefix;
    this.#kept = new LRUCache({
      max: mostKept,
      ...expiringAfter(keptMs, clock),
      ignoreFetchAbort: true,
      noDeleteOnFetchRejection: true,
      fetchMethod: async (name, _before, { options }) => {
        try {
          return await this.#fetch(name);
        } catch (error) {
          // Without an answer, nothing is known about the secret.
          if (!(error instanceof StarlingError)) throw unanswered(name, error);
          options.ttl = expiringAfter(failureKeptMs, clock).ttl;
          return new Failure(error);
        }
      },
    });
  }

  async read(name: string, { fresh = false }: { readonly fresh?: boolean } = {}): Promise<string> {
    const found = await this.#kept.forceFetch(name, { forceRefresh: fresh });
    if (found instanceof Failure) throw found.error;
    return found;
  }

  async #fetch(name: string): Promise<string> {
    try {
      const get = new GetSecretValueCommand({ SecretId: name });
      const answer = await inNewSession(() => this.#client.send(get));
      if (answer.SecretString !== undefined) return answer.SecretString;
    } catch (error) {
      if (isOfTheKey(error)) throw keyDenied(name, error);
      if (isDenied(error)) throw denied(name, { prefix: this.#prefix, cause: error });
      if (!(error instanceof ResourceNotFoundException)) throw error;
    }
    throw new StarlingError(`secret ${name} does not exist or contains no text; create it, or name another secret`, {
      code: "SecretNotFound",
      retry: "transient",
      data: { name },
    });
  }
}

class Failure {
  readonly error: unknown;

  constructor(error: unknown) {
    this.error = error;
  }
}

function isDenied(error: unknown): error is SecretsManagerServiceException {
  return error instanceof SecretsManagerServiceException && error.name === "AccessDeniedException";
}

/** Secrets Manager says "Access to KMS is not allowed" when the role may read the secret but may not use its key. */
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

function unanswered(name: string, cause: unknown): StarlingError {
  return new StarlingError(`Secrets Manager did not return secret ${name}: ${errorMessage(cause)}`, {
    code: "SecretsUnavailable",
    retry: "transient",
    data: { name },
    cause,
  });
}

function denied(
  name: string,
  { prefix, cause }: { readonly prefix: string | undefined; readonly cause: unknown },
): StarlingError {
  const allowed = prefix === undefined ? "" : ` its name must start with ${prefix}; name another secret, or`;
  return new StarlingError(
    `Starling may not read secret ${name}:${allowed} check its resource policy and the organisation's policies for a Deny`,
    { code: "SecretDenied", retry: "permanent", data: { name }, cause },
  );
}
