import { serialise } from "#cli/format/serialise.ts";
import { formatTable } from "#cli/format/table.ts";
import { isData } from "#cli/output/output.ts";
import { ApiFailure } from "#cli/session/api-client.ts";
import { CliFailure, type ExitReason, usageFailure } from "#cli/session/failure.ts";
import { pathSegment } from "#cli/session/kind-names.ts";
import type { Session } from "#cli/session/session.ts";
import { untilTime } from "#cli/session/until-time.ts";
import { defined } from "#shared/base/defined.ts";
import type { FreezeObject } from "#shared/fleet/api/freeze-object.ts";
import type { ApiList } from "#shared/fleet/api/objects.ts";
import { formatAge } from "#shared/words/age.ts";
import { actText } from "#shared/words/object-state.ts";

/** The name of a freeze without a given name, because a person in a hurry gives none. */
const defaultName = "freeze";

export interface FreezeOptions {
  readonly clusters?: string;
  readonly until?: string;
}

interface FreezeAnswer {
  readonly outcome: "created" | "configured" | "unchanged" | "deleted";
  readonly freeze: FreezeObject;
  /** The clusters that other freezes still hold. Absent if there are none, and from an older API. */
  readonly held?: { readonly clusters: number; readonly by: readonly string[] };
}

/** Stops all writes to the clusters that the freeze selects, until it is lifted or its time is over. */
export async function freezeClusters(
  session: Session,
  name: string | undefined,
  options: FreezeOptions,
): Promise<ExitReason> {
  const { reason } = session.options;
  if (reason === undefined) {
    const hint = `starling freeze${name === undefined ? "" : ` ${name}`} --reason "why"`;
    throw usageFailure("a freeze needs a reason: --reason TEXT", hint);
  }
  session.announce();
  const { outcome, freeze: made } = await refusedByHand(() =>
    session.api.call<FreezeAnswer>({
      method: "POST",
      path: pathOf(name ?? defaultName),
      body: {
        reason,
        ...defined({ clusters: options.clusters }),
        ...(options.until === undefined ? {} : { until: untilTime(options.until, session.io.now()) }),
      },
    }),
  );
  const said = outcome === "unchanged" ? "unchanged" : outcome === "created" ? "created" : "changed";
  session.io.out(`freeze/${made.metadata.name} ${said}: ${coverText(made)}${untilText(made)}\n`);
  if (made.status.clusters === 0)
    session.note("warning: the freeze selects no registered cluster; `starling get clusters` lists them");
  session.note(`  next: starling thaw ${made.metadata.name}   (lifts the freeze)`);
  return "done";
}

/** Lifts a freeze. Without a name: the only one. */
export async function thawClusters(session: Session, name: string | undefined): Promise<ExitReason> {
  session.announce();
  const { freeze: lifted, held } = await refusedByHand(async () =>
    session.api.call<FreezeAnswer>({
      method: "DELETE",
      path: pathOf(name ?? (await onlyOne(session))),
      query: { reason: session.options.reason },
    }),
  );
  session.io.out(`freeze/${lifted.metadata.name} thawed: ${thawedText(lifted, held)}\n`);
  if (held !== undefined) session.note(`  next: starling thaw ${held.by[0]}   (lifts the next freeze)`);
  return "done";
}

/** Lists the freezes for `get freezes`. */
export async function getFreezes(session: Session, names: readonly string[]): Promise<ExitReason> {
  const list = await readFreezes(session);
  const missing = names.find((name) => !list.items.some(({ metadata }) => metadata.name === name));
  if (missing !== undefined)
    throw new CliFailure(`there is no freeze ${missing}`, { exit: "no", next: "starling get freezes" });
  const items = list.items.filter(({ metadata }) => names.length === 0 || names.includes(metadata.name));
  const { output, headers } = session.options;
  if (isData(output)) {
    session.io.out(serialise(names.length === 1 ? items[0] : { ...list, items }, output));
    return "done";
  }
  if (output === "name") {
    for (const { metadata } of items) session.io.out(`freeze/${metadata.name}\n`);
    return "done";
  }
  if (items.length === 0) {
    session.note("there is no freeze");
    return "done";
  }
  const now = session.io.now();
  const rows = items.map(({ metadata, spec, status }) => [
    metadata.name,
    spec.clusters ?? "all",
    String(status.clusters),
    formatAge(metadata.creationTimestamp, now),
    spec.until ?? "thawed",
    actText({ by: status.by, at: metadata.creationTimestamp, number: 0, reason: spec.reason }),
  ]);
  const columns = ["NAME", "SELECTOR", "CLUSTERS", "AGE", "UNTIL", ""];
  session.io.out(formatTable({ columns, rows }, { headers: headers === false ? "hide" : "show" }));
  return "done";
}

function readFreezes(session: Session): Promise<ApiList<FreezeObject>> {
  return session.api.call<ApiList<FreezeObject>>({ method: "GET", path: "/v1/freezes" });
}

async function onlyOne(session: Session): Promise<string> {
  const { items } = await readFreezes(session);
  const [first, ...more] = items;
  if (first === undefined) throw new CliFailure("there is no freeze", { exit: "no", next: "starling get freezes" });
  if (more.length === 0) return first.metadata.name;
  const names = items.map(({ metadata }) => metadata.name).join(", ");
  throw usageFailure(`there are several freezes: ${names}; name one`, `starling thaw ${first.metadata.name}`);
}

/** Ends the command with exit 1 if the API refuses, and points to the list of freezes. */
async function refusedByHand<Answer>(call: () => Promise<Answer>): Promise<Answer> {
  try {
    return await call();
  } catch (error) {
    if (!(error instanceof ApiFailure) || (error.code !== "NotFound" && error.code !== "Conflict")) throw error;
    throw new CliFailure(error.message, { exit: "no", next: "starling get freezes" });
  }
}

function thawedText(lifted: FreezeObject, held: FreezeAnswer["held"]): string {
  if (held === undefined) return `no longer frozen: ${clustersText(lifted)}`;
  const by = held.by.map((name) => `freeze/${name}`).join(", ");
  const free = lifted.status.clusters - held.clusters;
  if (free <= 0) return `still frozen by ${by}: ${clustersText(lifted)}`;
  return `no longer frozen: ${free} of ${clustersText(lifted)}; still frozen by ${by}: ${held.clusters}`;
}

function coverText(freeze: FreezeObject): string {
  return `nothing is written to ${clustersText(freeze)}`;
}

function clustersText({ spec, status }: FreezeObject): string {
  const word = status.clusters === 1 ? "cluster" : "clusters";
  return `${status.clusters} ${word} (${spec.clusters ?? "all"})`;
}

function untilText({ spec: { until } }: FreezeObject): string {
  return until === undefined ? "" : `, until ${until}`;
}

/** @throws CliFailure for a name with a slash, because the gateway has no route for one and does not say why. */
function pathOf(name: string): string {
  if (name.includes("/")) throw usageFailure(`NAME is "${name}"; expected only a-z, 0-9 and -`, "starling get freezes");
  return `/v1/freezes/${pathSegment(name)}`;
}
