import { Errors, type GetRemoteInfo2Result, getRemoteInfo2 } from "isomorphic-git";
import { ByteCollector } from "#shared/adapters/byte-collector.ts";
import { type GitLimits, gitTooLarge, malformedGitAnswer, splitRepository } from "#shared/adapters/git/git-limits.ts";
import type { GitTransport } from "#shared/adapters/git/git-transport.ts";
import { PacketReader, packetLine } from "#shared/adapters/git/packet-reader.ts";
import { StarlingError } from "#shared/base/errors.ts";
import { excerpt } from "#shared/base/excerpt.ts";

export interface UploadUse {
  readonly transport: GitTransport;
  /** For messages. */
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly limits: GitLimits;
}

/** What a pack has: one commit, or an annotated tag of it, without its history; or these objects alone. */
export type PackContent =
  | {
      readonly commit: string;
      /** `commit` and `trees` leave out what is below, if the server supports that. */
      readonly depth: "commit" | "trees" | "files";
    }
  | { readonly objects: readonly string[] };

const flush = "0000";
const delimiter = "0001";
/** The first byte of a sideband packet (gitprotocol-pack). */
const packBand = 1;
const errorBand = 3;
/** Progress is not asked for, and packets have 5 bytes beside up to 64 KiB of the pack. */
const maxBesideBytes = 16 * 1024 * 1024;
const maxServerText = 300;

/** A git server with what it can do. It uses protocol v2 if the server supports it, otherwise v0. */
export class UploadPack {
  readonly #use: UploadUse;
  readonly #isV2: boolean;
  readonly #capabilities: Capabilities;

  private constructor(use: UploadUse, remote: GetRemoteInfo2Result) {
    this.#use = use;
    this.#isV2 = remote.protocolVersion === 2;
    this.#capabilities = remote.capabilities;
  }

  /** @throws HttpError of isomorphic-git. */
  static async open(use: UploadUse): Promise<UploadPack> {
    const { transport, headers } = use;
    // isomorphic-git writes its own headers into the object.
    const own = { ...headers };
    return new UploadPack(use, await getRemoteInfo2({ http: transport, url: transport.url, headers: own }));
  }

  /** Whether trees come without files, and any object by its id. */
  get isPartial(): boolean {
    return this.#isV2 && canFilter(this.#capabilities.fetch);
  }

