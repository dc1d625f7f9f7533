import { printTable } from "#cli/format/print-table.ts";
import { serialiseEach } from "#cli/format/serialise.ts";
import { tableStyle } from "#cli/format/table-style.ts";
import { isData, withoutHeaders } from "#cli/output/output.ts";
import { type ExitReason, usageFailure } from "#cli/session/failure.ts";
import { type NamedObject, parseOneOrGroup, pathOfObject } from "#cli/session/kind-names.ts";
import { readList } from "#cli/session/read-list.ts";
import type { Session } from "#cli/session/session.ts";
import type { EventAbout, EventItem, EventList } from "#shared/fleet/api/objects.ts";
import { formatTime } from "#shared/words/age.ts";

const watchMs = 2000;

export interface EventsOptions {
  readonly cluster?: string;
  readonly limit: number;
  readonly watch?: boolean;
}

type Reported = EventItem & Partial<EventAbout>;

/** Prints the events of one object, or of all groups of one or all namespaces. The oldest come first, as in a log. */
export async function events(session: Session, args: readonly string[], options: EventsOptions): Promise<ExitReason> {
  const source = args.length === 0 ? ofAll(session, options) : ofOne(session, args, options);
  const first = await source.read();
  if (options.watch !== true) {
    print(session, first, "show");
    if (first.length === 0) session.note("there are no events of the last 30 days");
    return "done";
  }
  const reported = new Set<string>();
  for (let found = first; ; found = await source.read()) {
    const fresh = found.filter((event) => !reported.has(identityOf(event)));
    for (const event of fresh) reported.add(identityOf(event));
    print(session, fresh, reported.size > fresh.length ? "hide" : "show");
    await session.pause(watchMs);
  }
}

interface EventSource {
  /** The newest events, the oldest of them first. */
  read(): Promise<readonly Reported[]>;
}

/** @throws CliFailure for an object that does not exist, or whose kind has no events. */
function ofOne(session: Session, args: readonly string[], options: EventsOptions): EventSource {
  const object = parseOneOrGroup(args, "events");
  if (object.kind !== "SyncGroup" && object.kind !== "Sync") {
    throw usageFailure(`a ${object.kind} has no events`, insteadOfEvents(object));
  }
  const path = pathOfObject(object, session.namespace());
  const query = { cluster: options.cluster };
  const list = { path: `${path}/events`, query, limit: options.limit };
  let isThere = false;
  return {
    async read() {
      const { items } = await readList<EventItem>(session, list);
      if (items.length === 0 && !isThere) await session.api.call({ method: "GET", path, query });
      isThere = true;
      return items.toReversed();
    },
  };
}

function insteadOfEvents({ kind, name }: NamedObject): string {
  if (kind === "Source") return `starling history source/${name}`;
  return kind === "Cluster" || kind === "Receiver"
    ? `starling logs ${kind.toLowerCase()}/${name}`
    : "starling events GROUP";
}

function ofAll(session: Session, { cluster, limit }: EventsOptions): EventSource {
  if (cluster !== undefined) throw usageFailure("--cluster needs a Sync", "starling events sync/NAME --cluster C");
  const list = { path: "/v1/events", query: { namespace: session.scope() }, limit };
  let isReported = false;
  return {
    async read() {
      const found = await readList<Reported>(session, list);
      const { known, asked } = (found as unknown as EventList).owners;
      if (asked < known && !isReported) {
        session.note(
          `events of the ${asked} groups that changed last, of ${known}; for another group: starling events GROUP`,
        );
        isReported = true;
      }
      return found.items.toReversed();
    },
  };
}

function identityOf({ at, reason, message, cluster = "", about }: Reported): string {
  return JSON.stringify([at, reason, message, cluster, about]);
}

/** @param headers - for custom columns; the default table has none. */
function print(session: Session, items: readonly Reported[], headers: "show" | "hide"): void {
  const { output } = session.options;
  if (isData(output)) {
    session.io.out(serialiseEach(items, headers === "hide" ? withoutHeaders(output) : output));
    return;
  }
  if (items.length === 0) return;
  const now = session.io.now();
  const rows = items.map(({ at, reason, cluster, message, about }) => {
    const whose = about === undefined ? [] : [`${about.namespace}/${about.name}`];
    return [formatTime(at, now), ...whose, reason, cluster ?? "-", message];
  });
  const whose = items[0]?.about === undefined ? [] : ["GROUP"];
  const table = { columns: ["TIME", ...whose, "REASON", "CLUSTER", "MESSAGE"], rows };
  printTable(session, table, { ...tableStyle(session), headers: "hide" });
}
