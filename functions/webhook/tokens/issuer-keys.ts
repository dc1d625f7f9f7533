import { createLocalJWKSet, type LocalJWKSet } from "jose";
import { LRUCache } from "lru-cache";
import * as z from "zod";
import type { Clock } from "#shared/base/clock.ts";
import { otherCode } from "#shared/base/error-codes.ts";
import { StarlingError } from "#shared/base/errors.ts";
import { excerpt } from "#shared/base/excerpt.ts";
import { jsonOf } from "#shared/base/json-of.ts";
import type { HttpRemote } from "#shared/ports.ts";
import { checkHttpUrl } from "#shared/source/http-url.ts";

/** A key that an issuer has withdrawn counts for this long. */
const keptMs = 10 * 60_000;
/** While the issuer does not answer, its last keys count for this long. */
const lastKeptMs = 60 * 60_000;
/** Senders whom nobody knows can make a token of any key, and each would be a question to the issuer. */
const pauseMs = 60_000;
const maxAnswerBytes = 256 * 1024;
const maxKeys = 100;
const maxIssuers = 200;

const discovery = z.object({ issuer: z.string(), jwks_uri: z.string().max(2000) });
const keySet = z.object({ keys: z.array(z.looseObject({ kty: z.string() })).max(maxKeys) });

interface Known {
  askedAt: number;
  readAt: number;
  asking?: Promise<void>;
  keys?: LocalJWKSet;
  failure?: unknown;
}

/** The public keys of issuers of tokens, kept in this process. No issuer is asked twice within a minute, whatever it answers. */
export class IssuerKeys {
  readonly #http: HttpRemote;
  readonly #clock: Clock;
  readonly #known = new LRUCache<string, Known>({ max: maxIssuers });

  constructor({ http, clock }: { readonly http: HttpRemote; readonly clock: Clock }) {
    this.#http = http;
    this.#clock = clock;
  }

  /**
   * @param lacking - keys that this gave before and that lack the desired one: the issuer may have others by now.
   * @throws StarlingError when the issuer does not answer, or does not answer like one.
   */
  async read(issuer: string, lacking?: LocalJWKSet): Promise<LocalJWKSet> {
    const now = this.#clock.now().getTime();
    const known = this.#known.get(issuer) ?? { askedAt: Number.NEGATIVE_INFINITY, readAt: Number.NEGATIVE_INFINITY };
    this.#known.set(issuer, known);
    const isDue = now - known.readAt >= keptMs || known.keys === lacking;
    if (isDue && now - known.askedAt >= pauseMs) {
      known.askedAt = now;
      known.asking = this.#ask(issuer).then(
        (keys) => void Object.assign(known, { keys, readAt: now }),
        (failure: unknown) => void Object.assign(known, { failure }),
      );
    }
    await known.asking;
    if (known.keys !== undefined && now - known.readAt < lastKeptMs) return known.keys;
    throw known.failure;
  }

  async #ask(issuer: string): Promise<LocalJWKSet> {
    const at = `${issuer.replace(/\/$/, "")}/.well-known/openid-configuration`;
    const { issuer: named, jwks_uri: uri } = await this.#read(at, discovery);
    if (named !== issuer) {
      const remedy = "write the issuer as its tokens name it in iss";
      throw invalid(`${at} is of the issuer ${excerpt(named, 200)}, not of ${issuer}; ${remedy}`);
    }
    const problem = checkHttpUrl(uri, undefined);
    if (problem !== undefined || (issuer.startsWith("https:") && !uri.startsWith("https:")))
      throw invalid(`jwks_uri of ${at} ${problem ?? "would be fetched unencrypted"} (got ${excerpt(uri, 200)})`);
    return createLocalJWKSet(await this.#read(uri, keySet));
  }

  async #read<Answer>(url: string, schema: z.ZodType<Answer>): Promise<Answer> {
    const headers = { accept: "application/json" };
    const { status, body } = await this.#http.ask({ url, headers, maxBytes: maxAnswerBytes, redirects: "refused" });
    if (status !== 200) throw invalid(`${url} answers HTTP ${status}`);
    const parsed = schema.safeParse(jsonOf(new TextDecoder().decode(body)));
    if (parsed.success) return parsed.data;
    throw invalid(`${url} does not answer as OpenID Connect says`);
  }
}

function invalid(message: string): StarlingError {
  return new StarlingError(message, { code: otherCode("IssuerInvalid"), retry: "transient" });
}
