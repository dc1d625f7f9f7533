import type { IncomingMessage } from "node:http";
import { flatHeaders } from "#shared/adapters/net/guarded-request.ts";
import { systemClock } from "#shared/adapters/system.ts";
import { StarlingError } from "#shared/base/errors.ts";
import { limitedUntil } from "#shared/source/request-limit.ts";

/**
 * Ends an answer that says that the host wants no further request now.
 * @throws StarlingError `RateLimited` with `until` and `host`.
 */
export function refuseLimited(host: string, response: IncomingMessage): void {
  const status = response.statusCode ?? 0;
  const until = limitedUntil({ status, headers: flatHeaders(response) }, systemClock.now())?.toISOString();
  if (until === undefined) return;
  response.destroy();
  const message = `${host} allows no more requests (HTTP ${status}) until ${until}; Starling asks again then`;
  throw new StarlingError(message, { code: "RateLimited", retry: "transient", data: { until, host } });
}
