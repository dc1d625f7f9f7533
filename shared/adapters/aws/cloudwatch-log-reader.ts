import {
  type CloudWatchLogsClient,
  type FilteredLogEvent,
  FilterLogEventsCommand,
} from "@aws-sdk/client-cloudwatch-logs";
import { defined } from "#shared/base/defined.ts";
import { otherCode } from "#shared/base/error-codes.ts";
import { errorMessage, StarlingError } from "#shared/base/errors.ts";
import type { LogFilter, LogLine, LogQuery, LogReader } from "#shared/ports.ts";

/**
 * The limit of requests for one group. CloudWatch searches a part of a group at a time and says where to continue, also
 * when it found nothing.
 */
const mostPages = 20;

/** The function that writes the audit log. */
const auditor = "api";

/** Reads the functions' log groups. Each is read separately, and the lines are sorted here. */
export class CloudWatchLogReader implements LogReader {
  readonly #client: CloudWatchLogsClient;
  readonly #groups: ReadonlyMap<string, string>;

  /** @param groups - names of the log groups, by the function's. */
  constructor(client: CloudWatchLogsClient, groups: ReadonlyMap<string, string>) {
    this.#client = client;
    this.#groups = groups;
  }

  /**
   * @throws StarlingError `AnswerTooLarge` when the searched part of a log contains nothing and the log continues:
   * later lines may match.
   */
  async read(query: LogQuery) {
    const groups = [...this.#groups].filter(([name]) => (name === auditor) === (query.of === "audit"));
    const found = await Promise.all(groups.map(([name, group]) => this.#readGroup(name, group, query)));
    const tooLong = found.findIndex(({ lines, isMore }) => isMore && lines.length === 0);
    if (tooLong >= 0) throw tooLongLog(groups[tooLong]?.[0] ?? "", query.since);
    // Beyond the last line of a group that was not read to its end, lines may be missing.
    const end = found
      .flatMap(({ lines, isMore }) => (isMore ? (lines.at(-1)?.at ?? []) : []))
      .sort()
      .at(0);
    const ordered = found
      .flatMap(({ lines }) => lines)
      .filter(({ at }) => end === undefined || at <= end)
      .sort((a, b) => (a.at < b.at ? -1 : a.at > b.at ? 1 : 0));
    return { lines: ordered.slice(0, query.limit), isMore: end !== undefined || ordered.length > query.limit };
  }

  async #readGroup(name: string, logGroupName: string, { filter, since, limit }: LogQuery) {
    const lines: LogLine[] = [];
    let nextToken: string | undefined;
    for (let page = 0; page < mostPages && lines.length <= limit; page++) {
      const command = new FilterLogEventsCommand({
        logGroupName,
        filterPattern: filterPattern(filter),
        startTime: since.getTime(),
        ...defined({ nextToken }),
      });
      const { events = [], nextToken: next } = await this.#client.send(command).catch(unavailable);
      lines.push(...events.flatMap((event) => lineOf(name, event)));
      nextToken = next;
      if (next === undefined) break;
    }
    return { lines, isMore: nextToken !== undefined };
  }
}

/** The pattern language of CloudWatch. Names contain no quotes and no wildcards; a value with them is refused. */
function filterPattern(filter: LogFilter): string {
  const every = filter.map((fields) => {
    const each = Object.entries(fields).map(([field, value]) => {
      if (!/^[\w./@:-]+$/.test(value))
        throw new Error(`logs cannot be searched for the value ${JSON.stringify(value)}`);
      return `($.${field} = "${value}")`;
    });
    return `(${each.join(" && ")})`;
  });
  return `{ ${every.join(" || ")} }`;
}

/** Starling writes only JSON. A pattern for JSON matches no other line anyway. */
function lineOf(name: string, { eventId = "", timestamp = 0, message = "" }: FilteredLogEvent): LogLine[] {
  try {
    const fields = JSON.parse(message) as Record<string, unknown>;
    return [{ id: eventId, at: new Date(timestamp).toISOString(), function: name, fields }];
  } catch {
    return [];
  }
}

function tooLongLog(name: string, since: Date): StarlingError {
  const message = `the log of ${name} since ${since.toISOString()} is longer than one request can search, and the searched part contains no such line; ask for a later time, such as \`--since 10m\``;
  return new StarlingError(message, { code: otherCode("AnswerTooLarge"), retry: "permanent" });
}

function unavailable(error: unknown): never {
  const message = `CloudWatch did not return the logs: ${errorMessage(error)}`;
  throw new StarlingError(message, { code: otherCode("LogsUnavailable"), retry: "transient", cause: error });
}
