import { ByteCollector } from "#shared/adapters/byte-collector.ts";
import { fewerRefs, type GitLimits, gitTooLarge, malformedGitAnswer } from "#shared/adapters/git/git-limits.ts";
import { type GitHttpMessage, type GitHttpStream, GitTransport } from "#shared/adapters/git/git-transport.ts";
import { PacketReader, packetLine } from "#shared/adapters/git/packet-reader.ts";
import type { AddressRules } from "#shared/adapters/net/address-rules.ts";
import { openSsh, type SshConnection, type SshStream } from "#shared/adapters/ssh/ssh-connection.ts";
import { StarlingError } from "#shared/base/errors.ts";
import { excerpt } from "#shared/base/excerpt.ts";
import type { GitRepository } from "#shared/ports.ts";
import { type SshAddress, sshAddress, sshHost } from "#shared/source/ssh/ssh-url.ts";

export interface GitSshOptions {
  readonly rules: AddressRules;
  /** For the whole operation, with the connection. */
  readonly timeoutSeconds: number;
  readonly limits: Pick<GitLimits, "maxListingBytes" | "maxRefs">;
}

const serviceLine = Buffer.from(`${packetLine("# service=git-upload-pack\n")}0000`);
/** A server's text can be endless. */
const maxServerText = 300;

/** An `upload-pack` on the server that has listed what it has, and waits for a request. */
interface Waiting {
  readonly stream: SshStream;
  readonly pieces: AsyncIterator<Buffer>;
  readonly advert: Buffer;
}

/**
 * The SSH of one git operation, in the form of HTTP: the first request starts `upload-pack` and answers what it tells,
 * the second one writes to it.
 */
export class GitSsh extends GitTransport {
  readonly url: string;
  readonly #shown: string;
  readonly #address: SshAddress;
  readonly #credentials: GitRepository["credentials"];
  readonly #options: GitSshOptions;
  readonly #signal: AbortSignal;
  #connection: Promise<SshConnection> | undefined;
  #waiting: Waiting | undefined;

  constructor(
    { url, credentials }: Pick<GitRepository, "url"> & { credentials: GitRepository["credentials"] },
    options: GitSshOptions,
  ) {
    super(options.limits);
    const address = sshAddress(url);
    if (address === undefined) throw new Error(`${url} passed the checks of a Source and is no address of SSH`);
    this.url = `https://${sshHost(address)}/repository`;
    this.#shown = url;
    this.#address = address;
    this.#credentials = credentials;
    this.#options = options;
    this.#signal = AbortSignal.timeout(Math.ceil(options.timeoutSeconds * 1000));
  }

  async send({ url, method, body = Buffer.alloc(0) }: GitHttpMessage): Promise<GitHttpStream> {
    const waiting =
      this.#waiting ?? (await this.#inTime(() => this.#start(), { silentHost: new URL(this.#shown).host }));
    const answer = { url, statusCode: 200, statusMessage: "OK", discard: () => waiting.stream.close() };
    if (method === "GET") {
      this.#waiting = waiting;
      const headers = { "content-type": "application/x-git-upload-pack-advertisement" };
      return { ...answer, headers, chunks: () => pieces(serviceLine, waiting.advert) };
    }
    this.#waiting = undefined;
    waiting.stream.write(body);
    waiting.stream.end();
    return { ...answer, headers: {}, chunks: () => this.#rest(waiting) };
  }

  close(): void {
    // The connection that is still being made ends with its own error or the operation's time.
    this.#connection?.then(
      (connection) => connection.close(),
      () => undefined,
    );
  }

  async #start(): Promise<Waiting> {
    this.#connection ??= openSsh(this.#address, {
      credentials: this.#credentials,
      signal: this.#signal,
      url: this.#shown,
      rules: this.#options.rules,
    });
    const connection = await this.#connection;
    const { path } = this.#address;
    const stream = await connection.run(`git-upload-pack '${path.replaceAll("'", "'\\''")}'`, {
      GIT_PROTOCOL: "version=2",
    });
    const iterator = stream.chunks()[Symbol.asyncIterator]();
    const { maxListingBytes } = this.#options.limits;
    const advert = new ByteCollector(maxListingBytes);
    const packets = new PacketReader();
    for (;;) {
      const { value, done } = await iterator.next();
      if (done === true) throw this.#ended(stream);
      if (!advert.add(value))
        throw gitTooLarge(`the git server lists more than ${maxListingBytes} bytes of references`, fewerRefs);
      for (const packet of packets.read(value)) {
        if (packet === "flush") return { stream, pieces: iterator, advert: advert.bytes() };
      }
    }
  }

  async *#rest({ pieces }: Waiting): AsyncIterable<Buffer> {
    for (;;) {
      const { value, done } = await this.#inTime(() => pieces.next());
      if (done === true) return;
      yield value;
    }
  }

  async #inTime<Result>(work: () => Promise<Result>, data: Readonly<Record<string, unknown>> = {}): Promise<Result> {
    try {
      return await work();
    } catch (error) {
      if (!this.#signal.aborted) throw error;
      const message = `the git server did not answer within ${Math.round(this.#options.timeoutSeconds)} s`;
      throw new StarlingError(message, { code: "GitOperationFailed", retry: "transient", data });
    }
  }

  /** The command ended before it listed anything. Forges say why on its second output. */
  #ended(stream: SshStream): StarlingError {
    const said = excerpt(stream.errors().trim().replaceAll(/\s+/g, " "), maxServerText);
    if (!absence.test(said))
      return malformedGitAnswer(
        `${this.#shown}: the git server ends without an answer${said === "" ? "" : `: ${said}`}`,
      );
    const remedy = "check spec.git.url, and whether the key of spec.git.credentials may read it";
    return new StarlingError(`${this.#shown} was not found (${said}): ${remedy}`, {
      code: "GitNotFound",
      retry: "permanent",
    });
  }
}

const absence =
  /not found|not appear to be a git repository|could not be found|not exist|denied|permission|not authorized|not allowed/i;

async function* pieces(...parts: readonly Buffer[]): AsyncIterable<Buffer> {
  yield* parts;
}
