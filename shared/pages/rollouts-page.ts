/** The page of an owner's rollout: the state of its stages, waits, unhealthy clusters, and history. */
import type {
  ApiList,
  EventItem,
  RolloutObject,
  SyncGroupObject,
  SyncObject,
  TargetItem,
} from "#shared/fleet/api/objects.ts";
import type { OverviewStage, OverviewStageRun, RolloutOverview } from "#shared/fleet/api/rollout-overview.ts";
import { isUnreadable, type UnreadableObject } from "#shared/fleet/api/unreadable-object.ts";
import { selectsGroup } from "#shared/fleet/kinds/group-selection.ts";
import type { Owner } from "#shared/fleet/rows/keys.ts";
import { isEndedPhase, isStalledPhase } from "#shared/fleet/rows/rollout-rows.ts";
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
import { type ListedWindow, readWindows, type WaitsForWindow, windowParts } from "#shared/pages/window-table.ts";
import { causesOf, worstTargetsFirst, zonesAmong } from "#shared/words/causes.ts";
import { objectState } from "#shared/words/object-state.ts";
import { revisionText } from "#shared/words/revision-text.ts";
import {
  type BudgetState,
  budgetOf,
  clearCommand,
  clearEffect,
  phaseWords,
  waitText,
} from "#shared/words/rollout-words.ts";

const eventsShown = "15";
const rolloutsShown = "10";
/** One page of unhealthy targets. The causes cover these; the counts of the stages cover all. */
const troubledQuery = { limit: "500", state: "Failed,Unreachable" };
const mostPages = 1;
const namesOfCause = 3;
const namedTargets = 10;

export async function rolloutsPage(ask: Ask, owner: Owner, host: Host): Promise<View> {
  const path = apiPath(owner);
  const [object, overview, windows, rollouts, events] = await Promise.all([
    ask<SyncGroupObject | SyncObject | UnreadableObject>(path),
    unlessNone(ask<RolloutOverview>(`${path}/rollout`)),
    readWindows(ask),
    unlessNone(ask<ApiList<RolloutObject | UnreadableObject<"Rollout">>>(`${path}/rollouts`, { limit: rolloutsShown })),
    ask<ApiList<EventItem>>(`${path}/events`, { limit: eventsShown }),
  ]);
  const updatingTo = overview?.status.stages.flatMap((stage) => stage.updatingTo?.rollout ?? []) ?? [];
  const troubled = await Promise.all(
    [...new Set(updatingTo)].map((number) =>
      readPages<TargetItem>(ask, { path: `${path}/rollouts/${number}/targets`, query: troubledQuery, mostPages }),
    ),
  );
  const state = objectState(object);
  return {
    title: `${owner.namespace}/${owner.name}`,
    main: html`<h1>${owner.namespace}/${owner.name} ${badge(state.word)}</h1>
${state.remark === "" ? "" : html`<p class="remark">${state.remark}</p>`}
${overview === undefined ? nothing("There was no rollout yet.") : overviewParts(overview, host)}
${windowParts(windowsOver(windows, object, owner), { waits: windowWaitsIn(overview), host })}
${problem(troubled, { owner, host, all: troubledIn(overview) })}
${planParts(owner)}
<h2>History</h2>
<p>${rollouts?.metadata.continue === undefined ? host.link(historyPlace(owner), "With commits and authors") : html`This shows the newest ${count(rollouts.items.length)}; see ${host.link(historyPlace(owner), "all rollouts, with commits and authors")}.`}</p>
${history(rollouts?.items ?? [], { owner, host })}
<h2>Events</h2>
${eventTable(events.items, host)}
<p>${events.metadata.continue === undefined ? host.link(eventsPlace(owner), "All events") : html`This shows the newest ${count(events.items.length)}; see ${host.link(eventsPlace(owner), "all events")}.`}</p>`,
  };
}

function windowsOver(
  windows: readonly ListedWindow[],
  { metadata }: SyncGroupObject | SyncObject | UnreadableObject,
  { namespace, name }: Owner,
): readonly ListedWindow[] {
  const labels = ("labels" in metadata ? metadata.labels : undefined) ?? {};
  return windows.filter(
    (window) =>
      isUnreadable(window) ||
      window.spec.groups === undefined ||
      selectsGroup(window.spec.groups, { namespace, name, labels }),
  );
}

