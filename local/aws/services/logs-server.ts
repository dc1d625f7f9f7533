import * as z from "zod";
import type { Principals } from "#local/aws/iam/principals.ts";
import { FilterPatternError, parseFilterPattern } from "#local/aws/services/filter-pattern.ts";
import {
  type JsonAnswer,
  type JsonRequest,
  type RunningService,
  startJsonService,
} from "#local/aws/services/json-service.ts";
import type { LogStore } from "#local/aws/services/log-store.ts";
import { defined } from "#shared/base/defined.ts";

export interface LogsServerOptions {
  readonly principals: Pick<Principals, "find">;
  readonly store: LogStore;
  /** The number of lines that one page searches, matching or not. As on CloudWatch, the next page continues there. */
  readonly pageLines?: number;
}

const maxBodyBytes = 64 * 1024;
const target = "Logs_20140328.FilterLogEvents";

const filterRequest = z.strictObject({
  logGroupName: z.string().min(1),
  filterPattern: z.string().max(1024).optional(),
  startTime: z.number().optional(),
  endTime: z.number().optional(),
  nextToken: z.string().regex(/^\d+$/).optional(),
});

class LogsError extends Error {
  readonly code: string;

  constructor(code: string, message: string) {
    super(message);
    this.code = code;
  }
}

/** CloudWatch Logs on 127.0.0.1, reduced to FilterLogEvents. */
export async function startLogs({ principals, store, pageLines = 5000 }: LogsServerOptions): Promise<RunningService> {
  function filterLogEvents(body: Buffer): object {
    const parsed = filterRequest.safeParse(JSON.parse(body.toString()));
    if (!parsed.success) throw new LogsError("InvalidParameterException", z.prettifyError(parsed.error));
    const { logGroupName, filterPattern, startTime = 0, endTime = Number.MAX_SAFE_INTEGER, nextToken } = parsed.data;
    const lines = store.lines(logGroupName);
    if (lines === undefined)
      throw new LogsError("ResourceNotFoundException", "The specified log group does not exist.");
    const matches = filterPattern === undefined ? () => true : jsonMatcher(filterPattern);
    const from = Number(nextToken ?? 0);
    const searched = lines.slice(from, from + pageLines);
    const events = searched.filter(
      ({ timestamp, message }) => timestamp >= startTime && timestamp < endTime && matches(message),
    );
    const next = from + searched.length < lines.length ? String(from + searched.length) : undefined;
    return { events, searchedLogStreams: [], ...defined({ nextToken: next }) };
  }

  function answer({ target: operation, body }: JsonRequest): JsonAnswer {
    try {
      if (operation !== target)
        throw new LogsError("UnknownOperationException", `the local CloudWatch Logs does not support ${operation}`);
      return { status: 200, body: filterLogEvents(body) };
    } catch (error) {
      if (error instanceof LogsError) return { status: 400, body: { __type: error.code, message: error.message } };
      if (error instanceof FilterPatternError)
        return { status: 400, body: { __type: "InvalidParameterException", message: error.message } };
      return { status: 500, body: { __type: "ServiceUnavailableException", message: String(error) } };
    }
  }

  return startJsonService({ principals, service: "logs", version: "1.1", maxBodyBytes, answer });
}

/** A JSON pattern matches no line that is not JSON. */
function jsonMatcher(pattern: string): (message: string) => boolean {
  const matches = parseFilterPattern(pattern);
  return (message) => {
    try {
      return matches(JSON.parse(message));
    } catch {
      return false;
    }
  };
}
