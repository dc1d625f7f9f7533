/** The way of one git operation to a server. Git's protocol is the same over HTTP and SSH. */
import type { GitHttpRequest, GitHttpResponse, HttpClient } from "isomorphic-git";
import { ByteCollector } from "#shared/adapters/byte-collector.ts";
import { fewerRefs, type GitLimits, gitTooLarge } from "#shared/adapters/git/git-limits.ts";
import { PacketReader } from "#shared/adapters/git/packet-reader.ts";

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

type ListingLimits = Pick<GitLimits, "maxListingBytes" | "maxRefs">;

/** A client of isomorphic-git that also answers in pieces. */
export abstract class GitTransport implements HttpClient {
  readonly #limits: ListingLimits;

  constructor(limits: ListingLimits) {
    this.#limits = limits;
  }

  /** The URL of the repository in the requests. isomorphic-git takes only HTTP. */
  abstract readonly url: string;

  abstract send(message: GitHttpMessage): Promise<GitHttpStream>;

  /** Ends a connection that outlives its requests. */
  abstract close(): void;

  async request({ url, method = "GET", headers = {}, body }: GitHttpRequest): Promise<GitHttpResponse> {
    const content = body === undefined ? undefined : await concat(body);
    const response = await this.send({ url, method, headers, body: content });
    return {
      url: response.url,
      method,
      statusCode: response.statusCode,
      statusMessage: response.statusMessage,
      headers: response.headers,
      body: once(await readListing(response.chunks(), this.#limits)),
    };
  }
}

/** Lines of a listing that are not references, such as capabilities and ends. */
const otherLines = 100;

async function readListing(
  chunks: AsyncIterable<Buffer>,
  { maxListingBytes, maxRefs }: ListingLimits,
): Promise<Buffer> {
  const body = new ByteCollector(maxListingBytes);
  for await (const chunk of chunks) {
    if (body.add(chunk)) continue;
    throw gitTooLarge(`the git server lists more than ${maxListingBytes} bytes of references`, fewerRefs);
  }
  if (hasMoreLines(body.bytes(), 2 * maxRefs + otherLines)) {
    throw gitTooLarge(`the git server lists more than ${maxRefs} references`, fewerRefs);
  }
  return body.bytes();
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

async function concat(body: AsyncIterable<Uint8Array> | Iterable<Uint8Array>): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of body) chunks.push(chunk);
  return Buffer.concat(chunks);
}

async function* once(body: Buffer): AsyncIterableIterator<Uint8Array> {
  yield body;
}