  /**
   * Fetches a pack whose objects are complete, and none is a delta to an object outside of it. Files of a commit that are
   * larger than the limit of all files together are left out, if the server supports that.
   * @throws StarlingError `GitRefNotFound`, `GitTooLarge`, `GitOperationFailed`; HttpError of isomorphic-git.
   */
  async fetch(content: PackContent): Promise<Buffer> {
    const { transport, headers, limits } = this.#use;
    const body = this.#isV2
      ? requestV2(content, this.#capabilities, limits)
      : requestV0(content, this.#capabilities, limits);
    const response = await transport.send({
      url: `${transport.url}/git-upload-pack`,
      method: "POST",
      headers: {
        ...headers,
        "content-type": "application/x-git-upload-pack-request",
        accept: "application/x-git-upload-pack-result",
        ...(this.#isV2 ? { "git-protocol": "version=2" } : {}),
      },
      body: Buffer.from(body),
    });
    const { statusCode, statusMessage } = response;
    if (statusCode !== 200) {
      response.discard();
      throw new Errors.HttpError(statusCode, statusMessage, "");
    }
    const pack = new ByteCollector(limits.maxPackBytes);
    const packets = new PacketReader();
    const isPackNext = this.#isV2 ? isPackSection : isEndOfNegotiation;
    let inPack = false;
    let received = 0;
    for await (const chunk of response.chunks()) {
      received += chunk.length;
      if (received - pack.size > maxBesideBytes) {
        const most = `${maxBesideBytes / 1024 / 1024} MiB`;
        throw malformedGitAnswer(`${this.#use.url}: the git server sends more than ${most} beside the pack`);
      }
      for (const packet of packets.read(chunk)) {
        if (typeof packet === "string") continue;
        if (inPack) collect(packet, { limits, pack });
        else inPack = isPackNext(refused(packet, { url: this.#use.url, content }));
      }
    }
    packets.end();
    return pack.bytes();
  }
}

type Capabilities = Readonly<Record<string, string | true>>;

function canFilter(features: string | true | undefined): boolean {
  return typeof features === "string" && features.split(" ").includes("filter");
}

function requestV2(content: PackContent, capabilities: Capabilities, limits: GitLimits): string {
  const ids = "objects" in content ? content.objects : [content.commit];
  return [
    packetLine("command=fetch"),
    ...(capabilities["object-format"] === undefined ? [] : [packetLine("object-format=sha1")]),
    delimiter,
    packetLine("ofs-delta"),
    packetLine("no-progress"),
    ...("objects" in content ? [] : [packetLine("deepen 1")]),
    ...("objects" in content || !canFilter(capabilities.fetch) ? [] : [packetLine(filterOf(content.depth, limits))]),
    ...ids.map((oid) => packetLine(`want ${oid}`)),
    packetLine("done"),
    flush,
  ].join("");
}

/**
 * The features that are requested from a server of the old protocol, if it has them. Some servers refuse clients that
 * do not request multi_ack_detailed.
 */
const featuresV0 = ["multi_ack_detailed", "no-done", "side-band-64k", "ofs-delta", "no-progress"];

function requestV0(content: PackContent, capabilities: Capabilities, limits: GitLimits): string {
  if ("objects" in content) throw new Error("objects are fetched alone with protocol v2 only");
  if (capabilities["side-band-64k"] === undefined || capabilities.shallow === undefined) {
    throw malformedGitAnswer("the git server cannot send a single commit (it lacks side-band-64k or shallow)");
  }
  const filters = capabilities.filter !== undefined;
  const features = [...featuresV0.filter((name) => capabilities[name] !== undefined), "shallow"];
  return [
    packetLine(`want ${content.commit} ${[...features, ...(filters ? ["filter"] : [])].join(" ")}\n`),
    packetLine("deepen 1\n"),
    ...(filters ? [packetLine(`${filterOf(content.depth, limits)}\n`)] : []),
    flush,
    packetLine("done\n"),
  ].join("");
}

function filterOf(depth: "commit" | "trees" | "files", limits: GitLimits): string {
  if (depth === "commit") return "filter tree:0";
  return depth === "trees" ? "filter blob:none" : `filter blob:limit=${limits.maxContentBytes + 1}`;
}

function isPackSection(line: string): boolean {
  return line === "packfile";
}

function isEndOfNegotiation(line: string): boolean {
  return line === "NAK" || /^ACK [0-9a-f]{40}$/.test(line);
}

/** Returns the line, unless it says why the server sends no pack. */
function refused(packet: Buffer, { url, content }: { readonly url: string; readonly content: PackContent }): string {
  const line = packet.toString("utf8").replace(/\n$/, "");
  if (!line.startsWith("ERR ")) return line;
  const said = excerpt(line.slice("ERR ".length), maxServerText);
  const oid = "objects" in content ? `one of ${content.objects.length} objects` : content.commit;
  throw new StarlingError(`${url} does not have ${oid}: ${said}; push it, or correct spec.git.ref`, {
    code: "GitRefNotFound",
    retry: "permanent",
  });
}

function collect(packet: Buffer, { limits, pack }: { readonly limits: GitLimits; readonly pack: ByteCollector }) {
  const [band] = packet;
  if (band === errorBand) {
    throw malformedGitAnswer(`the git server reported an error: ${excerpt(packet.toString("utf8", 1), maxServerText)}`);
  }
  if (band !== packBand || pack.add(packet.subarray(1))) return;
  throw gitTooLarge(`the git server sends more than ${limits.maxPackBytes} bytes for one commit`, splitRepository);
}
