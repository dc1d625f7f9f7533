/** Routes that read rows and snapshots and change nothing, for the API and for the dashboard. */

import { listArtifacts } from "#functions/api/read/find-artifact.ts";
import { findObjects } from "#functions/api/read/find-objects.ts";
import { listFleetMembers } from "#functions/api/read/fleet-members.ts";
import { listAllEvents } from "#functions/api/read/list-all-events.ts";
import { listEvents } from "#functions/api/read/list-events.ts";
import { listHistory, listRevisions } from "#functions/api/read/list-history.ts";
import {
  getObject,
  getSourceWithPins,
  listClusters,
  listClusterValues,
  listDiscoveries,
  listReceivers,
  listSources,
  listSyncGroups,
  listWindows,
} from "#functions/api/read/list-objects.ts";
import { listSyncObjects } from "#functions/api/read/list-sync-objects.ts";
import { getSync, listSyncs, listSyncsOnCluster } from "#functions/api/read/list-syncs.ts";
import { listTargets, targetStatesOf } from "#functions/api/read/list-targets.ts";
import { listFleet } from "#functions/api/read/read-fleet.ts";
import { overviewOf } from "#functions/api/read/read-overview.ts";
import { getRollout, listNewestRollouts, listRollouts, showRollout } from "#functions/api/read/read-rollouts.ts";
import { fittingItems } from "#functions/api/request/answer-size.ts";
import type { ApiPorts } from "#functions/api/request/api-ports.ts";
import type { HttpRequest } from "#functions/api/request/http-event.ts";
import { type ListPage, type PageRequest, pageRequest } from "#functions/api/request/page-request.ts";
import {
  clusterOf,
  discoveryOf,
  kindOf,
  objectPath,
  ownerFrom,
  rolloutOf,
  valuesOf,
  windowOf,
} from "#functions/api/request/path-objects.ts";
import { named, stateOf } from "#functions/api/request/query-values.ts";
import { refusal } from "#functions/api/request/refusal.ts";
import { type Answers, type Call, part } from "#functions/api/request/route.ts";
import { defined } from "#shared/base/defined.ts";
import { ns } from "#shared/fleet/api/api-routes.ts";
import { listOf } from "#shared/fleet/api/objects.ts";
import { rolloutObject } from "#shared/fleet/api/rollout-object.ts";
import type { Owner } from "#shared/fleet/rows/keys.ts";

/** The ports of the API that reads use. */
export type ReadPorts = Pick<ApiPorts, "table" | "blobs" | "clock" | "installation">;

type ReadCall = Call<ReadPorts>;

export const readAnswers = {
  "GET /v1/clusterdiscoveries": ({ ports, request }) =>
    list("ClusterDiscovery", request, (page) => listDiscoveries(ports, page)),
  "GET /v1/clusterdiscoveries/:name": ({ ports, params }) => getObject(ports, discoveryOf(params)),
  "GET /v1/clustervalues": ({ ports, request }) =>
    list("ClusterValues", request, (page) => listClusterValues(ports.table, page)),
  "GET /v1/clustervalues/:name": ({ ports, params }) => getObject(ports, valuesOf(params)),
  "GET /v1/windows": ({ ports, request }) =>
    list("Window", request, (page) =>
      listWindows(ports, { page, count: request.query.count === "false" ? "uncounted" : "counted" }),
    ),
  "GET /v1/windows/:name": ({ ports, params }) => getObject(ports, windowOf(params)),
  "GET /v1/clusters": clusters,
  "GET /v1/clusters/:name": ({ ports, params }) => getObject(ports, clusterOf(params)),
  "GET /v1/clusters/:name/syncs": syncsOnCluster,
  "GET /v1/clusters/:name/objects": objectsOnCluster,
  "GET /v1/fleet": ({ ports, request }) =>
    list("OwnerInFleet", request, (page) => listFleet(ports.table, { ...named(request, "namespace"), page })),
  "GET /v1/events": allEvents,
  "GET /v1/sources/:namespace/:name/artifacts": artifacts,
  "GET /v1/:plural": lists,
  [`GET ${ns}/:plural`]: lists,
  [`GET ${ns}/:plural/:name`]: one,
  [`GET ${ns}/:plural/:name/events`]: events,
  [`GET ${ns}/syncs/:name/objects`]: objects,
  [`GET ${ns}/sources/:name/revisions`]: revisions,
  [`GET ${ns}/:owners/:name/history`]: history,
  [`GET ${ns}/:owners/:name/syncs`]: syncsOfOwner,
  [`GET ${ns}/:owners/:name/fleet`]: fleetMembers,
  [`GET ${ns}/:owners/:name/rollout`]: ({ ports, params }) => overviewOf(ports, ownerFrom(params)),
  [`GET ${ns}/:owners/:name/rollouts`]: rollouts,
  [`GET ${ns}/:owners/:name/rollouts/:number`]: oneRollout,
  [`GET ${ns}/:owners/:name/rollouts/:number/targets`]: targets,
} satisfies Partial<Answers<ReadPorts>>;

async function clusters({ ports, request }: ReadCall): Promise<unknown> {
  return list("Cluster", request, (page) => listClusters(ports, page));
}

