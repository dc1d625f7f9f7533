import { ApiAnswer, openApiSession } from "#local/machine/api-session.ts";
import type { Machine } from "#local/machine/machine.ts";
import { defined } from "#shared/base/defined.ts";
import { queryString } from "#shared/base/percent-encoding.ts";
import { type Ask, Refusal } from "#shared/pages/ask.ts";
import { type PageServer, servePages } from "#shared/pages/serve-pages.ts";

/**
 * The pages of this machine. They call the API with the machine's key. @param onFault - receives one line per page that
 * failed.
 */
export function serveMachinePages(
  api: Machine["api"],
  onFault = (line: string) => void process.stderr.write(`pages: ${line}\n`),
): Promise<PageServer> {
  const session = openApiSession(api);
  const ask: Ask = async <T>(path: string, query: Parameters<Ask>[1] = {}) => {
    const text = queryString(query);
    try {
      return await session.call<T>("GET", text === "" ? path : `${path}?${text}`);
    } catch (error) {
      throw error instanceof ApiAnswer ? refusalOf(error) : error;
    }
  };
  return servePages({ ask, clock: { now: () => new Date() }, where: "local", port: 0, onFault });
}

function refusalOf({ status, message, text, correlationId }: ApiAnswer): Refusal {
  const error = errorIn(text);
  return new Refusal(status, error.message ?? message, defined({ code: error.code, correlationId }));
}

/** Ignores text that is not an error of the API itself. */
function errorIn(text: string): { readonly code?: string; readonly message?: string } {
  try {
    const { code, message } = JSON.parse(text) as Record<string, unknown>;
    return typeof code === "string" && typeof message === "string" ? { code, message } : {};
  } catch {
    return {};
  }
}
