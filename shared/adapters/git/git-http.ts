import type { IncomingMessage } from "node:http";
import type { GitHttpRequest, GitHttpResponse, HttpClient } from "isomorphic-git";
import { ByteCollector } from "#shared/adapters/byte-collector.ts";
import { fewerRefs, gitTooLarge } from "#shared/adapters/git/git-limits.ts";
import { PacketReader } from "#shared/adapters/git/packet-reader.ts";
import type { AddressRules } from "#shared/adapters/net/address-rules.ts";
import { flatHeaders, guardedRequest } from "#shared/adapters/net/guarded-request.ts";
import { refuseLimited } from "#shared/adapters/net/refuse-limited.ts";
import { defined } from "#shared/base/defined.ts";
import { StarlingError } from "#shared/base/errors.ts";

export interface GitHttpOptions {
  readonly rules: AddressRules;
  /** PEM certificates to trust in addition to the machine's. */
  readonly ca?: string;
  /** For the whole operation, with all its requests. */
  readonly timeoutSeconds: number;
  /** The limit of an answer that is read as a whole, such as a listing. */
  readonly maxListingBytes: number;
  readonly maxRefs: number;
}

export interface GitHttpMessage {
  readonly url: string;
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer | undefined;
}

/** An answer whose body has not been read. The caller must read or discard it. */
export interface GitHttpStream {
  readonly url: string;
  readonly statusCode: number;
  readonly statusMessage: string;
  readonly headers: Record<string, string>;
  /** The body's pieces, within the operation's time. The reader limits their size. */
  chunks(): AsyncIterable<Buffer>;
  discard(): void;
}

const maxRedirects = 3;
/** Lines of a listing that are not references, such as capabilities and ends. */
const otherLines = 100;

/**
 * The HTTP of one git operation. isomorphic-git's own plugin follows any redirect and has no limits. This one checks
 * every address, keeps redirects on the same origin, and limits time and size.
 */
export class GitHttp implements HttpClient {
  readonly #options: GitHttpOptions;
  readonly #signal: AbortSignal;
  /** The new path of a renamed repository on its host. Later requests use it at once. */
  #moved: { readonly from: string; readonly to: string } | undefined;

  constructor(options: GitHttpOptions) {
    this.#options = options;
    this.#signal = AbortSignal.timeout(Math.ceil(options.timeoutSeconds * 1000));
  }

  async request({ url, method = "GET", headers = {}, body }: GitHttpRequest): Promise<GitHttpResponse> {
    const content = body === undefined ? undefined : await concat(body);
    const response = await this.send({ url, method, headers, body: content });
    return {
      url: response.url,
      method,
      statusCode: response.statusCode,
      statusMessage: response.statusMessage,
      headers: response.headers,
      body: once(await this.#read(response)),
    };
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
      if (hops >= maxRedirects) throw failure(`${target.origin} redirects in a cycle; correct spec.git.url`);
      this.#remember(new URL(message.url), next);
      target = next;
    }
  }

  #follow(url: string): URL {
    const moved = this.#moved;
    return new URL(moved !== undefined && url.startsWith(moved.from) ? moved.to + url.slice(moved.from.length) : url);
  }

  #remember(from: URL, to: URL): void {
    const service = "/info/refs";
    if (!from.pathname.endsWith(service) || !to.pathname.endsWith(service)) return;
    const base = (url: URL): string => url.origin + url.pathname.slice(0, -service.length);
    this.#moved = { from: base(from), to: base(to) };
  }

  async #send(url: URL, { method, headers, body }: GitHttpMessage): Promise<IncomingMessage> {
    const { rules, ca } = this.#options;
    try {
      return await guardedRequest(
        { url, method, headers: { ...headers, "user-agent": "git/starling" }, ...defined({ body }) },
        { rules, signal: this.#signal, ...defined({ ca }) },
      );
    } catch (error) {
      throw this.#signal.aborted ? this.#tookTooLong() : error;
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

  async #read(response: GitHttpStream): Promise<Buffer> {
    const { maxListingBytes, maxRefs } = this.#options;
    const body = new ByteCollector(maxListingBytes);
    for await (const chunk of response.chunks()) {
      if (body.add(chunk)) continue;
      throw gitTooLarge(`the git server lists more than ${maxListingBytes} bytes of references`, fewerRefs);
    }
    if (hasMoreLines(body.bytes(), 2 * maxRefs + otherLines)) {
      throw gitTooLarge(`the git server lists more than ${maxRefs} references`, fewerRefs);
    }
    return body.bytes();
  }

  #tookTooLong(): StarlingError {
    return failure(`the git server did not answer within ${Math.round(this.#options.timeoutSeconds)} s`);
  }
}

/**
 * isomorphic-git needs 5 µs for each line of a listing and blocks the process: 16 MB of empty lines are four million
 * lines. A tag has two lines, one for the object that it points to.
 */
function hasMoreLines(body: Buffer, most: number): boolean {
  let lines = 0;
  try {
    for (const _line of new PacketReader().read(body)) {
      lines += 1;
      if (lines > most) return true;
    }
  } catch {
    // The body is not a listing. isomorphic-git reports that better.
  }
  return false;
}

function failure(message: string): StarlingError {
  return new StarlingError(message, { code: "GitOperationFailed", retry: "transient" });
}

async function concat(body: AsyncIterable<Uint8Array> | Iterable<Uint8Array>): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of body) chunks.push(chunk);
  return Buffer.concat(chunks);
}

async function* once(body: Buffer): AsyncIterableIterator<Uint8Array> {
  yield body;
}
