/** How a SyncGroup goes through its stages: what each is on, what is waited for, who is in trouble, and what came before. */
import type {
  ApiList,
  EventItem,
  RolloutObject,
  SyncGroupObject,
  SyncObject,
  TargetItem,
} from "#shared/fleet/api/objects.ts";
import type { OverviewLeg, OverviewStage, RolloutOverview } from "#shared/fleet/api/rollout-overview.ts";
import { isUnreadable, type UnreadableObject } from "#shared/fleet/api/unreadable-object.ts";
import type { Subject } from "#shared/fleet/rows/keys.ts";
import { type Ask, unlessNone } from "#shared/pages/ask.ts";
import { eventTable } from "#shared/pages/event-table.ts";
import { planParts } from "#shared/pages/origin-parts.ts";
import { apiPath, eventsPlace, historyPlace, targetsPlace } from "#shared/pages/places.ts";
import { type PagesRead, readPages } from "#shared/pages/read-pages.ts";
import { targetRows } from "#shared/pages/targets-page.ts";
import {
  age,
  badge,
  bar,
  brief,
  type Child,
  type Column,
  command,
  count,
  type Host,
  type Html,
  html,
  nothing,
  type Share,
  table,
  type View,
} from "#shared/pages/view.ts";
import { causesOf, worstFirst } from "#shared/words/causes.ts";
import { objectState } from "#shared/words/object-state.ts";
import { revisionText } from "#shared/words/revision-text.ts";
import { type BudgetState, budgetOf, clearCommand, phaseWords, waitText } from "#shared/words/rollout-words.ts";

const eventsShown = "15";
const rolloutsShown = "10";
/** In trouble, of one page: causes are told of these, and the counts of stages of all. */
const troubledQuery = { limit: "500", state: "Failed,Unreachable" };
const mostPages = 1;
const namesOfCause = 3;
const namedTargets = 10;

export async function subjectPage(ask: Ask, subject: Subject, host: Host): Promise<View> {
  const path = apiPath(subject);
  const [object, overview, rollouts, events] = await Promise.all([
    ask<SyncGroupObject | SyncObject | UnreadableObject>(path),
    unlessNone(ask<RolloutOverview>(`${path}/rollout`)),
    unlessNone(ask<ApiList<RolloutObject | UnreadableObject<"Rollout">>>(`${path}/rollouts`, { limit: rolloutsShown })),
    ask<ApiList<EventItem>>(`${path}/events`, { limit: eventsShown }),
  ]);
  const moving = overview?.status.stages.flatMap((stage) => stage.moving?.content ?? []) ?? [];
  const troubled = await Promise.all(
    [...new Set(moving)].map((number) =>
      readPages<TargetItem>(ask, { path: `${path}/rollouts/${number}/targets`, query: troubledQuery, mostPages }),
    ),
  );
  const state = objectState(object);
  return {
    title: `${subject.namespace}/${subject.name}`,
    main: html`<h1>${subject.namespace}/${subject.name} ${badge(state.word)}</h1>
${state.remark === "" ? "" : html`<p class="remark">${state.remark}</p>`}
${overview === undefined ? nothing("Nothing was rolled out yet.") : overviewParts(overview, host)}
${trouble(troubled, { subject, host, all: troubledIn(overview) })}
${planParts(subject)}
<h2>History</h2>
<p>${rollouts?.metadata.continue === undefined ? host.link(historyPlace(subject), "With commits and authors") : html`The newest ${count(rollouts.items.length)}: ${host.link(historyPlace(subject), "all of them, with commits and authors")}.`}</p>
${history(rollouts?.items ?? [], { subject, host })}
<h2>Events</h2>
${eventTable(events.items, host)}
<p>${events.metadata.continue === undefined ? host.link(eventsPlace(subject), "All events") : html`The newest ${count(events.items.length)}: ${host.link(eventsPlace(subject), "all events")}.`}</p>`,
  };
}

