/** Which view is where, and what is said when there is none. */
import { errorMessage } from "#shared/base/errors.ts";
import { type Ask, Refusal } from "#shared/pages/ask.ts";
import { clusterPage, clustersPage } from "#shared/pages/clusters-page.ts";
import { fleetPage } from "#shared/pages/fleet-page.ts";
import { sourcesPage } from "#shared/pages/sources-page.ts";
import { subjectPage } from "#shared/pages/subject-page.ts";
import { syncPage } from "#shared/pages/sync-page.ts";
import { targetsPage } from "#shared/pages/targets-page.ts";
import { versionsPage } from "#shared/pages/versions-page.ts";
import { type Host, html, type View } from "#shared/pages/view.ts";

export interface PageRequest {
  /** Below the root of the pages. */
  readonly path: string;
  readonly query: Readonly<Record<string, string>>;
}

export interface PageAnswer extends View {
  /** Of HTTP. */
  readonly status: number;
}

/** Those that lead everywhere else. */
export const startPages = [
  { path: "/", name: "Fleet", key: "f" },
  { path: "/versions", name: "Versions", key: "v" },
  { path: "/clusters", name: "Clusters", key: "c" },
  { path: "/sources", name: "Sources", key: "s" },
] as const;

/** Never throws: what went wrong is a view, too. */
export async function answerPage(ask: Ask, request: PageRequest, host: Host): Promise<PageAnswer> {
  try {
    const view = viewOf(request);
    if (view === undefined) return told(404, "There is no such page", "Its address may be of another version.");
    return { status: 200, ...(await view(ask, host)) };
  } catch (error) {
    if (!(error instanceof Refusal)) return told(502, "The API did not answer", errorMessage(error));
    if (error.status === 403) return told(403, "You may not see this", error.message);
    if (error.status === 404) return told(404, "It does not exist", error.message);
    return told(error.status, "The API refused", error.message);
  }
}

function viewOf({ path, query }: PageRequest): ((ask: Ask, host: Host) => Promise<View>) | undefined {
  const [first = "", ...rest] = path.split("/").slice(1).map(decoded);
  const [one, two, three, four] = rest;
  if (first === "" && one === undefined) return (ask, host) => fleetPage(ask, host);
  if (one === undefined) {
    if (first === "versions") return (ask, host) => versionsPage(ask, host);
    if (first === "clusters") return (ask, host) => clustersPage(ask, query, host);
    if (first === "sources") return (ask, host) => sourcesPage(ask, query, host);
    return undefined;
  }
  if (first === "clusters" && two === undefined) return (ask, host) => clusterPage(ask, { name: one, query }, host);
  if (first === "clusters" && two === "syncs" && three !== undefined && four !== undefined && rest.length === 4) {
    return (ask, host) => syncPage(ask, { cluster: one, namespace: three, name: four }, host);
  }
  if ((first !== "syncgroups" && first !== "syncs") || two === undefined) return undefined;
  const subject = { kind: first === "syncs" ? "Sync" : "SyncGroup", namespace: one, name: two } as const;
  if (three === undefined) return (ask, host) => subjectPage(ask, subject, host);
  if (three === "clusters" && rest.length === 3) return (ask, host) => targetsPage(ask, { subject, query }, host);
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

function told(status: number, title: string, message: string): PageAnswer {
  return { status, title, main: html`<h1>${title}</h1><p class="remark">${message}</p>` };
}
