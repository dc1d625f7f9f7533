import {
  GetSecretValueCommand,
  ResourceNotFoundException,
  type SecretsManagerClient,
  SecretsManagerServiceException,
} from "@aws-sdk/client-secrets-manager";
import { StarlingError } from "#shared/errors.ts";
import type { Clock, SecretReader } from "#shared/ports.ts";

/** A changed secret is seen after this long at the latest. */
const CACHE_SECONDS = 300;

interface CachedSecret {
  readonly value: string;
  readonly until: number;
}

/** Secrets Manager with a short memory; only values that were read successfully are remembered. */
export class SecretsManagerReader implements SecretReader {
  readonly #client: SecretsManagerClient;
  readonly #clock: Clock;
  readonly #cache = new Map<string, CachedSecret>();

  constructor(client: SecretsManagerClient, clock: Clock) {
    this.#client = client;
    this.#clock = clock;
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
      if (isDenied(error)) {
        throw new StarlingError(
          `secret ${name} may not be read: Starling's roles reach only secrets below its own prefix; name one of those`,
          { code: "SecretDenied", retry: "permanent", data: { name }, cause: error },
        );
      }
      if (!(error instanceof ResourceNotFoundException)) throw error;
    }
    throw new StarlingError(`secret ${name} does not exist or holds no text; create it, or name another one`, {
      code: "SecretNotFound",
      retry: "transient",
      data: { name },
    });
  }
}

function isDenied(error: unknown): boolean {
  return error instanceof SecretsManagerServiceException && error.name === "AccessDeniedException";
}
