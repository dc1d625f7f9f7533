import { getTable, worstObjectsFirst } from "#cli/format/get-table.ts";
import { printTable } from "#cli/format/print-table.ts";
import { serialise, serialiseEach } from "#cli/format/serialise.ts";
import { tableStyle } from "#cli/format/table-style.ts";
import { isData, withoutHeaders } from "#cli/output/output.ts";
import { CliFailure, type ExitReason, usageFailure } from "#cli/session/failure.ts";
import {
  hasNamespace,
  type KindName,
  listPath,
  parseKind,
  parseNamed,
  pathOfObject,
  shortName,
} from "#cli/session/kind-names.ts";
import { readList } from "#cli/session/read-list.ts";
import type { Session } from "#cli/session/session.ts";
import { defined } from "#shared/base/defined.ts";
import { type ApiList, listOf } from "#shared/fleet/api/objects.ts";
import { isUnreadable, type ListedObject } from "#shared/fleet/api/unreadable-object.ts";
import { needsYou, objectState, planOf } from "#shared/words/object-state.ts";
import { findState, stateWords } from "#shared/words/state-words.ts";

const watchMs = 2000;
/** At most this many objects are named below a list. */
const namedBelow = 5;
const allOfThem = Number.MAX_SAFE_INTEGER;

export interface GetOptions {
  readonly selector?: string;
  readonly state?: string;
  readonly cluster?: string;
  readonly group?: string;
  readonly limit: number;
  readonly continue?: string;
  readonly watch?: boolean;
}

interface Query {
  readonly kind: KindName;
  readonly names: readonly string[];
  readonly options: GetOptions;
}

export async function get(session: Session, args: readonly string[], options: GetOptions): Promise<ExitReason> {
  const [first = "", ...rest] = args;
  const [word = "", ownName] = first.toLowerCase().split("/");
  // A freeze is not a kind: people do not apply, describe or suspend it.
  if (word === "freeze" || word === "freezes") {
    const { getFreezes } = await import("#cli/commands/freeze.ts");
    return getFreezes(session, ownName === undefined ? rest : [ownName, ...rest]);
  }
  if (word === "versions" || word === "version") {
    const { getVersions } = await import("#cli/commands/get-versions.ts");
    return getVersions(session, options);
  }
  if (word === "zones" || word === "zone") {
    const { getZones } = await import("#cli/commands/get-zones.ts");
    return getZones(session, ownName === undefined ? rest : [ownName, ...rest], options);
  }
  if (first.includes(",")) return getSeveral(session, first.split(","), rest, options);
  const named = first.includes("/") || rest.length > 0 ? parseNamed(args, "get") : [];
  const query = {
    kind: named[0]?.kind ?? parseKind(first, ["freezes", "versions", "zones"]),
    names: named.map((object) => object.name),
    options: { ...options, ...canonicalState(options.state) },
  };
  if (query.kind !== "Sync" && (options.cluster ?? options.group) !== undefined) {
    throw usageFailure("--cluster and --group go only with syncs", `starling get syncs --cluster NAME`);
  }
  if (options.watch === true) return watch(session, query);
  const list = await read(session, query);
  print(session, query, list);
  return "done";
}

/** Prints one table after the other. Each object is named with its kind, as in kubectl. */
async function getSeveral(
  session: Session,
  words: readonly string[],
  names: readonly string[],
  options: GetOptions,
): Promise<ExitReason> {
  if (names.length > 0 || options.watch === true || options.continue !== undefined) {
    throw usageFailure("several kinds do not go with names, -w or --continue", "starling get syncgroups,clusters");
  }
  const kinds = words.map((word) => parseKind(word));
  const queries = kinds.map((kind) => ({ kind, names: [], options: { ...options, ...canonicalState(options.state) } }));
  const lists: ApiList<ListedObject>[] = [];
  for (const query of queries) lists.push(await read(session, query));
  const { output } = session.options;
  if (isData(output)) {
    session.io.out(
      serialise(
        listOf(
          "",
          lists.flatMap(({ items }) => items),
          undefined,
        ),
        output,
      ),
    );
    return "done";
  }
  let isFirst = true;
  for (const [index, query] of queries.entries()) {
    const list = lists[index] ?? { items: [], metadata: {} };
    if (!isFirst && output !== "name" && list.items.length > 0) session.io.out("\n");
    if (list.items.length > 0) isFirst = false;
    print(session, query, list as ApiList<ListedObject>, "kinds");
  }
  return "done";
}

function canonicalState(text: string | undefined): { state?: string } {
  if (text === undefined) return {};
  const state = findState(text);
  if (state !== undefined) return { state };
  throw usageFailure(`--state is "${text}"; expected one of ${stateWords().join(", ")}`, "--state Failed");
}

async function read(session: Session, query: Query): Promise<ApiList<ListedObject>> {
  const { kind, names, options } = query;
  const groupSyncs = kind === "Sync" && names.some((name) => name.includes("."));
  if (names.length > 0 && !(groupSyncs && options.cluster === undefined)) {
    const items: ListedObject[] = [];
    for (const name of names) items.push(await readOne(session, { kind, name, cluster: options.cluster }));
    return listOf(kind, items, undefined);
  }
  const list = await readList<ListedObject>(session, {
    ...listRequest(session, query),
    limit: groupSyncs ? allOfThem : options.limit,
    ...defined({ after: options.continue }),
  });
  const items = list.items.filter(
    (object) =>
      (names.length === 0 || names.includes(object.metadata.name)) &&
      (options.state === undefined || objectState(object).word === options.state),
  );
  const missing = names.find((name) => !items.some((object) => object.metadata.name === name));
  if (missing === undefined) return { ...list, items };
  throw new CliFailure(`Sync ${missing} is on no cluster`, {
    exit: "no",
    next: `starling get syncs${session.where()}`,
  });
}

