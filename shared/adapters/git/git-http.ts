import type { IncomingMessage } from "node:http";
import type { GitLimits } from "#shared/adapters/git/git-limits.ts";
import { type GitHttpMessage, type GitHttpStream, GitTransport } from "#shared/adapters/git/git-transport.ts";
import type { AddressRules } from "#shared/adapters/net/address-rules.ts";
import { flatHeaders, guardedRequest } from "#shared/adapters/net/guarded-request.ts";
import { refuseLimited } from "#shared/adapters/net/refuse-limited.ts";
import { defined } from "#shared/base/defined.ts";
import { StarlingError } from "#shared/base/errors.ts";
import type { TlsIdentity } from "#shared/ports.ts";
import { isBelowPrefix } from "#shared/source/url-prefix.ts";

export interface GitHttpOptions {
  readonly rules: AddressRules;
  /** Credentials in the requests go to addresses below it only. */
  readonly prefix?: string;
  readonly tls?: TlsIdentity;
  /** PEM certificates to trust in addition to the machine's. */
  readonly ca?: string;
  /** For the whole operation, with all its requests. */
  readonly timeoutSeconds: number;
  /** Limits of an answer that is read as a whole, such as a listing. */
  readonly limits: Pick<GitLimits, "maxListingBytes" | "maxRefs">;
}

const maxRedirects = 3;
/** The end of an address that lists references. */
const listing = "/info/refs";

/**
 * The HTTP of one git operation. isomorphic-git's own plugin follows any redirect and has no limits. This one checks
 * every address, keeps redirects on the same origin, and limits time and size.
 */
export class GitHttp extends GitTransport {
  readonly url: string;
  readonly #options: GitHttpOptions;
  readonly #signal: AbortSignal;
  /** The new path of a renamed repository on its host. Later requests use it at once. */
  #moved: { readonly from: string; readonly to: string } | undefined;

  constructor(url: string, options: GitHttpOptions) {
    super(options.limits);
    this.url = url;
    this.#options = options;
    this.#signal = AbortSignal.timeout(Math.ceil(options.timeoutSeconds * 1000));
  }

  async send(message: GitHttpMessage): Promise<GitHttpStream> {
    let target = this.#follow(message.url);
    for (let hops = 0; ; hops++) {
      const response = await this.#send(target, message);
      const status = response.statusCode ?? 0;
      const location = response.headers.location;
      if (status < 300 || status > 399 || status === 304 || location === undefined) {
        refuseLimited(target.host, response);
        return this.#streamOf(response, target);
      }
      response.destroy();
      const next = new URL(location, target);
      if (next.origin !== target.origin) {
        throw failure(`${target.origin} redirects to ${next.origin}; if that is right, write that URL in spec.git.url`);
      }
      const { prefix } = this.#options;
      if (prefix !== undefined && !isBelowPrefix(repositoryOf(next), prefix)) {
        throw failure(`${target.origin} redirects out of the "prefix" of the secret; correct it, or spec.git.url`);
      }
      if (hops >= maxRedirects) throw failure(`${target.origin} redirects in a cycle; correct spec.git.url`);
      this.#remember(new URL(message.url), next);
      target = next;
    }
  }

  /** Each request has its own connection. */
  close(): void {}

  #follow(url: string): URL {
    const moved = this.#moved;
    return new URL(moved !== undefined && url.startsWith(moved.from) ? moved.to + url.slice(moved.from.length) : url);
  }

  #remember(from: URL, to: URL): void {
    if (!from.pathname.endsWith(listing) || !to.pathname.endsWith(listing)) return;
    this.#moved = { from: repositoryOf(from), to: repositoryOf(to) };
  }

  async #send(url: URL, { method, headers, body }: GitHttpMessage): Promise<IncomingMessage> {
    const { rules, ca, tls } = this.#options;
    try {
      return await guardedRequest(
        { url, method, headers: { ...headers, "user-agent": "git/starling" }, ...defined({ body }) },
        { rules, signal: this.#signal, ...defined({ ca, tls }) },
      );
    } catch (error) {
      throw this.#signal.aborted ? this.#tookTooLong({ silentHost: url.host }) : error;
    }
  }

  #streamOf(response: IncomingMessage, url: URL): GitHttpStream {
    const signal = this.#signal;
    const tookTooLong = () => this.#tookTooLong();
    return {
      url: url.href,
      statusCode: response.statusCode ?? 0,
      statusMessage: response.statusMessage ?? "",
      headers: flatHeaders(response),
      async *chunks() {
        try {
          yield* response as AsyncIterable<Buffer>;
        } catch (error) {
          throw signal.aborted ? tookTooLong() : error;
        }
      },
      discard: () => void response.destroy(),
    };
  }

  #tookTooLong(data?: { readonly silentHost: string }): StarlingError {
    return failure(`the git server did not answer within ${Math.round(this.#options.timeoutSeconds)} s`, data);
  }
}

/** The address of the repository in that of one of its services. */
function repositoryOf({ origin, pathname }: URL): string {
  return origin + pathname.replace(/\/(?:info\/refs|git-upload-pack)$/, "");
}

function failure(message: string, data?: { readonly silentHost: string }): StarlingError {
  return new StarlingError(message, { code: "GitOperationFailed", retry: "transient", ...defined({ data }) });
}
