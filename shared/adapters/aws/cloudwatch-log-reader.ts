import {
  type CloudWatchLogsClient,
  type FilteredLogEvent,
  FilterLogEventsCommand,
} from "@aws-sdk/client-cloudwatch-logs";
import { defined } from "#shared/base/defined.ts";
import { otherCode } from "#shared/base/error-codes.ts";
import { errorMessage, StarlingError } from "#shared/base/errors.ts";
import type { LogFilter, LogLine, LogQuery, LogReader } from "#shared/ports.ts";

/** CloudWatch looks through so much of a group at a time, and says where it goes on, found or not. */
const mostPages = 20;

/** The function that writes the audit log. */
const auditor = "api";

/** The log groups of the functions, each read by itself: what it finds is put in order here. */
export class CloudWatchLogReader implements LogReader {
  readonly #client: CloudWatchLogsClient;
  readonly #groups: ReadonlyMap<string, string>;

  /** @param groups - names of the log groups, by the function's. */
  constructor(client: CloudWatchLogsClient, groups: ReadonlyMap<string, string>) {
    this.#client = client;
    this.#groups = groups;
  }

  /** @throws StarlingError `AnswerTooLarge` where nothing is found in as much of a log as is looked through: there may be some. */
  async read(query: LogQuery) {
    const groups = [...this.#groups].filter(([name]) => (name === auditor) === (query.of === "audit"));
    const found = await Promise.all(groups.map(([name, group]) => this.#readGroup(name, group, query)));
    const tooLong = found.findIndex(({ lines, isMore }) => isMore && lines.length === 0);
    if (tooLong >= 0) throw tooLongLog(groups[tooLong]?.[0] ?? "", query.since);
    // After the last line of a group that was not read to its end, there may be others of it.
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

/** In the language of CloudWatch; names hold neither quotes nor wildcards, and what holds them is refused. */
function filterPattern(filter: LogFilter): string {
  const every = filter.map((fields) => {
    const each = Object.entries(fields).map(([field, value]) => {
      if (!/^[\w./@:-]+$/.test(value)) throw new Error(`logs cannot be looked through for ${JSON.stringify(value)}`);
      return `($.${field} = "${value}")`;
    });
    return `(${each.join(" && ")})`;
  });
  return `{ ${every.join(" || ")} }`;
}

/** What is no JSON is none of ours, though a pattern for JSON finds no such line. */
function lineOf(name: string, { eventId = "", timestamp = 0, message = "" }: FilteredLogEvent): LogLine[] {
  try {
    const fields = JSON.parse(message) as Record<string, unknown>;
    return [{ id: eventId, at: new Date(timestamp).toISOString(), function: name, fields }];
  } catch {
    return [];
  }
}

function tooLongLog(name: string, since: Date): StarlingError {
  const message = `the log of ${name} since ${since.toISOString()} is longer than one request looks through, and what it looked through says nothing of that; ask for a later time, as with --since 10m`;
  return new StarlingError(message, { code: otherCode("AnswerTooLarge"), retry: "permanent" });
}

function unavailable(error: unknown): never {
  const message = `CloudWatch does not give the logs: ${errorMessage(error)}`;
  throw new StarlingError(message, { code: otherCode("LogsUnavailable"), retry: "transient", cause: error });
}