function listRequest(
  session: Session,
  { kind, names, options }: Query,
): { path: string; query: Record<string, string | undefined> } {
  const state = kind === "Sync" ? options.state : undefined;
  if (!hasNamespace(kind)) return { path: listPath(kind, undefined), query: { labelSelector: options.selector } };
  const namespace = session.scope();
  if (kind !== "Sync") return { path: listPath(kind, namespace), query: { labelSelector: options.selector } };
  if (options.selector !== undefined) {
    throw usageFailure("Syncs have no labels", "starling get syncs --group NAME, --cluster NAME or --state WORD");
  }
  if (options.cluster !== undefined) {
    return {
      path: `${pathOfObject({ kind: "Cluster", name: options.cluster }, "")}/syncs`,
      query: { namespace, state },
    };
  }
  const group = options.group ?? names.find((name) => name.includes("."))?.split(".")[0];
  if (group === undefined) return { path: listPath(kind, namespace), query: { state } };
  return { path: `${pathOfObject({ kind: "SyncGroup", name: group }, session.namespace())}/syncs`, query: { state } };
}

function readOne(
  session: Session,
  { kind, name, cluster }: { readonly kind: KindName; readonly name: string; readonly cluster: string | undefined },
): Promise<ListedObject> {
  const path = pathOfObject({ kind, name }, hasNamespace(kind) ? session.namespace() : "");
  return session.api.call<ListedObject>({ method: "GET", path, query: { cluster } });
}

function print(session: Session, query: Query, list: ApiList<ListedObject>, names: "names" | "kinds" = "names"): void {
  const { io, options } = session;
  const { output } = options;
  if (isData(output)) {
    const single = query.names.length === 1 && list.items.length === 1 ? list.items[0] : list;
    io.out(serialise(single, output));
    return;
  }
  const items = worstObjectsFirst(list.items);
  if (output === "name") {
    for (const object of items) io.out(`${shortName({ kind: query.kind, name: object.metadata.name })}\n`);
    return;
  }
  if (items.length === 0) {
    session.note(`no ${query.kind} found${options.allNamespaces === true ? "" : whereText(session, query.kind)}`);
    return;
  }
  printObjects(session, { kind: query.kind, items, names });
  if (list.metadata.continue !== undefined) {
    session.note(`the list is longer; use --limit ${query.options.limit * 2}, or --continue ${list.metadata.continue}`);
  }
  const troubled = items.filter((object) => needsYou(objectState(object).word, planOf(object)));
  if (troubled.length > 0 && items.length > 1) session.note(problemText(troubled));
}

function printObjects(
  session: Session,
  table: {
    readonly kind: KindName;
    readonly items: readonly ListedObject[];
    readonly names?: "names" | "kinds";
    readonly headers?: "hide";
  },
): void {
  const { io, options } = session;
  const contents = getTable(table.kind, table.items, {
    now: io.now(),
    width: options.output === "wide" ? "wide" : "normal",
    namespaces: options.allNamespaces === true ? "all" : "one",
    ...defined({ names: table.names }),
  });
  printTable(session, contents, { ...tableStyle(session), ...defined({ headers: table.headers }) });
}

function problemText(troubled: readonly ListedObject[]): string {
  const named = troubled.slice(0, namedBelow).map((object) => {
    const where = object.kind === "Sync" && object.spec.cluster !== undefined ? ` on ${object.spec.cluster}` : "";
    return `${object.metadata.name}${where} ${objectState(object).word.toLowerCase()}`;
  });
  const rest = troubled.length > namedBelow ? ` and ${troubled.length - namedBelow} more` : "";
  const first = troubled[0] as ListedObject;
  // The name of a group's Sync needs its cluster, because the group has one on each.
  const where = first.kind === "Sync" && first.metadata.name.includes(".") ? ` --cluster ${first.spec.cluster}` : "";
  const target = shortName({ kind: first.kind, name: first.metadata.name });
  const namespace = first.metadata.namespace === undefined ? "" : ` -n ${first.metadata.namespace}`;
  return `${troubled.length} ${troubled.length === 1 ? "needs" : "need"} attention: ${named.join(", ")}${rest}\n  next: starling describe ${target}${where}${namespace}`;
}

function whereText(session: Session, kind: KindName): string {
  return !hasNamespace(kind) ? "" : ` in namespace ${session.namespace()} (-A lists all namespaces)`;
}

/** Prints every object once, and again after each write. Ends with Ctrl-C or `--timeout`. */
async function watch(session: Session, query: Query): Promise<ExitReason> {
  const shown = new Map<string, string>();
  let headers: "hide" | undefined;
  for (;;) {
    const list = await read(session, query);
    const items = worstObjectsFirst(list.items).filter((object) => {
      const where = object.kind === "Sync" ? object.spec.cluster : "";
      const key = `${object.metadata.namespace}/${object.metadata.name}/${where}`;
      const version = isUnreadable(object) ? object.status.state : object.metadata.resourceVersion;
      const isNew = shown.get(key) !== version;
      shown.set(key, version);
      return isNew;
    });
    if (items.length > 0) {
      const { output } = session.options;
      if (isData(output)) session.io.out(serialiseEach(items, headers === "hide" ? withoutHeaders(output) : output));
      else printObjects(session, { kind: query.kind, items, ...defined({ headers }) });
      headers = "hide";
    }
    await session.pause(watchMs);
  }
}
