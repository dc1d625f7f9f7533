import { Errors, getRemoteInfo2 } from "isomorphic-git";
import { ByteCollector } from "#shared/adapters/byte-collector.ts";
import { type GitLimits, gitTooLarge, malformedGitAnswer, splitRepository } from "#shared/adapters/git/git-limits.ts";
import type { GitTransport } from "#shared/adapters/git/git-transport.ts";
import { PacketReader, packetLine } from "#shared/adapters/git/packet-reader.ts";
import { StarlingError } from "#shared/base/errors.ts";
import { excerpt } from "#shared/base/excerpt.ts";

export interface PackRequest {
  readonly transport: GitTransport;
  /** For messages. */
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  /** The commit, or an annotated tag of it. */
  readonly oid: string;
  /** `commit`: without its files, if the server supports that. */
  readonly depth: "commit" | "files";
  readonly limits: GitLimits;
}

const flush = "0000";
const delimiter = "0001";
/** The first byte of a sideband packet (gitprotocol-pack). */
const packBand = 1;
const errorBand = 3;
const maxServerText = 300;

/**
 * Fetches the pack of one commit without its history. Its objects are complete, and none is a delta to an object
 * outside of it. It uses protocol v2 if the server supports it, otherwise v0. Files that are larger than the limit of
 * all files together are left out, if the server supports that.
 * @throws StarlingError `GitRefNotFound`, `GitTooLarge`, `GitOperationFailed`; HttpError of isomorphic-git.
 */
export async function fetchPack(request: PackRequest): Promise<Buffer> {
  const { transport, limits } = request;
  const { url } = transport;
  const remote = await getRemoteInfo2({ http: transport, url, headers: { ...request.headers } });
  const isV2 = remote.protocolVersion === 2;
  const response = await transport.send({
    url: `${url}/git-upload-pack`,
    method: "POST",
    headers: {
      ...request.headers,
      "content-type": "application/x-git-upload-pack-request",
      accept: "application/x-git-upload-pack-result",
      ...(isV2 ? { "git-protocol": "version=2" } : {}),
    },
    body: Buffer.from(isV2 ? requestV2(request, remote.capabilities) : requestV0(request, remote.capabilities)),
  });
  const { statusCode, statusMessage } = response;
  if (statusCode !== 200) {
    response.discard();
    throw new Errors.HttpError(statusCode, statusMessage, "");
  }
  const pack = new ByteCollector(limits.maxPackBytes);
  const packets = new PacketReader();
  const isPackNext = isV2 ? isPackSection : isEndOfNegotiation;
  let inPack = false;
  for await (const chunk of response.chunks()) {
    for (const packet of packets.read(chunk)) {
      if (typeof packet === "string") continue;
      if (inPack) collect(packet, { request, pack });
      else inPack = isPackNext(refused(packet, request));
    }
  }
  packets.end();
  return pack.bytes();
}

type Capabilities = Readonly<Record<string, string | true>>;

function requestV2(request: PackRequest, capabilities: Capabilities): string {
  const features = capabilities.fetch;
  const canFilter = typeof features === "string" && features.split(" ").includes("filter");
  return [
    packetLine("command=fetch"),
    ...(capabilities["object-format"] === undefined ? [] : [packetLine("object-format=sha1")]),
    delimiter,
    packetLine("ofs-delta"),
    packetLine("no-progress"),
    packetLine("deepen 1"),
    ...(canFilter ? [packetLine(filterOf(request))] : []),
    packetLine(`want ${request.oid}`),
    packetLine("done"),
    flush,
  ].join("");
}

/**
 * The features that are requested from a server of the old protocol, if it has them. Some servers refuse clients that
 * do not request multi_ack_detailed.
 */
const featuresV0 = ["multi_ack_detailed", "no-done", "side-band-64k", "ofs-delta", "no-progress"];

function requestV0(request: PackRequest, capabilities: Capabilities): string {
  if (capabilities["side-band-64k"] === undefined || capabilities.shallow === undefined) {
    throw malformedGitAnswer("the git server cannot send a single commit (it lacks side-band-64k or shallow)");
  }
  const canFilter = capabilities.filter !== undefined;
  const features = [...featuresV0.filter((name) => capabilities[name] !== undefined), "shallow"];
  return [
    packetLine(`want ${request.oid} ${[...features, ...(canFilter ? ["filter"] : [])].join(" ")}\n`),
    packetLine("deepen 1\n"),
    ...(canFilter ? [packetLine(`${filterOf(request)}\n`)] : []),
    flush,
    packetLine("done\n"),
  ].join("");
}

function filterOf({ depth, limits }: PackRequest): string {
  return depth === "commit" ? "filter tree:0" : `filter blob:limit=${limits.maxContentBytes + 1}`;
}

function isPackSection(line: string): boolean {
  return line === "packfile";
}

function isEndOfNegotiation(line: string): boolean {
  return line === "NAK" || /^ACK [0-9a-f]{40}$/.test(line);
}

/** Returns the line, unless it says why the server sends no pack. */
function refused(packet: Buffer, { url, oid }: PackRequest): string {
  const line = packet.toString("utf8").replace(/\n$/, "");
  if (!line.startsWith("ERR ")) return line;
  const said = excerpt(line.slice("ERR ".length), maxServerText);
  throw new StarlingError(`${url} does not have ${oid}: ${said}; push it, or correct spec.git.ref`, {
    code: "GitRefNotFound",
    retry: "permanent",
  });
}

function collect(packet: Buffer, { request, pack }: { readonly request: PackRequest; readonly pack: ByteCollector }) {
  const [band] = packet;
  if (band === errorBand) {
    throw malformedGitAnswer(`the git server reported an error: ${excerpt(packet.toString("utf8", 1), maxServerText)}`);
  }
  if (band !== packBand || pack.add(packet.subarray(1))) return;
  throw gitTooLarge(
    `the git server sends more than ${request.limits.maxPackBytes} bytes for one commit`,
    splitRepository,
  );
}
