import { once } from "node:events";
import { ApiFailure } from "#cli/session/api-client.ts";
import { CliFailure, type ExitReason } from "#cli/session/failure.ts";
import type { Session } from "#cli/session/session.ts";
import { defined } from "#shared/base/defined.ts";
import { errorMessage } from "#shared/base/errors.ts";
import { type Ask, Refusal } from "#shared/pages/ask.ts";
import { type PageServer, servePages } from "#shared/pages/serve-pages.ts";

export interface UiOptions {
  readonly port?: number;
}

/** Serves web pages on this machine, with the caller's rights, until it is interrupted. @throws CliFailure when it cannot. */
export async function ui(session: Session, { port = 0 }: UiOptions): Promise<ExitReason> {
  const { io, signal } = session;
  // A caller without the right to read learns it here, not from a page.
  await session.api.call({ method: "GET", path: "/v1/whoami" });
  session.announce();
  const pages = await serve(session, port);
  try {
    io.out(`${pages.url}\n`);
    session.note("the address contains the password of the pages; Ctrl-C stops them");
    if (!signal.aborted) await once(signal, "abort");
  } finally {
    await pages.close();
  }
  return "done";
}

async function serve(session: Session, port: number): Promise<PageServer> {
  const where = `context ${session.contextName()}`;
  try {
    return await servePages({ ask: askWith(session), clock: session.io, where, port, onFault: session.note });
  } catch (error) {
    const next = "starling ui   (without --port: on a free port)";
    throw new CliFailure(`the pages cannot be served on port ${port}: ${errorMessage(error)}`, {
      exit: "unknown",
      next,
    });
  }
}

function askWith({ api }: Session): Ask {
  return async <T>(path: string, query: Parameters<Ask>[1] = {}) => {
    try {
      return await api.call<T>({ method: "GET", path, query });
    } catch (error) {
      if (!(error instanceof ApiFailure)) throw error;
      const { status, message, code, correlationId } = error;
      throw new Refusal(status, message, defined({ code, correlationId }));
    }
  };
}
