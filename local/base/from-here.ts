import type { IncomingMessage, ServerResponse } from "node:http";

export type Listener = (request: IncomingMessage, response: ServerResponse) => void;

/** Any port is accepted, because a tunnel to this machine starts at another port. */
const here = /^(127\.0\.0\.1|localhost|\[::1\])(:\d{1,5})?$/i;

/**
 * Accepts only requests that name this machine and do not come from a web page. A page of any site can make its
 * visitor's browser send requests to ports of this machine. With a domain that resolves to this machine (DNS rebinding)
 * it can also read the answers. Browsers reveal such requests in `Host`, `Origin` and `Sec-Fetch-Site`, and pages
 * cannot change these headers. @param hosts - other accepted hosts, such as those of AWS.
 */
export function onlyFromHere(listener: Listener, hosts?: RegExp): Listener {
  return (request, response) => {
    const refusal = refusalOf(request, hosts);
    if (refusal === undefined) return listener(request, response);
    const [status, text] = refusal;
    response.writeHead(status, { "content-type": "text/plain", connection: "close" }).end(`${text}\n`);
  };
}

function refusalOf(request: IncomingMessage, known: RegExp | undefined): readonly [number, string] | undefined {
  const { origin, "sec-fetch-site": site } = request.headersDistinct;
  if (origin !== undefined || (site !== undefined && site.join() !== "none")) {
    return [403, "Requests from web pages are refused"];
  }
  const hosts = request.headersDistinct.host ?? [];
  const [host = ""] = hosts;
  const isKnown = hosts.length === 1 && (here.test(host) || known?.test(host) === true);
  if (!isKnown) return [421, "This server does not serve the requested host"];
  // Readers would disagree about the path of a complete URL here.
  return request.url?.startsWith("/") === true ? undefined : [400, "The request must name a path"];
}
