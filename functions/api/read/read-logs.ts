import type { ApiPorts } from "#functions/api/request/api-ports.ts";
import type { HttpRequest } from "#functions/api/request/http-event.ts";
import { named } from "#functions/api/request/query-values.ts";
import type { ObjectReference } from "#functions/api/request/reference.ts";
import { refusal } from "#functions/api/request/refusal.ts";
import { pathName } from "#functions/api/request/route.ts";
import { beginningOf } from "#shared/adapters/correlation.ts";
import { excerpt } from "#shared/base/excerpt.ts";
import { type ApiList, type LogItem, listOf } from "#shared/fleet/api/objects.ts";
import type { LogFilter, LogLine, LogQuery } from "#shared/ports.ts";

/** Lines that CloudWatch is asked for at once; the time of the last line continues the list. */
const mostLines = 1000;
const defaultLines = 200;
const hourMs = 3_600_000;
/** Retention of the logs: a month for the functions' logs, two years for the audit log. */
const keptDays = { functions: 31, audit: 731 } as const satisfies Record<LogQuery["of"], number>;

type LogPorts = Pick<ApiPorts, "logs" | "clock">;

const loggedKinds: ReadonlySet<string> = new Set([
  ...["Cluster", "ClusterDiscovery", "ClusterValues", "Window", "Source", "Receiver", "Sync", "SyncGroup"],
]);

/** The fields that a line about the object must have; a Sync may be asked for on one cluster alone. */
export function linesAbout(object: ObjectReference & { readonly cluster?: string }): LogFilter {
  const { kind, namespace = "", name, cluster } = object;
  if (kind === "Cluster") return [{ cluster: name }, { kind, name }];
  const current = cluster === undefined ? {} : { cluster };
  if (kind === "ClusterDiscovery" || kind === "ClusterValues" || kind === "Window") return [{ kind, name }];
  const itself = { kind, namespace, name, ...current };
  return kind === "Source" || kind === "Receiver"
    ? [itself]
    : [itself, { namespace, owner: `${kind}/${name}`, ...current }];
}

/** @throws StarlingError `BadRequest` for an invalid id. */
export function linesOf(id: string | undefined): LogFilter {
  if (id !== undefined && beginningOf(id) !== undefined) return [{ correlationId: id }];
  const got = id === undefined ? "missing" : `"${excerpt(id)}"`;
  throw refusal("BadRequest", `id is ${got}; expected a correlation id, such as push-20261123T061254Z-1f8a90c2`);
}

/**
 * Lines of the functions, without the audit log. The oldest line is first. With more than `limit` of them,
 * `continue` is the time to go on from.
 */
export function readLogs(ports: LogPorts, request: HttpRequest, filter: LogFilter): Promise<ApiList<LogItem>> {
  return read(ports, request, { of: "functions", filter });
}

/**
 * The audit log, in the order of `readLogs`: it is the log of this function, which has a line for every change. The query
 * names a correlation id, or the kind, namespace and name of an object.
 * @throws StarlingError `BadRequest` of a query that names neither.
 */
export function readAudit(ports: LogPorts, request: HttpRequest): Promise<ApiList<LogItem>> {
  const { id, kind, name } = request.query;
  if (id !== undefined || (kind === undefined && name === undefined)) {
    return read(ports, request, { of: "audit", filter: linesOf(id) });
  }
  if (kind === undefined || !loggedKinds.has(kind)) {
    throw refusal("BadRequest", `kind is "${excerpt(kind ?? "")}"; expected one of ${[...loggedKinds].join(", ")}`);
  }
  if (name === undefined || !pathName.test(name)) {
    throw refusal("BadRequest", `name is "${excerpt(name ?? "")}"; expected the name of a ${kind}`);
  }
  const object = { kind: kind as ObjectReference["kind"], name };
  const where = { ...named(request, "namespace"), ...named(request, "cluster") };
  return read(ports, request, { of: "audit", filter: linesAbout({ ...object, ...where }) });
}

async function read(
  { logs, clock }: LogPorts,
  { query }: HttpRequest,
  asked: Pick<LogQuery, "of" | "filter">,
): Promise<ApiList<LogItem>> {
  const since = sinceOf(query.since, clock.now(), keptDays[asked.of]);
  const { lines, isMore } = await logs.read({ ...asked, since, limit: limitOf(query.limit) });
  return listOf("Log", lines.map(itemOf), isMore ? lines.at(-1)?.at : undefined);
}

function sinceOf(text: string | undefined, now: Date, days: number): Date {
  if (text === undefined) return new Date(now.getTime() - hourMs);
  const since = new Date(/^\d{4}-\d\d-\d\dT/.test(text) ? text : Number.NaN);
  const age = now.getTime() - since.getTime();
  if (age <= days * 24 * hourMs) return since;
  const desired = `expected a time within the last ${days} days, such as 2026-11-23T06:00:00Z`;
  throw refusal("BadRequest", `since is "${excerpt(text)}"; ${desired}`);
}

function limitOf(text: string | undefined): number {
  if (text === undefined) return defaultLines;
  const limit = /^\d{1,4}$/.test(text) ? Number(text) : 0;
  if (limit >= 1 && limit <= mostLines) return limit;
  throw refusal("BadRequest", `limit is "${excerpt(text)}"; expected a whole number from 1 to ${mostLines}`);
}

const wordsOf = ["level", "message", "correlationId"] as const;
/** Fields that the logger adds, and that nobody searches for. */
const ofTheLogger: ReadonlySet<string> = new Set([...wordsOf, "timestamp", "service", "sampling_rate"]);

function itemOf({ id, at, function: from, fields }: LogLine): LogItem {
  const [level = "", message = "", correlationId] = wordsOf.map((word) =>
    typeof fields[word] === "string" ? fields[word] : undefined,
  );
  const rest = Object.fromEntries(Object.entries(fields).filter(([name]) => !ofTheLogger.has(name)));
  return {
    id,
    at,
    function: from,
    level,
    message,
    ...(correlationId === undefined ? {} : { correlationId }),
    fields: rest,
  };
}
