/** The API's reads without the API, for callers that read the rows with their own role. */
import { type ReadPorts, readAnswers } from "#functions/api/http/read-routes.ts";
import { refusalStatus } from "#functions/api/request/refusal.ts";
import { routerOf } from "#functions/api/request/route.ts";
import { tableNow } from "#shared/adapters/table-now.ts";
import { errorCode, StarlingError } from "#shared/base/errors.ts";
import { type Ask, Refusal } from "#shared/pages/ask.ts";

const answerRead = routerOf(readAnswers);

/** Nobody has signed: a read of rows records no principal. */
const nobody = "";

/** @throws Refusal as the API would answer, whatever the ports throw. */
export function readWith(given: ReadPorts): Ask {
  const ports = { ...given, table: tableNow(given.table, given.clock) };
  return async <T>(path: string, query: Parameters<Ask>[1] = {}) => {
    const parts = path.split("/").slice(1).map(decodeURIComponent);
    const given = Object.entries(query).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]]));
    const request = { method: "GET", path: parts, query: Object.fromEntries(given), body: {}, principal: nobody };
    try {
      return (await answerRead(ports, request)) as T;
    } catch (error) {
      const code = errorCode(error);
      const status = refusalStatus(code);
      if (status === undefined || !(error instanceof StarlingError)) throw error;
      throw new Refusal(status, error.message, { code });
    }
  };
}
