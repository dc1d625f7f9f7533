/** Which view is where, and what is said when there is none. */

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
import { rolloutsPage } from "#shared/pages/rollouts-page.ts";
import { sourcesPage } from "#shared/pages/sources-page.ts";
import { syncPage } from "#shared/pages/sync-page.ts";
import { targetsPage } from "#shared/pages/targets-page.ts";
import { timelinePage } from "#shared/pages/timeline-page.ts";
import { versionsPage } from "#shared/pages/versions-page.ts";
import { type Host, html, type View } from "#shared/pages/view.ts";
import { missingRight } from "#shared/words/missing-right.ts";

export interface ViewRequest {
  /** Below the root of the pages. */
  readonly path: string;
  readonly query: Readonly<Record<string, string>>;
}

export interface PageAnswer extends View {
  /** Of HTTP. */
  readonly status: number;
  /** What went wrong that is nobody's mistake, for a log. */
  readonly fault?: string;
}

/** Those that lead everywhere else. */
export const startPages = [
  { path: "/", name: "Fleet", key: "f" },
  { path: "/versions", name: "Versions", key: "v" },
  { path: "/clusters", name: "Clusters", key: "c" },
  { path: "/sources", name: "Sources", key: "s" },
  { path: "/timeline", name: "Timeline", key: "t" },
  { path: "/events", name: "Events", key: "e" },
] as const;

/** Never throws: what went wrong is a view, too. */
export async function answerPage(ask: Ask, request: ViewRequest, host: Host): Promise<PageAnswer> {
  try {
    const view = viewOf(request);
    if (view === undefined) return reported(404, "There is no such page", "Its address may be of another version.");
    return { status: 200, ...(await view(named(ask), host)) };
  } catch (error) {
    return reportOf(error, request);
  }
}

/** Nobody answered: a connection that failed, or time that ran out. */
class Silence extends Error {}

/**
 * What was asked for is said with what went wrong: a page asks for several things. An address is a stranger's, and its parts
 * become parts of paths: none leads to another path, which would be asked with the rights of whoever looks.
 */
function named(ask: Ask): Ask {
  return async <T>(path: string, query?: Parameters<Ask>[1]) => {
    if (!isPlainPath(path)) throw new Refusal(404, "nothing is called so");
    try {
      return await ask<T>(path, query);
    } catch (error) {
      if (error instanceof Refusal) throw error.status === 403 ? denied(error, path) : error;
      throw new Silence(`GET ${path}: ${errorMessage(error)}`, { cause: error });
    }
  };
}

/** What is missing is said, unless the asker has said so. */
function denied({ status, message, code, correlationId }: Refusal, path: string): Refusal {
  const right = missingRight("GET", path);
  const reported = message.includes(right) ? message : `${message}: ${right}`;
  return new Refusal(status, reported, defined({ code, correlationId }));
}

function reportOf(error: unknown, { path }: ViewRequest): PageAnswer {
  if (error instanceof Silence) {
    return { ...reported(502, "The API did not answer", error.message), fault: `${path}: ${error.message}` };
  }
  if (!(error instanceof Refusal)) {
    const text = errorMessage(error);
    return { ...reported(500, "This page could not be made", text), fault: `${path}: could not be made: ${text}` };
  }
  const { status, message } = error;
  if (status === 403) return reported(403, "You may not see this", message);
  if (status === 404) return reported(404, "It does not exist", message);
  const what = answerText(error);
  if (status < 500 && status !== 429) return reported(status, "The API refused", `${message} (${what})`);
  return { ...reported(status, "The API failed", `${message} (${what})`), fault: `${path}: ${what}: ${message}` };
}

/** `status 503, Unavailable, id api-...`: what the installation's logs are looked through for. */
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
  if ((first !== "syncgroups" && first !== "syncs") || two === undefined) return undefined;
  const owner = { kind: first === "syncs" ? "Sync" : "SyncGroup", namespace: one, name: two } as const;
  if (three === undefined) return (ask, host) => rolloutsPage(ask, owner, host);
  if (three === "history" && rest.length === 3) return (ask, host) => historyPage(ask, { owner, query }, host);
  if (three === "events" && rest.length === 3) return (ask, host) => eventsPage(ask, { owner, query }, host);
  if (three === "clusters" && rest.length === 3) return (ask, host) => targetsPage(ask, { owner, query }, host);
  return undefined;
}

/** What is no encoding is nobody's name. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function reported(status: number, title: string, message: string): PageAnswer {
  return { status, title, main: html`<h1>${title}</h1><p class="remark">${message}</p>` };
}
