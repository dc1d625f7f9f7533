/** The list of Sources. */
import type { ApiList, SourceObject } from "#shared/fleet/api/objects.ts";
import { isUnreadable, type UnreadableObject } from "#shared/fleet/api/unreadable-object.ts";
import { addressOf } from "#shared/fleet/kinds/source.ts";
import type { Ask } from "#shared/pages/ask.ts";
import { nextPage } from "#shared/pages/next-page.ts";
import { modulePlace } from "#shared/pages/places.ts";
import {
  age,
  badge,
  brief,
  type Child,
  type Column,
  type Host,
  type Html,
  html,
  nothing,
  table,
  type View,
} from "#shared/pages/view.ts";
import { objectState } from "#shared/words/object-state.ts";
import { revisionText } from "#shared/words/revision-text.ts";
import { stateRank } from "#shared/words/state-words.ts";

function sourceLink({ metadata: { namespace = "", name } }: SourceObject | UnreadableObject, host: Host): Html {
  return host.link(modulePlace({ namespace, source: name }), `${namespace}/${name}`);
}

export async function sourcesPage(ask: Ask, query: Readonly<Record<string, string>>, host: Host): Promise<View> {
  const list = await ask<ApiList<SourceObject | UnreadableObject<"Source">>>("/v1/sources", {
    limit: "200",
    continue: query.continue,
  });
  const rows = list.items
    .map((source) => ({ source, state: objectState(source) }))
    .sort((a, b) => stateRank(a.state.word) - stateRank(b.state.word))
    .map(({ source, state }): Child[] => [
      badge(state.word),
      sourceLink(source, host),
      isUnreadable(source) ? "-" : revisionText(source.status.artifact?.revision),
      isUnreadable(source) ? "-" : brief(addressOf(source.spec)),
      age(state.since, host),
      age(state.seenAt, host),
      brief(state.remark),
    ]);
  const columns: readonly Column[] = [
    "State",
    "Source",
    "Revision",
    ["URL", "text"],
    "For",
    "Seen",
    ["Remark", "text"],
  ];
  return {
    title: "Sources",
    main: html`<h1>Sources</h1>
${rows.length === 0 ? nothing("There is no Source yet.") : table("Sources, the worst first", columns, rows)}
${nextPage({ path: "/sources", query }, list.metadata.continue, host)}`,
  };
}