async function lists({ ports, request, params }: ReadCall): Promise<unknown> {
  const namespace = params.namespace;
  const kind = kindOf(params);
  if (kind === "Source") return list(kind, request, (page) => listSources(ports.table, { namespace, page }));
  if (kind === "Receiver") {
    const { origin } = request;
    return list(kind, request, (page) => listReceivers(ports.table, { namespace, page, origin }));
  }
  if (kind === "SyncGroup") return list(kind, request, (page) => listSyncGroups(ports.table, { namespace, page }));
  if (request.query.labelSelector !== undefined) {
    throw refusal("BadRequest", `${kind}s have no labels; leave labelSelector out`);
  }
  if (kind === "Rollout") return list(kind, request, (page) => listNewestRollouts(ports.table, { namespace, page }));
  const scope = namespace === undefined ? {} : { namespace };
  return list(kind, request, (page) => listSyncs(ports.table, { ...scope, ...stateOf(request), page }));
}

async function one({ ports, request, params }: ReadCall): Promise<unknown> {
  const kind = kindOf(params);
  const { namespace, name } = objectPath(params);
  if (kind === "Sync") {
    return getSync(ports.table, { namespace, name, ...named(request, "cluster") });
  }
  if (kind === "Source" && request.query.pins === "true") return getSourceWithPins(ports, { kind, namespace, name });
  if (kind !== "Rollout") return getObject(ports, { kind, namespace, name }, request.origin);
  const [, ownerName, number] = /^(.+)-([1-9]\d{0,7})$/.exec(name) ?? [];
  if (ownerName === undefined) throw refusal("NotFound", `${name} is no rollout's name; expected NAME-NUMBER`);
  for (const ownerKind of ["SyncGroup", "Sync"] as const) {
    const owner: Owner = { namespace, kind: ownerKind, name: ownerName };
    const newest = await listRollouts(ports.table, { owner, page: { limit: 1 } });
    if (newest.items.length === 0) continue;
    return showRollout(ports.table, { owner, number: Number(number) });
  }
  throw refusal("NotFound", `Rollout ${namespace}/${name} does not exist`);
}

async function syncsOnCluster({ ports, request, params }: ReadCall): Promise<unknown> {
  const filter = { cluster: part(params, "name"), ...named(request, "namespace"), ...stateOf(request) };
  return list("Sync", request, (page) => listSyncsOnCluster(ports.table, { ...filter, page }));
}

async function objectsOnCluster({ ports, request, params }: ReadCall): Promise<unknown> {
  const asked = { cluster: part(params, "name"), object: request.query.object ?? "" };
  return list("OwnedObject", request, (page) => findObjects(ports, { ...asked, page }));
}

async function syncsOfOwner({ ports, request, params }: ReadCall): Promise<unknown> {
  const filter = { owner: ownerFrom(params), ...stateOf(request) };
  return list("Sync", request, (page) => listSyncs(ports.table, { ...filter, page }));
}

async function objects({ ports, request, params }: ReadCall): Promise<unknown> {
  const asked = { ...objectPath(params), ...named(request, "cluster") };
  return list("SyncObject", request, (page) => listSyncObjects(ports, { ...asked, page }));
}

async function history({ ports, request, params }: ReadCall): Promise<unknown> {
  const asked = { ...ownerFrom(params), ...named(request, "cluster") };
  return list("History", request, (page) => listHistory(ports.table, { ...asked, page }));
}

async function revisions({ ports, request, params }: ReadCall): Promise<unknown> {
  return list("Revision", request, (page) => listRevisions(ports.table, objectPath(params), page));
}

async function artifacts({ ports, request, params }: ReadCall): Promise<unknown> {
  const asked = defined({ reference: request.query.reference });
  return list("Artifact", request, (page) => listArtifacts(ports, objectPath(params), { page, ...asked }));
}

async function fleetMembers({ ports, request, params }: ReadCall): Promise<unknown> {
  const asked = { owner: ownerFrom(params), ...named(request, "cluster") };
  return list("FleetMember", request, (page) => listFleetMembers(ports.table, { ...asked, page }));
}

async function rollouts({ ports, request, params }: ReadCall): Promise<unknown> {
  const owner = ownerFrom(params);
  return list("Rollout", request, (page) => listRollouts(ports.table, { owner, page }));
}

async function oneRollout({ ports, params }: ReadCall): Promise<unknown> {
  return rolloutObject(await getRollout(ports.table, rolloutOf(params)));
}

async function targets({ ports, request, params }: ReadCall): Promise<unknown> {
  const way = await getRollout(ports.table, rolloutOf(params));
  const { stage, state } = request.query;
  const filter = {
    way,
    ...defined({ stage }),
    ...(state === undefined ? {} : { states: targetStatesOf(state) }),
  };
  return list("Target", request, (page) => listTargets(ports, { ...filter, page }));
}

async function events({ ports, request, params }: ReadCall): Promise<unknown> {
  const { namespace, name } = objectPath(params);
  const query = { about: { namespace, kind: kindOf(params), name }, ...named(request, "cluster") };
  return list("Event", request, (page) => listEvents(ports.table, { ...query, page }));
}

async function allEvents({ ports, request }: ReadCall): Promise<unknown> {
  const asked = { page: pageRequest(request.query), ...named(request, "namespace") };
  const { items, next, owners } = await listAllEvents(ports.table, asked);
  return { ...listOf("Event", items, next), owners };
}

/** As many items as an answer holds: one large object must not stop others from listing. */
async function list<Item>(
  kind: string,
  request: HttpRequest,
  read: (page: PageRequest) => Promise<ListPage<Item>>,
): Promise<unknown> {
  const asked = pageRequest(request.query);
  for (let limit = asked.limit; ; ) {
    const { items, next } = await read({ ...asked, limit });
    const fitting = fittingItems(items);
    if (fitting === items.length) return listOf(kind, items, next);
    limit = fitting;
  }
}
