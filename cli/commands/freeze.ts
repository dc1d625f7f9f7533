import { serialise } from "#cli/format/serialise.ts";
import { formatTable } from "#cli/format/table.ts";
import { isData } from "#cli/output/output.ts";
import { ApiFailure } from "#cli/session/api-client.ts";
import { CliFailure, type ExitReason, usageFailure } from "#cli/session/failure.ts";
import { pathSegment } from "#cli/session/kind-names.ts";
import type { Session } from "#cli/session/session.ts";
import { defined } from "#shared/base/defined.ts";
import type { FreezeObject } from "#shared/fleet/api/freeze-object.ts";
import type { ApiList } from "#shared/fleet/api/objects.ts";
import { durationSeconds } from "#shared/fleet/kinds/quantities.ts";
import { later } from "#shared/fleet/rows/due.ts";
import { formatAge } from "#shared/words/age.ts";
import { actText } from "#shared/words/object-state.ts";

/** Of a freeze that nobody named: who is in a hurry needs none. */
const defaultName = "freeze";

export interface FreezeOptions {
  readonly clusters?: string;
  readonly until?: string;
}

interface FreezeAnswer {
  readonly outcome: "created" | "configured" | "unchanged" | "deleted";
  readonly freeze: FreezeObject;
  /** Absent where nothing else holds them, and from an API that is older. */
  readonly held?: { readonly clusters: number; readonly by: readonly string[] };
}

/** The brake: nothing is written to any cluster that it covers, until it is thawed or its time is over. */
export async function freezeClusters(
  session: Session,
  name: string | undefined,
  options: FreezeOptions,
): Promise<ExitReason> {
  const { reason } = session.options;
  if (reason === undefined) {
    const hint = `starling freeze${name === undefined ? "" : ` ${name}`} --reason "why"`;
    throw usageFailure("everybody who finds it will want to know why: --reason TEXT", hint);
  }
  session.announce();
  const { outcome, freeze: made } = await refusedByHand(() =>
    session.api.call<FreezeAnswer>({
      method: "POST",
      path: pathOf(name ?? defaultName),
      body: {
        reason,
        ...defined({ clusters: options.clusters }),
        ...(options.until === undefined ? {} : { until: timeOf(options.until, session.io.now()) }),
      },
    }),
  );
  const said = outcome === "unchanged" ? "was on already" : outcome === "created" ? "on" : "changed";
  session.io.out(`freeze/${made.metadata.name} ${said}: ${coverText(made)}${untilText(made)}\n`);
  if (made.status.clusters === 0)
    session.note("warning: no registered cluster matches now; see: starling get clusters");
  session.note(`  next: starling thaw ${made.metadata.name}     to let them go on`);
  return "done";
}

/** Lifts a freeze; without a name the only one there is. */
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
  if (held !== undefined) session.note(`  next: starling thaw ${held.by[0]}     to let them go on`);
  return "done";
}

/** `get freezes`: those that are on. */
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
    session.note("nothing is frozen");
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
  const columns = ["NAME", "CLUSTERS", "COVERS", "FOR", "UNTIL", ""];
  session.io.out(formatTable({ columns, rows }, { headers: headers === false ? "hide" : "show" }));
  return "done";
}

function readFreezes(session: Session): Promise<ApiList<FreezeObject>> {
  return session.api.call<ApiList<FreezeObject>>({ method: "GET", path: "/v1/freezes" });
}

async function onlyOne(session: Session): Promise<string> {
  const { items } = await readFreezes(session);
  const [first, ...more] = items;
  if (first === undefined) throw new CliFailure("nothing is frozen", { exit: "no", next: "starling get freezes" });
  if (more.length === 0) return first.metadata.name;
  const names = items.map(({ metadata }) => metadata.name).join(", ");
  throw usageFailure(`which one? there are ${names}`, `starling thaw ${first.metadata.name}`);
}

/** What stands in the way is a no, and the list says more. */
async function refusedByHand<Answer>(call: () => Promise<Answer>): Promise<Answer> {
  try {
    return await call();
  } catch (error) {
    if (!(error instanceof ApiFailure) || (error.code !== "NotFound" && error.code !== "Conflict")) throw error;
    throw new CliFailure(error.message, { exit: "no", next: "starling get freezes" });
  }
}

/** A time, or how long from now. */
function timeOf(text: string, now: Date): string {
  const seconds = durationSeconds(text);
  if (seconds !== undefined) return later(now, seconds);
  const time = Date.parse(text);
  if (/^\d{4}-\d\d-\d\dT/.test(text) && !Number.isNaN(time)) return new Date(time).toISOString();
  throw usageFailure(
    `--until is "${text}"; expected a time or a duration`,
    "--until 2026-11-22T18:00:00Z, or --until 2h",
  );
}

function thawedText(lifted: FreezeObject, held: FreezeAnswer["held"]): string {
  if (held === undefined) return `${clustersText(lifted)} may go on`;
  const by = held.by.map((name) => `freeze/${name}`).join(", ");
  const free = lifted.status.clusters - held.clusters;
  if (free <= 0) return `${clustersText(lifted)} still held by ${by}`;
  return `${free} of ${clustersText(lifted)} may go on, ${held.clusters} still held by ${by}`;
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

/** @throws CliFailure for a name with a slash: no route of the gateway has one, which says no more than that. */
function pathOf(name: string): string {
  if (name.includes("/"))
    throw usageFailure(`a freeze cannot be called "${name}"; use a-z, 0-9 and -`, "starling get freezes");
  return `/v1/freezes/${pathSegment(name)}`;
}
