import { requireReadable } from "#cli/format/require-readable.ts";
import { formatTable } from "#cli/format/table.ts";
import { confirmConsequences } from "#cli/session/confirm.ts";
import { CliFailure, type ExitReason, usageFailure } from "#cli/session/failure.ts";
import { pathOfObject } from "#cli/session/kind-names.ts";
import { readList } from "#cli/session/read-list.ts";
import type { Session } from "#cli/session/session.ts";
import { defined } from "#shared/base/defined.ts";
import { quoted } from "#shared/base/shell-word.ts";
import type { AnyObject, ClusterObject, SyncObject } from "#shared/fleet/api/objects.ts";
import { isUnreadable, type UnreadableObject } from "#shared/fleet/api/unreadable-object.ts";
import { templateSources } from "#shared/fleet/kinds/template-sources.ts";
import type { Operations } from "#shared/fleet/rows/object-rows.ts";
import { mayTakeOver, type Remembered } from "#shared/kube/parent-object.ts";
import { objectState } from "#shared/words/object-state.ts";

const pollMs = 500;
const allOfThem = 100_000;

export interface RecoverOptions {
  readonly all?: boolean;
  readonly dryRun?: boolean;
  /** The owner that no longer exists, whose Syncs are taken over. */
  readonly from?: string;
}

/** A Sync whose cluster has another record than its row. */
interface Refused {
  readonly cluster: string;
  readonly namespace: string;
  readonly name: string;
  readonly sync: SyncObject;
  readonly remembered: Remembered;
}

interface RecoverAnswer {
  readonly recovered: readonly string[];
  readonly moved: readonly string[];
  readonly refused: readonly { readonly syncs: readonly string[]; readonly message: string }[];
}

/**
 * Recovers lost rows from the records in the clusters. It shows the records and asks, has every Source polled, and lets the
 * planner assign the desired revision. Until then Starling writes nothing to these clusters.
 */
export async function recover(
  session: Session,
  names: readonly string[],
  options: RecoverOptions,
): Promise<ExitReason> {
  if ((names.length === 0) !== (options.all === true)) {
    throw usageFailure(
      options.all === true ? "both clusters and --all are given; expected one of them" : "no cluster is given",
      "starling recover CLUSTER... or starling recover --all",
    );
  }
  session.announce();
  const clusters = options.all === true ? await everyCluster(session) : names;
  const listed = await Promise.all(clusters.map((cluster) => syncsOn(session, cluster)));
  const refused = listed.flatMap((syncs) => syncs.flatMap((sync) => (isUnreadable(sync) ? [] : refusedOf(sync))));
  const unread = listed.flatMap((syncs) => syncs.filter(isUnreadable));
  for (const sync of unread) {
    const { metadata, spec } = sync;
    session.note(`${metadata.namespace}/${metadata.name} on ${spec.cluster} is skipped: ${objectState(sync).remark}`);
  }
  const isTaken = ({ remembered }: Refused) => mayTakeOver(remembered, options.from);
  const [taken, left] = [refused.filter(isTaken), refused.filter((one) => !isTaken(one))];
  const owners = [...new Set(left.flatMap(({ remembered }) => remembered.owner ?? []))];
  const command = commandOf(names, options);
  if (refused.length > 0) session.io.out(tableOf(refused, isTaken, session.options.headers));
  for (const owner of owners) {
    session.note(`if ${owner} no longer exists: ${command} --from ${quoted(owner)}   (if it does, both would write)`);
  }
  if (taken.length === 0) {
    session.note("there is nothing to recover");
    return left.length + unread.length === 0 ? "done" : "no";
  }
  if (options.dryRun === true) {
    session.note(`nothing was changed\n  next: ${command}`);
    return "done";
  }
  const count = `${taken.length} ${taken.length === 1 ? "Sync" : "Syncs"}`;
  const others = options.all === true ? "; clusters that have not answered yet are recovered later" : "";
  const message = `${count} will be recovered from the records in their clusters and synced to the current revision of their Sources${others}; apply the documents of your fleet first if they are newer than these rows`;
  await confirmConsequences(session, { message }, `${command} --yes`);
  const sources = await pollSources(session, taken);
  await accept(session, { taken, sources, options });
  return left.length + unread.length === 0 ? "done" : "no";
}

function commandOf(names: readonly string[], { all, from }: RecoverOptions): string {
  const whom = all === true ? "--all" : names.map(quoted).join(" ");
  return `starling recover ${whom}${from === undefined ? "" : ` --from ${quoted(from)}`}`;
}

async function everyCluster(session: Session): Promise<readonly string[]> {
  const { items } = await readList<ClusterObject>(session, { path: "/v1/clusters", limit: allOfThem });
  return items.map(({ metadata }) => metadata.name);
}

async function syncsOn(session: Session, cluster: string): Promise<readonly (SyncObject | UnreadableObject)[]> {
  const path = `${pathOfObject({ kind: "Cluster", name: cluster }, "")}/syncs`;
  return (await readList<SyncObject | UnreadableObject>(session, { path, limit: allOfThem })).items;
}

