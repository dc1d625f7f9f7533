import { setTimeout as sleep } from "node:timers/promises";
import { ApiAnswer, type ApiSession, openApiSession } from "#local/machine/api-session.ts";
import type { Machine } from "#local/machine/machine.ts";

const tries = 10;
const waitMs = 100;

/** People and their programs ask again when the API is unavailable; everything they ask may be asked twice. */
export function openPatientSession(api: Machine["api"]): ApiSession {
  const session = openApiSession(api);
  const call: ApiSession["call"] = async (method, path, body) => {
    for (let attempt = 1; ; attempt++) {
      try {
        return await session.call(method, path, body);
      } catch (error) {
        // A TypeError is what fetch calls a connection that broke: a kept one that the server closed just now.
        const passes = error instanceof TypeError || (error instanceof ApiAnswer && error.status >= 500);
        if (!passes || attempt === tries) throw error;
      }
      await sleep(waitMs * attempt);
    }
  };
  return {
    call,
    async apply(documents) {
      await call("POST", "/v1/apply", { documents, confirm: true });
    },
  };
}
