import type { IncomingMessage, ServerResponse } from "node:http";
import { pipeline } from "node:stream/promises";
import { setImmediate } from "node:timers/promises";
import { spawnGit } from "#local/git/git-command.ts";

export interface HttpBackendRequest {
  /** The folder that contains the repositories. */
  readonly root: string;
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** Breaks the connection in the middle of the answer. */
  readonly breaksOff?: boolean;
}

const headerEnd = Buffer.from("\r\n\r\n");
const maxHeaderBytes = 16_384;

/**
 * Answers one request with `git http-backend`, a CGI program (RFC 3875). Resolves when the answer is sent. @throws
 * Error when the answer is incomplete.
 */
export async function serveHttpBackend(exchange: HttpBackendRequest): Promise<void> {
  const { root, request, response, breaksOff = false } = exchange;
  const { pathname, search } = new URL(request.url ?? "/", "http://127.0.0.1");
  const child = spawnGit(["http-backend"], {
    GIT_PROJECT_ROOT: root,
    GIT_HTTP_EXPORT_ALL: "1",
    REQUEST_METHOD: request.method ?? "GET",
    PATH_INFO: decodeURIComponent(pathname),
    QUERY_STRING: search.slice(1),
    CONTENT_TYPE: request.headers["content-type"] ?? "",
    HTTP_CONTENT_ENCODING: request.headers["content-encoding"] ?? "",
    GIT_PROTOCOL: String(request.headers["git-protocol"] ?? ""),
    REMOTE_ADDR: "127.0.0.1",
  });
  child.stderr.resume();
  response.on("close", () => child.kill());
  const feeding = pipeline(request, child.stdin).catch(() => {
    // git closes its input early when it refuses a request; the answer contains the reason.
  });
  await pipeline(
    child.stdout,
    (chunks: AsyncIterable<Buffer>) => {
      const body = answerBody(chunks, response);
      return breaksOff ? brokenOff(body) : body;
    },
    response,
  );
  await feeding;
}

/** Sets the status and headers from the lines before the empty line, and yields the rest. */
async function* answerBody(chunks: AsyncIterable<Buffer>, response: ServerResponse): AsyncIterable<Buffer> {
  let head: Buffer | undefined = Buffer.alloc(0);
  for await (const chunk of chunks) {
    if (head === undefined) {
      yield chunk;
      continue;
    }
    head = Buffer.concat([head, chunk]);
    const end = head.indexOf(headerEnd);
    if (end < 0 && head.length > maxHeaderBytes) throw new Error("git http-backend sent no end of headers");
    if (end < 0) continue;
    writeHead(head.subarray(0, end).toString("latin1"), response);
    yield head.subarray(end + headerEnd.length);
    head = undefined;
  }
  if (head !== undefined) throw new Error("git http-backend ended before its headers did");
}

/** Yields the first half of the first chunk, so that some bytes reach the client. */
async function* brokenOff(body: AsyncIterable<Buffer>): AsyncIterable<Buffer> {
  for await (const chunk of body) {
    yield chunk.subarray(0, Math.ceil(chunk.length / 2));
    await setImmediate();
    throw new Error("The answer is broken off, as was asked");
  }
}

function writeHead(head: string, response: ServerResponse): void {
  response.statusCode = 200;
  for (const line of head.split("\r\n")) {
    const colon = line.indexOf(":");
    const name = line.slice(0, colon);
    const value = line.slice(colon + 1).trim();
    if (name.toLowerCase() === "status") response.statusCode = Number.parseInt(value, 10);
    else response.setHeader(name, value);
  }
}
