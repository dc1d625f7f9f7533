/** Serves the pages on a local address to a user who has the secret word in the address. */
import { randomBytes, timingSafeEqual } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { Clock } from "#shared/base/clock.ts";
import { errorMessage } from "#shared/base/errors.ts";
import { answerPage } from "#shared/pages/answer-page.ts";
import type { Ask } from "#shared/pages/ask.ts";
import { documentOf, pageHost } from "#shared/pages/html-document.ts";
import { live } from "#shared/pages/live.ts";
import { style } from "#shared/pages/style.ts";

const loopback = "127.0.0.1";

export interface PageOptions {
  readonly ask: Ask;
  readonly clock: Clock;
  /** What the pages show: the name of the context, or the machine. */
  readonly where: string;
  /** Receives a line for each page that could not be rendered. A browser shows only the last one. */
  readonly onFault: (line: string) => void;
  /** 0 selects any free port. */
  readonly port: number;
}

export interface PageServer {
  /** The address, including the secret word. */
  readonly url: string;
  close(): Promise<void>;
}

const headers = {
  "cache-control": "no-store",
  "content-security-policy":
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
};

/** @throws Error when the port is taken. */
export async function servePages(options: PageOptions): Promise<PageServer> {
  // The word is the first segment of every path. Otherwise, other users of this machine could read with the caller's
  // permissions. Unlike a cookie, a browser does not send it to other ports.
  const word = randomBytes(16).toString("hex");
  const server = createServer((request, response) => {
    answer(request, word, options).then(
      (answered) => send(response, answered),
      (error: unknown) => {
        options.onFault(`the page could not be rendered: ${errorMessage(error)}`);
        send(response, { status: 500, type: "text/plain", text: "the page could not be rendered\n" });
      },
    );
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(options.port, loopback, resolve);
  });
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the pages have no port");
  return {
    url: `http://${loopback}:${address.port}/${word}/`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

interface Answer {
  readonly status: number;
  readonly type: string;
  readonly text: string;
}

function send(response: ServerResponse, { status, type, text }: Answer): void {
  response.writeHead(status, { ...headers, "content-type": `${type}; charset=utf-8` });
  response.end(text);
}

async function answer(
  request: IncomingMessage,
  word: string,
  { ask, clock, where, onFault }: PageOptions,
): Promise<Answer> {
  const host = request.headers.host ?? "";
  // A name that another site points to this address is refused (DNS rebinding).
  if (!/^(127\.0\.0\.1|localhost):\d+$/.test(host))
    return plain(421, `open these pages at http://${loopback}, not with another host name\n`);
  if (request.method !== "GET" && request.method !== "HEAD") return plain(405, "these pages only support GET\n");
  const url = URL.parse(`http://${host}${request.url ?? "/"}`);
  if (url === null) return plain(400, "this is not the address of a page\n");
  const [, given = "", ...rest] = url.pathname.split("/");
  if (!isEqual(given, word)) {
    return plain(401, "open the address that the command printed: it contains the secret word for these pages\n");
  }
  const path = `/${rest.join("/")}`;
  if (path === "/style.css") return { status: 200, type: "text/css", text: style };
  if (path === "/live.js") return { status: 200, type: "text/javascript", text: live };
  const base = `/${word}`;
  const now = clock.now();
  const query = Object.fromEntries(url.searchParams);
  const page = await answerPage(ask, { path, query }, pageHost(now, base));
  if (page.fault !== undefined) onFault(page.fault);
  const text =
    request.headers["x-starling-part"] === "main" ? page.main.toString() : documentOf(page, { path, base, where, now });
  return { status: page.status, type: "text/html", text };
}

function plain(status: number, text: string): Answer {
  return { status, type: "text/plain", text };
}

function isEqual(given: string, word: string): boolean {
  const [a, b] = [Buffer.from(given), Buffer.from(word)];
  return a.length === b.length && timingSafeEqual(a, b);
}