function windowWaitsIn(overview: RolloutOverview | undefined): readonly WaitsForWindow[] {
  return (overview?.status.waits ?? []).flatMap(({ reason, blocker = "", clusters, stage = "catching up" }) =>
    reason === "window" ? [{ window: blocker, clusters: clusters?.count ?? 0, who: stage }] : [],
  );
}

function overviewParts({ spec, status }: RolloutOverview, host: Host): Html {
  const { owner, strategy } = spec;
  const { rollouts, stages, slots, catchUps, waits, desired } = status;
  const came = Object.entries(catchUps).filter(([, many]) => typeof many === "number" && many > 0);
  const catchingUp = came.map(([word, many]) => `${word} ${many}`).join(", ");
  const rows = waits.map((wait): Child[] => [
    wait.stage ?? "all",
    wait.reason,
    age(wait.since, host),
    brief(waitText(wait, host.now), 240),
    wait.clear.map((one) => {
      const effect = clearEffect(one, wait);
      return html`${command(clearCommand(one, owner))}${effect === undefined ? "" : ` (${effect})`} `;
    }),
  ]);
  return html`<p>${count(slots.used)} of ${count(slots.bound)} changing (maxConcurrent ${strategy.maxConcurrent}), at most ${strategy.maxFailures} failed and ${strategy.maxUnreachable} unreachable in each stage${catchingUp === "" ? "" : `; catching up: ${catchingUp}`}${desired === undefined ? "" : `; desired, but not started yet: ${revisionText(desired)}`}</p>
<h2>Stages</h2>
${stageTable(stages, { owner, host })}
<h2>Rollouts in progress</h2>
${rolloutTable(rollouts, stages, host)}
<h2>Waits for</h2>
${
  rows.length === 0
    ? nothing("It waits for nothing.")
    : table("Waits", ["Stage", "Wait", "Since", ["Why", "text"], ["Cleared by", "text"]], rows)
}`;
}

interface About {
  readonly owner: Owner;
  readonly host: Host;
}