function overviewParts({ spec, status }: RolloutOverview, host: Host): Html {
  const { subject, strategy } = spec;
  const { contents, stages, slots, arrivals, waits, wanted } = status;
  const came = Object.entries(arrivals).filter(([, many]) => typeof many === "number" && many > 0);
  const arriving = came.map(([word, many]) => `${word} ${many}`).join(", ");
  const rows = waits.map((wait): Child[] => [
    wait.stage ?? "all",
    wait.on,
    age(wait.since, host),
    brief(waitText(wait, host.now), 240),
    wait.clear.map((one) => html`${command(clearCommand(one, subject))} `),
  ]);
  return html`<p>${count(slots.used)} of ${count(slots.bound)} changing (maxConcurrent ${strategy.maxConcurrent}), failures ${strategy.maxFailures} and unreachable ${strategy.maxUnreachable} in a stage${arriving === "" ? "" : `; arrivals: ${arriving}`}${wanted === undefined ? "" : `; wanted and not taken yet: ${revisionText(wanted)}`}</p>
<h2>Stages</h2>
${stageTable(stages, { subject, host })}
<h2>Contents under way</h2>
${contentTable(contents, stages, host)}
<h2>Waits for</h2>
${
  rows.length === 0
    ? nothing("Nothing.")
    : table("What is waited for", ["Stage", "For", "Since", ["Why", "text"], ["Cleared by", "text"]], rows)
}`;
}

interface About {
  readonly subject: Subject;
  readonly host: Host;
}

function stageTable(stages: readonly OverviewStage[], { subject, host }: About): Html {
  const rows = stages.map((stage, at): Child[] => {
    const { name, members, on, moving, passed, changing } = stage;
    const leg = moving ?? passed;
    const place = (number: number) => targetsPlace(subject, { number: String(number), stage: name });
    return [
      `${at + 1} ${name}`,
      count(members),
      on === undefined ? "-" : `${on}`,
      moving === undefined ? "" : html`<b>${moving.content}</b>`,
      leg === undefined ? "" : html`${bar(sharesOf(leg))}`,
      leg === undefined
        ? "-"
        : host.link(place(leg.content), `${count(leg.counts.Succeeded + leg.counts.Unchanged)}/${count(leg.size)}`),
      budget(leg, "Failed"),
      budget(leg, "Unreachable"),
      count(changing),
      stageState(stage),
      age(moving?.since ?? passed?.endedAt, host),
      brief(moving?.message ?? ""),
    ];
  });
  const columns: readonly Column[] = [
    "Stage",
    ["Clusters", "number"],
    "On",
    "Moves to",
    "How far",
    ["Done", "number"],
    ["Failed", "number"],
    ["Unreachable", "number"],
    ["Changing", "number"],
    "State",
    "For",
    ["Remark", "text"],
  ];
  return table("Stages in their order", columns, rows);
}

/** Of one leg, together its size. */
function sharesOf({ counts, size }: Pick<OverviewLeg, "counts" | "size">): readonly Share[] {
  const done = counts.Succeeded + counts.Unchanged;
  const rest = size - done - counts.Failed - counts.Unreachable - counts.Assigned;
  return [
    { tone: "good", name: "done", count: done },
    { tone: "bad", name: "failed", count: counts.Failed },
    { tone: "bad", name: "unreachable", count: counts.Unreachable },
    { tone: "busy", name: "changing", count: counts.Assigned },
    { tone: "rest", name: "to come", count: Math.max(0, rest) },
  ];
}

/** `1/2`: so many of those that are allowed. */
function budget(leg: OverviewLeg | undefined, state: BudgetState): string {
  if (leg === undefined) return "-";
  const { spent, allowed } = budgetOf(leg, state);
  return allowed === undefined ? count(spent) : `${count(spent)}/${count(allowed)}`;
}

function stageState({ moving, members, on }: OverviewStage): Html {
  if (moving !== undefined && moving.phase !== "Passed" && moving.phase !== "Superseded") {
    const tone = moving.phase === "Moving" ? "busy" : "bad";
    return html`<span class="state ${tone}">${phaseWords[moving.phase]}</span>`;
  }
  if (members === 0) return html`<span class="state rest">empty</span>`;
  return on === undefined
    ? html`<span class="state busy">waiting</span>`
    : html`<span class="state good">passed</span>`;
}

