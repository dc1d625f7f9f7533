/** A git server that waits, or runs an action, before it answers a fetch. */
import type { IncomingMessage } from "node:http";
import { createServer } from "node:https";
import { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { listenOnLoopback } from "#local/base/loopback-server.ts";
import type { TlsCertificate } from "#local/base/tls-certificate.ts";
import { serveHttpBackend } from "#local/git/http-backend.ts";

export interface GatedGit {
  url(repository: string): string;
  /** The number of requested fetches, answered or not. */
  fetches(): number;
  listings(): number;
  /** Sets the action before the answer of each fetch. Fetches are numbered from 1. */
  beforeFetch(act: (fetch: number) => void | Promise<void>): void;
  stop(): Promise<void>;
}

/** @param root - the folder of bare repositories. */
export async function startGatedGit(root: string, tls: TlsCertificate): Promise<GatedGit> {
  let fetches = 0;
  let listings = 0;
  let gate: (fetch: number) => void | Promise<void> = () => {};
  const server = createServer(tls, async (request, response) => {
    const body = await buffer(request);
    const { url, method, headers } = request;
    if (body.includes("command=fetch")) {
      fetches += 1;
      await gate(fetches);
    } else if (body.includes("command=ls-refs")) listings += 1;
    const again = Object.assign(Readable.from([body]), { url, method, headers }) as unknown as IncomingMessage;
    await serveHttpBackend({ root, request: again, response }).catch(() => response.destroy());
  });
  const { origin, stop } = await listenOnLoopback(server);
  return {
    url: (repository) => `${origin}/${repository}.git`,
    fetches: () => fetches,
    listings: () => listings,
    beforeFetch(act) {
      gate = act;
    },
    stop,
  };
}
