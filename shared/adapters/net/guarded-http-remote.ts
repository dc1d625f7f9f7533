import type { IncomingMessage } from "node:http";
import { ByteCollector } from "#shared/adapters/byte-collector.ts";
import type { AddressRules } from "#shared/adapters/net/address-rules.ts";
import { authorization, mayGoTo, tlsOf } from "#shared/adapters/net/authorization.ts";
import { certificateHint, isCertificateRefused } from "#shared/adapters/net/certificate-hint.ts";
import { flatHeaders, guardedRequest } from "#shared/adapters/net/guarded-request.ts";
import { refuseLimited } from "#shared/adapters/net/refuse-limited.ts";
import { secondsLeft } from "#shared/adapters/net/seconds-left.ts";
import { defined } from "#shared/base/defined.ts";
import { errorMessage, StarlingError, type StarlingErrorOptions } from "#shared/base/errors.ts";
import { excerpt } from "#shared/base/excerpt.ts";
import type { HttpRemote, RemoteAnswer, RemoteQuestion } from "#shared/ports.ts";

export interface GuardedHttpRemoteOptions {
  readonly rules: AddressRules;
  readonly ca?: string;
  /** For one question with all its redirects. */
  readonly timeoutSeconds?: number;
}

const maxRedirects = 5;
/** A server's text can be as long as its headers. */
const maxReason = 300;

/**
 * HTTP to the hosts that Sources name. Every address is checked, also that of a redirect; a header of the caller goes to
 * the first origin only, because servers of files redirect to a storage of somebody else.
 */
export class GuardedHttpRemote implements HttpRemote {
  readonly #options: Required<Pick<GuardedHttpRemoteOptions, "timeoutSeconds">> & GuardedHttpRemoteOptions;

  constructor(options: GuardedHttpRemoteOptions) {
    this.#options = { timeoutSeconds: 60, ...options };
  }

  async ask(question: RemoteQuestion): Promise<RemoteAnswer> {
    const seconds = secondsLeft(this.#options.timeoutSeconds, question.timeLeftMs);
    const signal = AbortSignal.timeout(Math.ceil(seconds * 1000));
    const asking: { silentHost?: string } = {};
    try {
      const { response, url } = await this.#follow(question, { signal, asking });
      const body = await read(response, question);
      return { url: url.href, status: response.statusCode ?? 0, headers: flatHeaders(response), body };
    } catch (error) {
      if (error instanceof StarlingError) throw error;
      if (isCertificateRefused(error)) throw certificateRefused(question.url, error);
      if (!signal.aborted) throw failed(question.url, reasonOf(error), { cause: error });
      throw failed(question.url, `no answer within ${Math.round(seconds)} s`, { cause: error, data: asking });
    }
  }

  /** @param options.asking - gets the host that is asked, until it answers. */
  async #follow(
    question: RemoteQuestion,
    { signal, asking }: { readonly signal: AbortSignal; readonly asking: { silentHost?: string } },
  ): Promise<{ response: IncomingMessage; url: URL }> {
    const { rules, ca } = this.#options;
    const { method = "GET", headers = {}, credentials, body } = question;
    const first = new URL(question.url);
    for (let url = first, hops = 0; ; hops++) {
      const isOwn = url.origin === first.origin;
      const own = isOwn ? headers : defined({ accept: headers.accept });
      const login = isOwn && mayGoTo(credentials, url) ? credentials : undefined;
      asking.silentHost = url.host;
      const response = await guardedRequest(
        {
          url,
          method,
          headers: { "user-agent": "starling", ...own, ...authorization(login) },
          ...defined({ body: body === undefined ? undefined : Buffer.from(body) }),
        },
        { rules, signal, ...defined({ ca, tls: tlsOf(login) }) },
      );
      delete asking.silentHost;
      refuseLimited(url.host, response);
      const { location } = response.headers;
      const status = response.statusCode ?? 0;
      if (location === undefined || ![301, 302, 303, 307, 308].includes(status)) return { response, url };
      response.destroy();
      if (question.redirects === "refused") throw failed(question.url, "a redirect, which is not followed here");
      if (hops >= maxRedirects) throw failed(question.url, `more than ${maxRedirects} redirects`);
      const next = URL.canParse(location, url.href) ? new URL(location, url) : undefined;
      if (next === undefined || !isAsSafe(url, next)) {
        throw failed(
          question.url,
          `a redirect from ${url.origin} to ${excerpt(location, maxReason)}, which is not fetched`,
        );
      }
      url = next;
    }
  }
}

/** A redirect never leaves TLS, and leads to HTTP only. */
function isAsSafe(from: URL, to: URL): boolean {
  return to.protocol === "https:" || (to.protocol === "http:" && from.protocol === "http:");
}

async function read(response: IncomingMessage, { url, maxBytes }: RemoteQuestion): Promise<Uint8Array> {
  const body = new ByteCollector(maxBytes);
  for await (const chunk of response as AsyncIterable<Buffer>) {
    if (body.add(chunk)) continue;
    response.destroy();
    const message = `${url} answers with more than ${maxBytes} bytes`;
    throw new StarlingError(message, { code: "UpstreamTooLarge", retry: "permanent" });
  }
  return body.bytes();
}

function reasonOf(error: unknown): string {
  return `${excerpt(errorMessage(error), maxReason)}${certificateHint(error)}`;
}

function certificateRefused(url: string, cause: unknown): StarlingError {
  const message = `${new URL(url).host} refuses the client's certificate, or none: ${reasonOf(cause)}; renew "certificate" in the secret, or use kind: tls`;
  return new StarlingError(message, { code: "AuthenticationFailed", retry: "permanent", cause });
}

function failed(url: string, reason: string, more: Pick<StarlingErrorOptions, "cause" | "data"> = {}): StarlingError {
  const { origin, pathname } = new URL(url);
  const message = `${origin}${pathname} could not be fetched: ${reason}`;
  return new StarlingError(message, { code: "UpstreamUnavailable", retry: "transient", ...more });
}
