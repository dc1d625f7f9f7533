import { setTimeout as sleep } from "node:timers/promises";
import { ApiAnswer, type ApiSession, openApiSession } from "#local/machine/api-session.ts";
import type { Machine } from "#local/machine/machine.ts";

const tries = 10;
const waitMs = 100;

/**
 * A session that repeats requests when the API is unavailable, like people and their programs. Every request of the API
 * can be repeated safely.
 */
export function openPatientSession(api: Machine["api"]): ApiSession {
  const session = openApiSession(api);
  const call: ApiSession["call"] = async (method, path, body) => {
    for (let attempt = 1; ; attempt++) {
      try {
        return await session.call(method, path, body);
      } catch (error) {
        // fetch throws a TypeError for a broken connection, for example a kept one that the server has just closed.
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