function contentTable(
  contents: RolloutOverview["status"]["contents"],
  stages: readonly OverviewStage[],
  host: Host,
): Html {
  const rows = contents.map(({ number, revision, at, phase }): Child[] => {
    const on = stages.filter((stage) => stage.on === number);
    const through = stages.filter(({ moving }) => moving?.content === number);
    return [
      `${number}`,
      revisionText(revision),
      age(at, host),
      badge(phase),
      through.map(({ name }) => name).join(", "),
      on.map(({ name }) => name).join(", "),
      count(on.reduce((sum, { members }) => sum + members, 0)),
    ];
  });
  const columns: readonly Column[] = [
    "Content",
    "Revision",
    "Age",
    "State",
    "Goes through",
    "On",
    ["Clusters", "number"],
  ];
  return table("The newest first", columns, rows);
}

/** Of what goes through stages: those that failed or do not answer, in stages that it has passed, too. */
function troubledIn(overview: RolloutOverview | undefined): number {
  const stages = overview?.status.stages ?? [];
  const moving = new Set(stages.flatMap((stage) => stage.moving?.content ?? []));
  const legs = stages.flatMap((stage) => [stage.moving ?? [], stage.passed ?? []].flat());
  return legs
    .filter(({ content }) => moving.has(content))
    .reduce((sum, { counts }) => sum + counts.Failed + counts.Unreachable, 0);
}

function trouble(
  found: readonly PagesRead<TargetItem>[],
  { subject, host, all }: About & { readonly all: number },
): Html {
  const targets = worstFirst(found.flatMap(({ items }) => items));
  const isCut = found.some((each) => each.isCut);
  const unnamed = targets.length - namedTargets;
  if (targets.length === 0 && !isCut) return html``;
  const rows = causesOf(targets).map(({ word, detail, targets: those }): Child[] => {
    const names = those.slice(0, namesOfCause).map(({ cluster }) => cluster);
    const more = those.length > namesOfCause ? ` and ${count(those.length - namesOfCause)} more` : "";
    return [html`<b>${word}</b>`, brief(detail, 240), count(those.length), `${names.join(", ")}${more}`];
  });
  const columns: readonly Column[] = ["Cause", ["Why", "text"], ["Clusters", "number"], ["Which", "text"]];
  return html`<h2>In trouble</h2>
${isCut ? html`<p class="remark">These are ${count(targets.length)} of ${count(Math.max(all, targets.length))}: ${host.link(targetsPlace(subject, { state: "Failed,Unreachable" }), "all of them")}.</p>` : ""}
${table("Causes, the most common first", columns, rows)}
${targetRows(targets.slice(0, namedTargets), { subject, host })}
${unnamed > 0 && !isCut ? html`<p>And ${count(unnamed)} more ${unnamed === 1 ? "cluster" : "clusters"}: ${host.link(targetsPlace(subject, { state: "Failed,Unreachable" }), "all of them")}.</p>` : ""}`;
}

function history(rollouts: readonly (RolloutObject | UnreadableObject<"Rollout">)[], { subject, host }: About): Html {
  const rows = rollouts.map((rollout): Child[] => {
    const state = objectState(rollout);
    if (isUnreadable(rollout)) return [badge(state.word), rollout.metadata.name, "", "", "", "", state.remark];
    const { number, revision, trigger } = rollout.spec;
    const place = targetsPlace(subject, { number: String(number) });
    return [
      badge(state.word),
      host.link(place, `${number}`),
      revisionText(revision),
      trigger,
      age(rollout.metadata.creationTimestamp, host),
      count(rollout.status.size),
      brief(state.remark),
    ];
  });
  const columns: readonly Column[] = [
    "State",
    "Content",
    "Revision",
    "Trigger",
    "Age",
    ["Clusters", "number"],
    ["Remark", "text"],
  ];
  return rows.length === 0 ? nothing("Nothing yet.") : table("Contents, the newest first", columns, rows);
}
