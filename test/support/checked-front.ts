import { type IncomingHttpHeaders, request } from "node:http";
import { serveOnLoopback } from "#local/base/loopback-server.ts";

export interface FrontRequest {
  /** Path and query. */
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
}

interface CheckedFrontOptions {
  /** Origin of a server on loopback that is open. */
  readonly target: () => string;
  /** Whether a request reaches the server. The others are answered with 401. */
  readonly isLetIn: (request: FrontRequest) => boolean;
  /** The path at the server, for a path that is asked for. */
  readonly pathOf?: (url: string) => string;
}

/** An HTTP server on loopback that checks who asks, before another one. */
export async function startCheckedFront({ target, isLetIn, pathOf = (url) => url }: CheckedFrontOptions) {
  return serveOnLoopback((incoming, out) => {
    const { method = "GET", headers, url = "/" } = incoming;
    if (!isLetIn({ url, headers })) {
      incoming.resume();
      return void out.writeHead(401).end();
    }
    const onward = request(`${target()}${pathOf(url)}`, { method, headers }, (answer) => {
      out.writeHead(answer.statusCode ?? 500, answer.headers);
      answer.pipe(out);
    });
    onward.on("error", () => out.destroy());
    incoming.pipe(onward);
  });
}
