/** Rollouts over time, for comparing with graphs of the same time. */
import type { RolloutObject } from "#shared/fleet/api/objects.ts";
import { isUnreadable, type UnreadableObject } from "#shared/fleet/api/unreadable-object.ts";
import type { Ask } from "#shared/pages/ask.ts";
import { apiPath, ownerPagePlace } from "#shared/pages/places.ts";
import { readPages } from "#shared/pages/read-pages.ts";
import {
  age,
  badge,
  type Child,
  count,
  type Host,
  type Html,
  html,
  nothing,
  table,
  type View,
} from "#shared/pages/view.ts";
import { formatTime } from "#shared/words/age.ts";
import { objectState } from "#shared/words/object-state.ts";
import { revisionText } from "#shared/words/revision-text.ts";

const hourMs = 3_600_000;
/** The time span by default. */
const defaultHours = 24;
const shown = 50;
/** The limit of pages, with a hundred groups each. */
const mostPages = 5;

interface Span {
  readonly from: number;
  readonly to: number;
}

/**
 *
 * @param query.from, query.to - ISO times; default: the last day.
 * @param query.group - `NAMESPACE/NAME` shows all its rollouts; default: the newest rollout of each group.
 */
export async function timelinePage(ask: Ask, query: Readonly<Record<string, string>>, host: Host): Promise<View> {
  const span = spanOf(query, host.now);
  const [namespace, name] = (query.group ?? "").split("/");
  const path =
    namespace === undefined || name === undefined
      ? "/v1/rollouts"
      : `${apiPath({ kind: "SyncGroup", namespace, name })}/rollouts`;
  const limit = name === undefined ? "100" : String(shown);
  const most = name === undefined ? mostPages : 1;
  const read = await readPages<RolloutObject | UnreadableObject<"Rollout">>(ask, {
    path,
    query: { limit },
    mostPages: most,
  });
  const within = read.items
    .flatMap((rollout) => (isUnreadable(rollout) ? [] : [rollout]))
    .filter((rollout) => startOf(rollout) <= span.to && endOf(rollout, span.to) >= span.from)
    .toSorted((a, b) => startOf(b) - startOf(a));
  const rows = within.slice(0, shown).map((rollout) => rowOf(rollout, span, host));
  const time = (at: number) => formatTime(new Date(at).toISOString(), host.now);
  const whose = name === undefined ? "The newest rollout of each group" : `Rollouts of ${namespace}/${name}`;
  return {
    title: "Rollouts in time",
    main: html`<h1>Rollouts in time</h1>
${read.isCut ? html`<p class="remark">This page covers ${name === undefined ? `the first ${count(read.items.length)} groups` : `the newest ${count(read.items.length)} rollouts`}; there are more.</p>` : ""}
<p>${whose}, from ${time(span.from)} to ${time(span.to)}${within.length > shown ? `; the last ${shown} of ${count(within.length)}` : ""}.</p>
${rows.length === 0 ? nothing("There were no rollouts in this time.") : table("Rollouts in this time, the newest first", columns, rows)}`,
  };
}

const columns = [
  "State",
  "Group",
  "Revision",
  ["When", "text"],
  "Began",
  "Age",
  "Took",
  ["Clusters", "number"],
] as const;

function rowOf(rollout: RolloutObject, span: Span, host: Host): Child[] {
  const { owner, revision } = rollout.spec;
  const { endedAt, size } = rollout.status;
  const began = rollout.metadata.creationTimestamp;
  return [
    badge(objectState(rollout).word),
    host.link(ownerPagePlace(owner), `${owner.namespace}/${owner.name}`),
    revisionText(revision),
    timeBar(rollout, span),
    began === undefined ? "-" : formatTime(began, host.now),
    age(began, host),
    began === undefined || endedAt === undefined ? "in progress" : age(began, { ...host, now: new Date(endedAt) }),
    count(size),
  ];
}

/** The width is the whole span. A rollout that began before the span, or is still in progress, extends to its edge. */
function timeBar(rollout: RolloutObject, { from, to }: Span): Html {
  const place = (at: number) => (Math.min(1, Math.max(0, (at - from) / (to - from))) * 1000).toFixed(1);
  const [start, end] = [place(startOf(rollout)), place(endOf(rollout, to))];
  const width = Math.max(4, Number(end) - Number(start)).toFixed(1);
  const x = Math.min(Number(start), 996).toFixed(1);
  const halts = rollout.status.transitions
    .filter(({ phase }) => phase === "Halted")
    .map(({ at }) => place(Date.parse(at)));
  const tone = halts.length > 0 ? "bad" : rollout.status.endedAt === undefined ? "busy" : "good";
  const words = halts.length > 0 ? "halted" : rollout.status.endedAt === undefined ? "in progress" : "complete";
  return html`<svg class="bar" role="img" aria-label="${words}" viewBox="0 0 1000 10" preserveAspectRatio="none"><rect class="${tone}" x="${x}" y="0" width="${width}" height="10"></rect></svg>`;
}

function startOf(rollout: RolloutObject): number {
  return Date.parse(rollout.metadata.creationTimestamp ?? "");
}

function endOf({ status }: RolloutObject, to: number): number {
  return status.endedAt === undefined ? to : Date.parse(status.endedAt);
}

function spanOf({ from, to }: Readonly<Record<string, string>>, now: Date): Span {
  const [start, end] = [Date.parse(from ?? ""), Date.parse(to ?? "")];
  if (start < end) return { from: start, to: end };
  return { from: now.getTime() - defaultHours * hourMs, to: now.getTime() };
}
