/** Finds the view of a path, and the text when there is none. */

import { defined } from "#shared/base/defined.ts";
import { errorMessage } from "#shared/base/errors.ts";
import { isPlainPath } from "#shared/base/path-segment.ts";
import { type Ask, Refusal } from "#shared/pages/ask.ts";
import { clusterPage, clustersPage } from "#shared/pages/clusters-page.ts";
import { allEventsPage, eventsPage } from "#shared/pages/events-page.ts";
import { fleetPage } from "#shared/pages/fleet-page.ts";
import { historyPage } from "#shared/pages/history-page.ts";
import { modulePage } from "#shared/pages/module-page.ts";
import { ownerPage } from "#shared/pages/owner-page.ts";
import { receiverPage, receiversPage } from "#shared/pages/receivers-page.ts";
import { rolloutsPage } from "#shared/pages/rollouts-page.ts";
import { sourcesPage } from "#shared/pages/sources-page.ts";
import { syncPage } from "#shared/pages/sync-page.ts";
import { targetsPage } from "#shared/pages/targets-page.ts";
import { timelinePage } from "#shared/pages/timeline-page.ts";
import { versionsPage } from "#shared/pages/versions-page.ts";
import { type Host, html, type View } from "#shared/pages/view.ts";
import { missingRight } from "#shared/words/missing-right.ts";

export interface ViewRequest {
  /** The path below the root of the pages. */
  readonly path: string;
  readonly query: Readonly<Record<string, string>>;
}

export interface PageAnswer extends View {
  /** The HTTP status. */
  readonly status: number;
  /** A fault that is not the user's, for the log. */
  readonly fault?: string;
}

/** The pages in the navigation. */
export const startPages = [
  { path: "/", name: "Fleet", key: "f" },
  { path: "/versions", name: "Versions", key: "v" },
  { path: "/clusters", name: "Clusters", key: "c" },
  { path: "/sources", name: "Sources", key: "s" },
  { path: "/receivers", name: "Receivers", key: "r" },
  { path: "/timeline", name: "Timeline", key: "t" },
  { path: "/events", name: "Events", key: "e" },
] as const;

/** Never throws. An error becomes a view, too. */
export async function answerPage(ask: Ask, request: ViewRequest, host: Host): Promise<PageAnswer> {
  try {
    const view = viewOf(request);
    if (view === undefined)
      return errorView(404, "This page does not exist", "Its address may belong to another version of Starling.");
    return { status: 200, ...(await view(named(ask), host)) };
  } catch (error) {
    return errorViewOf(error, request);
  }
}

/** The API did not answer: the connection failed, or the time ran out. */
class Silence extends Error {}

/**
 * Names the request in an error, because a page makes several. The address comes from a stranger, and its segments
 * become segments of API paths. A segment must not lead to another path, which would be requested with the user's
 * permissions.
 */
function named(ask: Ask): Ask {
  return async <T>(path: string, query?: Parameters<Ask>[1]) => {
    if (!isPlainPath(path)) throw new Refusal(404, "no object has this name");
    try {
      return await ask<T>(path, query);
    } catch (error) {
      if (error instanceof Refusal) throw error.status === 403 ? denied(error, path) : error;
      throw new Silence(`GET ${path}: ${errorMessage(error)}`, { cause: error });
    }
  };
}

/** Adds the missing permission, unless the message already contains it. */
function denied({ status, message, code, correlationId }: Refusal, path: string): Refusal {
  const right = missingRight("GET", path);
  const text = message.includes(right) ? message : `${message}: ${right}`;
  return new Refusal(status, text, defined({ code, correlationId }));
}

function errorViewOf(error: unknown, { path }: ViewRequest): PageAnswer {
  if (error instanceof Silence) {
    return { ...errorView(502, "The API did not answer", error.message), fault: `${path}: ${error.message}` };
  }
  if (!(error instanceof Refusal)) {
    const text = errorMessage(error);
    return {
      ...errorView(500, "This page could not be rendered", text),
      fault: `${path}: could not be rendered: ${text}`,
    };
  }
  const { status, message } = error;
  if (status === 403) return errorView(403, "You are not allowed to see this", message);
  if (status === 404) return errorView(404, "This object does not exist", message);
  const what = answerText(error);
  if (status < 500 && status !== 429) return errorView(status, "The API refused the request", `${message} (${what})`);
  return { ...errorView(status, "The API failed", `${message} (${what})`), fault: `${path}: ${what}: ${message}` };
}

/** `status 503, Unavailable, id api-...`, for a search in the installation's logs. */
function answerText({ status, code, correlationId }: Refusal): string {
  const id = correlationId === undefined ? [] : [`id ${correlationId}`];
  return [`status ${status}`, ...(code === undefined ? [] : [code]), ...id].join(", ");
}

function viewOf({ path, query }: ViewRequest): ((ask: Ask, host: Host) => Promise<View>) | undefined {
  const [first = "", ...rest] = path.split("/").slice(1).map(decoded);
  const [one, two, three, four] = rest;
  if (first === "" && one === undefined) return (ask, host) => fleetPage(ask, host);
  if (one === undefined) {
    if (first === "versions") return (ask, host) => versionsPage(ask, host);
    if (first === "clusters") return (ask, host) => clustersPage(ask, query, host);
    if (first === "timeline") return (ask, host) => timelinePage(ask, query, host);
    if (first === "sources") return (ask, host) => sourcesPage(ask, query, host);
    if (first === "receivers") return (ask, host) => receiversPage(ask, query, host);
    if (first === "events") return (ask, host) => allEventsPage(ask, query, host);
    return undefined;
  }
  if (first === "clusters" && two === undefined) return (ask, host) => clusterPage(ask, { name: one, query }, host);
  if (first === "clusters" && two === "objects" && rest.length === 2) {
    return (ask, host) => ownerPage(ask, { cluster: one, query }, host);
  }
  if (first === "clusters" && two === "syncs" && three !== undefined && four !== undefined && rest.length === 4) {
    return (ask, host) => syncPage(ask, { cluster: one, namespace: three, name: four, query }, host);
  }
  if (first === "sources" && two !== undefined && three === undefined) {
    return (ask, host) => modulePage(ask, { namespace: one, source: two, path: query.path }, host);
  }
  if (first === "receivers" && two !== undefined && three === undefined) {
    return (ask, host) => receiverPage(ask, { namespace: one, name: two }, host);
  }
  if ((first !== "syncgroups" && first !== "syncs") || two === undefined) return undefined;
  const owner = { kind: first === "syncs" ? "Sync" : "SyncGroup", namespace: one, name: two } as const;
  if (three === undefined) return (ask, host) => rolloutsPage(ask, owner, host);
  if (three === "history" && rest.length === 3) return (ask, host) => historyPage(ask, { owner, query }, host);
  if (three === "events" && rest.length === 3) return (ask, host) => eventsPage(ask, { owner, query }, host);
  if (three === "clusters" && rest.length === 3) return (ask, host) => targetsPage(ask, { owner, query }, host);
  return undefined;
}

/** A text that is not valid encoding stays as it is; no object has such a name. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function errorView(status: number, title: string, message: string): PageAnswer {
  return { status, title, main: html`<h1>${title}</h1><p class="remark">${message}</p>` };
}
