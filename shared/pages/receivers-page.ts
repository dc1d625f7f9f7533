/** The list of Receivers, and one of them. */
import { percentEncode } from "#shared/base/percent-encoding.ts";
import type { ApiList, ReceiverObject } from "#shared/fleet/api/objects.ts";
import { isUnreadable, type UnreadableObject } from "#shared/fleet/api/unreadable-object.ts";
import type { Ask } from "#shared/pages/ask.ts";
import { nextPage } from "#shared/pages/next-page.ts";
import { modulePlace, receiverPlace } from "#shared/pages/places.ts";
import {
  age,
  badge,
  brief,
  type Child,
  type Column,
  command,
  fields,
  type Host,
  type Html,
  html,
  nothing,
  table,
  type View,
} from "#shared/pages/view.ts";
import { objectState } from "#shared/words/object-state.ts";
import { deliveryText, listedText, polledText, refusalText, tokensText } from "#shared/words/receiver-text.ts";
import { stateRank } from "#shared/words/state-words.ts";

type Listed = ReceiverObject | UnreadableObject<"Receiver">;

export async function receiversPage(ask: Ask, query: Readonly<Record<string, string>>, host: Host): Promise<View> {
  const list = await ask<ApiList<Listed>>("/v1/receivers", { limit: "200", continue: query.continue });
  const rows = list.items
    .map((receiver) => ({ receiver, state: objectState(receiver) }))
    .sort((a, b) => stateRank(a.state.word) - stateRank(b.state.word))
    .map(({ receiver, state }): Child[] => {
      const { namespace = "", name } = receiver.metadata;
      return [
        badge(state.word),
        host.link(receiverPlace({ namespace, name }), `${namespace}/${name}`),
        isUnreadable(receiver) ? "-" : receiver.spec.provider,
        isUnreadable(receiver) ? "-" : brief(polledText(receiver.status)),
        isUnreadable(receiver) ? "-" : age(receiver.status.lastDelivery?.at, host),
        age(state.since, host),
        brief(state.remark),
      ];
    });
  const columns: readonly Column[] = [
    "State",
    "Receiver",
    "Provider",
    ["Polls", "text"],
    "Last delivery",
    "For",
    ["Remark", "text"],
  ];
  return {
    title: "Receivers",
    main: html`<h1>Receivers</h1>
${rows.length === 0 ? nothing("There is no Receiver yet.") : table("Receivers, the worst first", columns, rows)}
${nextPage({ path: "/receivers", query }, list.metadata.continue, host)}`,
  };
}

export async function receiverPage(
  ask: Ask,
  { namespace, name }: { readonly namespace: string; readonly name: string },
  host: Host,
): Promise<View> {
  const path = `/v1/namespaces/${percentEncode(namespace)}/receivers/${percentEncode(name)}`;
  const receiver = await ask<Listed>(path);
  const { word, remark } = objectState(receiver);
  return {
    title: `${namespace}/${name}`,
    main: html`<h1>${namespace}/${name} ${badge(word)}</h1>
${remark === "" ? "" : html`<p class="remark">${remark}</p>`}
${isUnreadable(receiver) ? "" : facts(receiver, { namespace, name, host })}`,
  };
}

function facts(
  { spec, status }: ReceiverObject,
  { namespace, name, host }: { readonly namespace: string; readonly name: string; readonly host: Host },
): Html {
  const sources = status.sources.map(
    (source, at): Child => [at === 0 ? "" : ", ", host.link(modulePlace({ namespace, source }), source)],
  );
  const { lastDelivery: delivery, lastRefusal: refusal } = status;
  return fields([
    ["Provider", spec.provider],
    ["URL", status.url],
    ["Sources", listedText(spec)],
    ["Polls", sources.length === 0 ? polledText(status) : sources],
    ["Secrets", spec.secrets?.join(", ")],
    ["Tokens", tokensText(spec)],
    ["Events", spec.events?.join(", ")],
    [
      "Delivered",
      delivery === undefined ? "none within 30 days" : [age(delivery.at, host), ` ago, ${deliveryText(delivery)}`],
    ],
    ["Refused", refusal === undefined ? undefined : [age(refusal.at, host), ` ago, ${refusalText(refusal)}`]],
    ["Deliveries", command(`starling logs receiver/${name} -n ${namespace}`)],
  ]);
}
