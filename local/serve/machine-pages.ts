import { randomBytes } from "node:crypto";
import { ApiAnswer, openApiSession } from "#local/machine/api-session.ts";
import type { Machine } from "#local/machine/machine.ts";
import { queryString } from "#shared/base/percent-encoding.ts";
import { type Ask, Refusal } from "#shared/pages/ask.ts";
import { type PageServer, servePages } from "#shared/pages/serve-pages.ts";

/** The pages of this machine, asked for with its own key. */
export function serveMachinePages(api: Machine["api"]): Promise<PageServer> {
  const session = openApiSession(api);
  const ask: Ask = async <T>(path: string, query: Parameters<Ask>[1] = {}) => {
    const text = queryString(query);
    try {
      return await session.call<T>("GET", text === "" ? path : `${path}?${text}`);
    } catch (error) {
      throw error instanceof ApiAnswer ? new Refusal(error.status, error.message) : error;
    }
  };
  const word = randomBytes(16).toString("hex");
  return servePages({ ask, clock: { now: () => new Date() }, where: "local", port: 0, word });
}