function stageTable(stages: readonly OverviewStage[], { owner, host }: About): Html {
  const rows = stages.map((stage, at): Child[] => {
    const { name, members, current, updatingTo, passed, changing } = stage;
    const stageRun = updatingTo ?? passed;
    const place = (number: number) => targetsPlace(owner, { number: String(number), stage: name });
    return [
      `${at + 1} ${name}`,
      count(members),
      current === undefined ? "-" : `${current}`,
      updatingTo === undefined ? "" : html`<b>${updatingTo.rollout}</b>`,
      stageRun === undefined ? "" : html`${bar(sharesOf(stageRun))}`,
      stageRun === undefined
        ? "-"
        : host.link(
            place(stageRun.rollout),
            `${count(stageRun.counts.Succeeded + stageRun.counts.Unchanged)}/${count(stageRun.size)}`,
          ),
      budget(stageRun, "Failed"),
      budget(stageRun, "Unreachable"),
      count(changing),
      stageState(stage),
      age(updatingTo?.since ?? passed?.endedAt, host),
      brief(updatingTo?.message ?? ""),
    ];
  });
  const columns: readonly Column[] = [
    "Stage",
    ["Clusters", "number"],
    "Current",
    "Updating to",
    "Progress",
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

/** The shares of one stage run, which together are its size. */
function sharesOf({ counts, size }: Pick<OverviewStageRun, "counts" | "size">): readonly Share[] {
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

/** `1/2`: the spent and the allowed number. */
function budget(stageRun: OverviewStageRun | undefined, state: BudgetState): string {
  if (stageRun === undefined) return "-";
  const { spent, allowed } = budgetOf(stageRun, state);
  return allowed === undefined ? count(spent) : `${count(spent)}/${count(allowed)}`;
}

function stageState({ updatingTo, members, current }: OverviewStage): Html {
  if (updatingTo !== undefined && !isEndedPhase(updatingTo.phase)) {
    const tone = isStalledPhase(updatingTo.phase) ? "bad" : "busy";
    return html`<span class="state ${tone}">${phaseWords[updatingTo.phase]}</span>`;
  }
  if (members === 0) return html`<span class="state rest">empty</span>`;
  return current === undefined
    ? html`<span class="state busy">waiting</span>`
    : html`<span class="state good">passed</span>`;
}

function rolloutTable(
  rollouts: RolloutOverview["status"]["rollouts"],
  stages: readonly OverviewStage[],
  host: Host,
): Html {
  const rows = rollouts.map(({ number, revision, at, phase }): Child[] => {
    const current = stages.filter((stage) => stage.current === number);
    const through = stages.filter(({ updatingTo }) => updatingTo?.rollout === number);
    return [
      `${number}`,
      revisionText(revision),
      age(at, host),
      badge(phase),
      through.map(({ name }) => name).join(", "),
      current.map(({ name }) => name).join(", "),
      count(current.reduce((sum, { members }) => sum + members, 0)),
    ];
  });
  const columns: readonly Column[] = [
    "Rollout",
    "Revision",
    "Age",
    "State",
    "Goes through",
    "Current in",
    ["Clusters", "number"],
  ];
  return table("Rollouts in progress, newest first", columns, rows);
}

/** The failed and unreachable targets of the rollouts in progress, including those in stages that have passed. */
function troubledIn(overview: RolloutOverview | undefined): number {
  const stages = overview?.status.stages ?? [];
  const updatingTo = new Set(stages.flatMap((stage) => stage.updatingTo?.rollout ?? []));
  const stageRuns = stages.flatMap((stage) => [stage.updatingTo ?? [], stage.passed ?? []].flat());
  return stageRuns
    .filter(({ rollout }) => updatingTo.has(rollout))
    .reduce((sum, { counts }) => sum + counts.Failed + counts.Unreachable, 0);
}

function problem(
  found: readonly PagesRead<TargetItem>[],
  { owner, host, all }: About & { readonly all: number },
): Html {
  const targets = worstTargetsFirst(found.flatMap(({ items }) => items));
  const isCut = found.some((each) => each.isCut);
  const named = zonesAmong(targets).others.slice(0, namedTargets);
  const unnamed = targets.length - named.length;
  if (targets.length === 0 && !isCut) return html``;
  const rows = causesOf(targets).map(({ word, detail, targets: those }): Child[] => {
    const names = those.slice(0, namesOfCause).map(({ cluster }) => cluster);
    const more = those.length > namesOfCause ? ` and ${count(those.length - namesOfCause)} more` : "";
    return [html`<b>${word}</b>`, brief(detail, 240), count(those.length), `${names.join(", ")}${more}`];
  });
  const columns: readonly Column[] = ["Cause", ["Why", "text"], ["Clusters", "number"], ["Which", "text"]];
  return html`<h2>Problems</h2>
${isCut ? html`<p class="remark">This shows ${count(targets.length)} of ${count(Math.max(all, targets.length))} clusters; see ${host.link(targetsPlace(owner, { state: "Failed,Unreachable" }), "all clusters")}.</p>` : ""}
${table("Causes, the most common first", columns, rows)}
${named.length === 0 ? "" : targetRows(named, { owner, host })}
${unnamed > 0 && !isCut ? html`<p>And ${count(unnamed)} more ${unnamed === 1 ? "cluster" : "clusters"}: ${host.link(targetsPlace(owner, { state: "Failed,Unreachable" }), "all of them")}.</p>` : ""}`;
}

function history(rollouts: readonly (RolloutObject | UnreadableObject<"Rollout">)[], { owner, host }: About): Html {
  const rows = rollouts.map((rollout): Child[] => {
    const state = objectState(rollout);
    if (isUnreadable(rollout)) return [badge(state.word), rollout.metadata.name, "", "", "", "", state.remark];
    const { number, revision, trigger } = rollout.spec;
    const place = targetsPlace(owner, { number: String(number) });
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
    "Rollout",
    "Revision",
    "Trigger",
    "Age",
    ["Clusters", "number"],
    ["Remark", "text"],
  ];
  return rows.length === 0 ? nothing("No rollouts yet.") : table("Rollouts, newest first", columns, rows);
}