function refusedOf(sync: SyncObject): readonly Refused[] {
  const remembered = sync.status.observed?.remembered;
  const { namespace = "", name } = sync.metadata;
  return remembered === undefined ? [] : [{ cluster: sync.spec.cluster, namespace, name, sync, remembered }];
}

function tableOf(
  refused: readonly Refused[],
  isTaken: (one: Refused) => boolean,
  headers: boolean | undefined,
): string {
  const columns = ["CLUSTER", "SYNC", "ROW", "RECORD IN CLUSTER", "RESULT"];
  const rows = refused.map((one) => {
    const { desired } = one.sync.status;
    const ours = desired === undefined ? "nothing" : `${desired.revision} (${desired.attempt})`;
    return [one.cluster, `${one.namespace}/${one.name}`, ours, theirs(one.remembered), fateOf(one, isTaken(one))];
  });
  return formatTable({ columns, rows }, { headers: headers === false ? "hide" : "show" });
}

function theirs({ token, revision, attempt }: Remembered): string {
  return token === undefined ? "nothing" : `${revision ?? "an unknown revision"} (${attempt})`;
}

function fateOf({ sync, remembered }: Refused, isTaken: boolean): string {
  if (!isTaken) return `stays with ${remembered.owner}`;
  if (sync.status.desired?.action === "delete") return "released; its objects stay";
  return remembered.token === undefined ? "applied again" : "continues from the record";
}

type PolledSource = { readonly namespace: string; readonly name: string; readonly number: number };

/** Requests a poll of every Source of these Syncs, and waits until each was polled. */
async function pollSources(session: Session, refused: readonly Refused[]): Promise<readonly PolledSource[]> {
  const desired = new Map<string, { readonly namespace: string; readonly name: string }>();
  const ofOwner = new Map(refused.map((one) => [`${one.namespace}/${one.name}`, one]));
  for (const one of ofOwner.values()) {
    for (const name of await sourcesOf(session, one)) {
      desired.set(`${one.namespace}/${name}`, { namespace: one.namespace, name });
    }
  }
  const polled: PolledSource[] = [];
  for (const source of desired.values()) {
    const path = pathOfObject({ kind: "Source", name: source.name }, source.namespace);
    const { reason } = session.options;
    const body = reason === undefined ? {} : { reason };
    const answer = await session.api.call<{ readonly operations: Operations }>({
      method: "POST",
      path: `${path}/reconcile`,
      body,
    });
    polled.push({ ...source, number: answer.operations.reconcile?.number ?? 0 });
  }
  for (const { namespace, name, number } of polled) {
    const path = pathOfObject({ kind: "Source", name }, namespace);
    for (;;) {
      const source = requireReadable(await session.api.call<AnyObject>({ method: "GET", path }));
      if (source.kind === "Source" && (source.status.handledReconcile ?? 0) >= number) break;
      await session.pause(pollMs);
    }
  }
  return polled;
}

/** The Sources of the Sync's group, whose templates are planned together. A Sync without an owner has none. */
async function sourcesOf(session: Session, { namespace, sync }: Refused): Promise<readonly string[]> {
  const { group } = sync.status;
  if (sync.spec.source === "") return [];
  if (group === undefined) return templateSources(sync.spec);
  const path = pathOfObject({ kind: "SyncGroup", name: group }, namespace);
  const row = requireReadable(await session.api.call<AnyObject>({ method: "GET", path }));
  return row.kind === "SyncGroup" ? row.spec.templates.flatMap(templateSources) : [];
}

interface Accepting {
  readonly taken: readonly Refused[];
  readonly sources: readonly PolledSource[];
  readonly options: RecoverOptions;
}

/** @throws CliFailure when some Syncs could not be recovered, or had changed meanwhile. The others are recovered. */
async function accept(session: Session, { taken, sources, options }: Accepting): Promise<void> {
  const { reason } = session.options;
  let left = 0;
  for (const [cluster, syncs] of Map.groupBy(taken, (one) => one.cluster)) {
    const body = {
      syncs: syncs.map(({ namespace, name, remembered: { attempt, token } }) => ({
        namespace,
        name,
        attempt,
        ...defined({ token }),
      })),
      sources,
      ...defined({ from: options.from, reason, all: options.all }),
    };
    const path = `${pathOfObject({ kind: "Cluster", name: cluster }, "")}/recover`;
    const { recovered, moved, refused } = await session.api.call<RecoverAnswer>({ method: "POST", path, body });
    session.io.out(`cluster/${cluster} ${recovered.length} recovered\n`);
    for (const name of moved) session.note(`  ${name} has changed meanwhile and was skipped`);
    for (const { syncs: names, message } of refused) session.note(`  ${names.join(", ")} not recovered: ${message}`);
    left += moved.length + refused.reduce((sum, one) => sum + one.syncs.length, 0);
  }
  if (left === 0) return;
  throw new CliFailure(`${left} of ${taken.length} Syncs were not recovered`, {
    exit: "no",
    next: "starling recover --all --dry-run",
  });
}
