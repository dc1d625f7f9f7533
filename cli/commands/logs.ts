import { formatLogLine } from "#cli/format/log-line.ts";
import { serialise } from "#cli/format/serialise.ts";
import { isData } from "#cli/output/output.ts";
import { ApiFailure } from "#cli/session/api-client.ts";
import { type ExitReason, usageFailure } from "#cli/session/failure.ts";
import { hasNamespace, parseOne, pathOfObject } from "#cli/session/kind-names.ts";
import { requireObject } from "#cli/session/rollout-owner.ts";
import type { Session } from "#cli/session/session.ts";
import { defined } from "#shared/base/defined.ts";
import { quoted } from "#shared/base/shell-word.ts";
import type { ApiList, LogItem } from "#shared/fleet/api/objects.ts";
import type { ZoneObject } from "#shared/fleet/api/zone-object.ts";
import { durationSeconds } from "#shared/fleet/kinds/quantities.ts";

/** CloudWatch shows a line some seconds after it was logged. */
const followMs = 5000;
/** Each request overlaps the last one by this time, to find lines that arrived late. */
const overlapMs = 60_000;
const pageLines = 1000;
const auditPath = "/v1/audit";

export interface LogsOptions {
  readonly id?: string;
  readonly audit?: boolean;
  readonly cluster?: string;
  readonly since: string;
  readonly limit: number;
  readonly follow?: boolean;
}

type Query = Readonly<Record<string, string>>;

/** Prints the functions' log lines about an object or of one correlation id, or the audit log. The oldest come first. */
export async function logs(session: Session, args: readonly string[], options: LogsOptions): Promise<ExitReason> {
  const { path, query, about } = asked(session, args, options);
  const since = new Date(session.io.now().getTime() - sinceSeconds(options.since) * 1000);
  const list = await read(session, path, { ...query, since: since.toISOString() }, options.limit);
  // An object that was deleted has lines; a misspelt one has none.
  if (list.items.length === 0 && about !== undefined)
    await requireObject(session, about, defined({ cluster: options.cluster }));
  const { output } = session.options;
  if (isData(output)) {
    if (options.follow === true)
      throw usageFailure("-f does not go with -o: it prints no list", "the same command without -o, or without -f");
    session.io.out(serialise(list, output));
    return "done";
  }
  print(session, list.items);
  if (options.audit !== true) await noteZonesElsewhere(session);
  if (options.follow === true) return follow(session, { path, query, list });
  if (list.items.length === 0) session.note(`no lines of the last ${options.since}; try a longer --since`);
  const next = list.metadata.continue;
  if (next !== undefined) session.note(`there are more lines after ${next}; --limit N shows them`);
  return "done";
}

interface Asked {
  readonly path: string;
  readonly query: Query;
  /** Path of the object; absent for a correlation id. */
  readonly about?: string;
}

function asked(session: Session, args: readonly string[], { id, cluster, audit }: LogsOptions): Asked {
  if (id !== undefined) {
    if (args.length === 0) return { path: audit === true ? auditPath : "/v1/logs", query: { id } };
    throw usageFailure("both an object and --id are given; expected one of them", `starling logs --id ${quoted(id)}`);
  }
  if (args.length === 0) throw usageFailure("an object or --id is missing", "starling logs syncgroup/NAME");
  const object = parseOne(args, "logs");
  if (object.kind === "Rollout")
    throw usageFailure("a Rollout has no log of its own; its group has one", `starling logs syncgroup/${object.name}`);
  const namespace = hasNamespace(object.kind) ? session.namespace() : undefined;
  const on = defined({ cluster });
  const about = pathOfObject(object, namespace ?? "");
  if (audit !== true) return { path: `${about}/logs`, query: on, about };
  return { path: auditPath, query: { kind: object.kind, name: object.name, ...defined({ namespace }), ...on }, about };
}

/** @throws CliFailure for a text that is not a duration. */
function sinceSeconds(text: string): number {
  const seconds = durationSeconds(text);
  if (seconds !== undefined) return seconds;
  throw usageFailure(`--since is "${text}"; expected a duration`, "--since 30m, or --since 2h");
}

/** Reads pages until `limit` lines are read. A line that was read twice is returned once. */
async function read(session: Session, path: string, query: Query, limit: number): Promise<ApiList<LogItem>> {
  const items = new Map<string, LogItem>();
  for (let since = query.since; ; ) {
    const part = { ...query, ...(since === undefined ? {} : { since }), limit: String(Math.min(limit, pageLines)) };
    const found: ApiList<LogItem> = await session.api.call<ApiList<LogItem>>({
      method: "GET",
      path,
      query: part,
    });
    for (const item of found.items) items.set(item.id, item);
    const next = found.metadata.continue;
    if (next === undefined || next === since || items.size >= limit) {
      const kept = [...items.values()].slice(0, limit);
      const goesOn = items.size > limit ? kept.at(-1)?.at : next;
      return { ...found, metadata: defined({ continue: goesOn }), items: kept };
    }
    since = next;
  }
}

/** The workers of such a zone log in its account, which Starling cannot read. */
async function noteZonesElsewhere(session: Session): Promise<void> {
  const { items } = await session.api
    .call<Pick<ApiList<ZoneObject>, "items">>({ method: "GET", path: "/v1/zones" })
    .catch((error: unknown) => {
      if (error instanceof ApiFailure) return { items: [] };
      throw error;
    });
  for (const { metadata, account, region, logGroup } of items) {
    if (logGroup === undefined) continue;
    session.note(
      `the workers of zone ${metadata.name} log in account ${account} in ${region}: \`aws logs tail ${logGroup} --region ${region}\``,
    );
  }
}

interface Following {
  readonly path: string;
  readonly query: Query;
  readonly list: ApiList<LogItem>;
}

async function follow(session: Session, { path, query, list }: Following): Promise<ExitReason> {
  const seen = new Set(list.items.map(({ id }) => id));
  // Lines that the limit has left out come first.
  for (let next = list.metadata.continue; ; ) {
    if (next === undefined) await session.pause(followMs);
    const since: string = next ?? new Date(session.io.now().getTime() - overlapMs).toISOString();
    const { items, metadata } = await read(session, path, { ...query, since }, pageLines);
    next = metadata.continue === since ? undefined : metadata.continue;
    print(
      session,
      items.filter(({ id }) => !seen.has(id)),
    );
    for (const { id } of items) seen.add(id);
  }
}

function print(session: Session, items: readonly LogItem[]): void {
  for (const item of items) session.io.out(`${formatLogLine(item)}\n`);
}
