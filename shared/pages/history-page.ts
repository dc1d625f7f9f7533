/** The history of an owner: the commits in each rollout, who started it, and links to the forge. */
import type { CommitItem, ListedHistory, TemplateHistory } from "#shared/fleet/api/history-item.ts";
import type { ApiList } from "#shared/fleet/api/objects.ts";
import type { Owner } from "#shared/fleet/rows/keys.ts";
import type { Ask } from "#shared/pages/ask.ts";
import { nextPage } from "#shared/pages/next-page.ts";
import { apiPath, historyPlace, ownerPagePlace, targetsPlace } from "#shared/pages/places.ts";
import {
  age,
  badge,
  brief,
  type Child,
  type Column,
  count,
  type Host,
  type Html,
  html,
  nothing,
  outside,
  table,
  type View,
} from "#shared/pages/view.ts";
import { objectState } from "#shared/words/object-state.ts";
import { revisionText } from "#shared/words/revision-text.ts";

const shown = "20";

interface Asked {
  readonly owner: Owner;
  readonly query: Readonly<Record<string, string>>;
}

export async function historyPage(ask: Ask, { owner, query }: Asked, host: Host): Promise<View> {
  const list = await readHistory(ask, owner, { limit: shown, continue: query.continue });
  const name = `${owner.namespace}/${owner.name}`;
  return {
    title: `${name}: history`,
    main: html`<h1>${host.link(ownerPagePlace(owner), name)}: history</h1>
${historyTable(list.items, { owner, host })}
${nextPage(historyPlace(owner), list.metadata.continue, host)}`,
  };
}

export function readHistory(
  ask: Ask,
  owner: Owner,
  query: Readonly<Record<string, string | undefined>>,
): Promise<ApiList<ListedHistory>> {
  return ask(`${apiPath(owner)}/history`, query);
}

export function historyTable(
  items: readonly ListedHistory[],
  { owner, host }: { readonly owner: Owner; readonly host: Host },
): Html {
  if (items.length === 0) return nothing("No rollouts yet.");
  const onCluster = items.some((item) => "onCluster" in item);
  const rows = items.map((item): Child[] => {
    if (!("number" in item))
      return [badge(item.status.state), item.metadata.name, "", "", "", "", objectState(item).remark];
    const { number, phase, trigger, at, clusters, templates } = item;
    return [
      badge(onCluster ? (item.onCluster?.state ?? "Pending") : phase),
      host.link(targetsPlace(owner, { number: String(number) }), `${number}`),
      age(at, host),
      trigger,
      `${count(clusters.done)}/${count(clusters.size)}`,
      count(clusters.failed),
      html`<ul class="commits">${templates.map((template) => templateLine(template, host))}</ul>`,
    ];
  });
  const columns: readonly Column[] = [
    onCluster ? "Here" : "State",
    "Rollout",
    "Age",
    "Trigger",
    ["Done", "number"],
    ["Failed", "number"],
    ["Content", "text"],
  ];
  return table("Rollouts, newest first", columns, rows);
}

function templateLine(
  { name, revision, commit, from, commits, more, compare, besides = [] }: TemplateHistory,
  host: Host,
): Html {
  const shownCommits = commits ?? (commit === undefined ? [] : [commit]);
  const rest = more === undefined ? "" : html`<li>and ${count(more)} more</li>`;
  const all = compare === undefined ? "" : html` ${outside(compare, "changes")}`;
  const values = besides.map(
    ({ source, revision: at, from: had }) => html`<li>values of ${source}: ${revisionText(at)}${since(had)}</li>`,
  );
  const lines = [...shownCommits.map((one) => commitLine(one, host)), rest, ...values];
  return html`<li>${name}: ${revisionText(revision)}${since(from)}${all}${shownCommits.length + values.length === 0 ? "" : html`<ul>${lines}</ul>`}</li>`;
}

function since(from: string | undefined): Child {
  return from === undefined ? "" : html` from ${revisionText(from)}`;
}

function commitLine({ id, revision, title, author, committedAt, link }: CommitItem, host: Host): Html {
  const short = id?.slice(0, 7) ?? revisionText(revision);
  const name = link === undefined ? html`<code>${short}</code>` : outside(link, short);
  return html`<li>${name} ${brief(title, 100)} <small>${brief(author, 60)} ${committedAt === undefined ? "" : age(committedAt, host)}</small></li>`;
}
