import type { IncomingMessage, ServerResponse } from "node:http";

export type Listener = (request: IncomingMessage, response: ServerResponse) => void;

/** With whatever port: a tunnel to this machine begins at another one. */
const here = /^(127\.0\.0\.1|localhost|\[::1\])(:\d{1,5})?$/i;

/**
 * Lets requests through that name this machine and do not come from a web page. A page of any site can make its visitor's
 * browser send requests to ports of this machine, and under a name of its own that leads here (DNS rebinding) also read
 * the answers; browsers say so in `Host`, `Origin` and `Sec-Fetch-Site`, and pages cannot change what they say.
 * @param hosts - further ones that are right, such as those of AWS.
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
    return [403, "Requests of web pages are not answered here"];
  }
  const hosts = request.headersDistinct.host ?? [];
  const [host = ""] = hosts;
  const isKnown = hosts.length === 1 && (here.test(host) || known?.test(host) === true);
  if (!isKnown) return [421, "This is no server of the host that was asked for"];
  // Of a URL in its place, some would see the path and others all of it.
  return request.url?.startsWith("/") === true ? undefined : [400, "The request has to name a path"];
}
