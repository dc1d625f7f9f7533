/** The routes of the door, one table. Everything a route may do is in the use case it names. */

import { acceptCluster } from "#functions/api/accept-cluster.ts";
import { fittingItems } from "#functions/api/answer-size.ts";
import type { ApiPorts, Caller } from "#functions/api/api-ports.ts";
import { applyDocuments } from "#functions/api/apply-documents.ts";
import { askCheck, readCheck } from "#functions/api/check-cluster.ts";
import { deleteObject } from "#functions/api/delete-object.ts";
import { listFleetMembers } from "#functions/api/fleet-members.ts";
import { freeze, listFreezes, thaw } from "#functions/api/freezes.ts";
import type { HttpRequest } from "#functions/api/http-event.ts";
import { linkContents } from "#functions/api/link-contents.ts";
import { listEvents } from "#functions/api/list-events.ts";
import {
  getObject,
  listClusters,
  listClusterValues,
  listDiscoveries,
  listSources,
  listSyncGroups,
} from "#functions/api/list-objects.ts";
import { getSync, listSyncs, listSyncsOnCluster } from "#functions/api/list-syncs.ts";
import { listTargets, targetStatesOf } from "#functions/api/list-targets.ts";
import { matchPath, type PathParams, part } from "#functions/api/match-path.ts";
import { type OperateRequest, operate } from "#functions/api/operate.ts";
import { type ListPage, type PageRequest, pageRequest } from "#functions/api/page-request.ts";
import { pruneForeign } from "#functions/api/prune-foreign.ts";
import { named, objectName, parseBody, stateOf } from "#functions/api/query-values.ts";
import { listFleet } from "#functions/api/read-fleet.ts";
import { readInstallation } from "#functions/api/read-installation.ts";
import { linesAbout, linesOf, readLogs } from "#functions/api/read-logs.ts";
import { overviewOf } from "#functions/api/read-overview.ts";
import { getRollout, listNewestRollouts, listRollouts, showRollout } from "#functions/api/read-rollouts.ts";
import { recoverCluster } from "#functions/api/recover-cluster.ts";
import type { ObjectReference } from "#functions/api/reference.ts";
import { refusal } from "#functions/api/refusal.ts";
import {
  acceptBody,
  applyBody,
  contentsBody,
  deleteQuery,
  freezeBody,
  operateBody,
  pruneBody,
  recoverBody,
} from "#functions/api/request-bodies.ts";
import { defined } from "#shared/base/defined.ts";
import { excerpt } from "#shared/base/excerpt.ts";
import { starlingVersion } from "#shared/base/version.ts";
import { listOf } from "#shared/fleet/api/objects.ts";
import { rolloutObject } from "#shared/fleet/api/rollout-object.ts";
import type { Subject } from "#shared/fleet/rows/keys.ts";

interface Call {
  readonly ports: ApiPorts;
  readonly request: HttpRequest;
  readonly params: PathParams;
}

interface Route {
  readonly method: string;
  /** `:name` takes one part of the path; what it may be is in `match-path.ts`. */
  readonly path: string;
  readonly answer: (call: Call) => Promise<unknown>;
}

const ns = "/v1/namespaces/:namespace";

const routes: readonly Route[] = [
  {
    method: "GET",
    path: "/v1/version",
    answer: async () => ({ api: "v1", service: "starling", version: starlingVersion }),
  },
  {
    method: "GET",
    path: "/v1/whoami",
    answer: async ({ ports, request }) => ({ principal: request.principal, installation: ports.installation }),
  },
  { method: "GET", path: "/v1/installation", answer: ({ ports }) => readInstallation(ports) },
  { method: "POST", path: "/v1/apply", answer: apply },

  {
    method: "GET",
    path: "/v1/clusterdiscoveries",
    answer: ({ ports, request }) => list("ClusterDiscovery", request, (page) => listDiscoveries(ports, page)),
  },
  {
    method: "GET",
    path: "/v1/clusterdiscoveries/:name",
    answer: ({ ports, params }) => getObject(ports, discoveryOf(params)),
  },
  { method: "DELETE", path: "/v1/clusterdiscoveries/:name", answer: (call) => remove(call, discoveryOf(call.params)) },
  {
    method: "GET",
    path: "/v1/clustervalues",
    answer: ({ ports, request }) => list("ClusterValues", request, (page) => listClusterValues(ports.table, page)),
  },
  {
    method: "GET",
    path: "/v1/clustervalues/:name",
    answer: ({ ports, params }) => getObject(ports, valuesOf(params)),
  },
  { method: "DELETE", path: "/v1/clustervalues/:name", answer: (call) => remove(call, valuesOf(call.params)) },
  {
    method: "GET",
    path: "/v1/clustervalues/:name/logs",
    answer: ({ ports, request, params }) => readLogs(ports, request, linesAbout(valuesOf(params))),
  },
  { method: "GET", path: "/v1/clusters", answer: clusters },
  {
    method: "GET",
    path: "/v1/clusters/:name",
    answer: ({ ports, params }) => getObject(ports, clusterOf(params)),
  },
  { method: "DELETE", path: "/v1/clusters/:name", answer: (call) => remove(call, clusterOf(call.params)) },
  { method: "GET", path: "/v1/clusters/:name/syncs", answer: syncsOnCluster },
  { method: "POST", path: "/v1/clusters/:name/accept", answer: accept },
  { method: "POST", path: "/v1/clusters/:name/recover", answer: recover },
  {
    method: "POST",
    path: "/v1/clusters/:name/check",
    answer: ({ ports, request, params }) => askCheck(ports, part(params, "name"), caller(request, undefined)),
  },
  {
    method: "GET",
    path: "/v1/clusters/:name/check",
    answer: ({ ports, params }) => readCheck(ports, part(params, "name")),
  },

  {
    method: "GET",
    path: "/v1/freezes",
    answer: async ({ ports }) => listOf("Freeze", await listFreezes(ports), undefined),
  },
  { method: "POST", path: "/v1/freezes/:freeze", answer: putFreeze },
  { method: "DELETE", path: "/v1/freezes/:freeze", answer: liftFreeze },

  {
    method: "GET",
    path: "/v1/fleet",
    answer: ({ ports, request }) =>
      list("SubjectInFleet", request, (page) => listFleet(ports.table, { ...named(request, "namespace"), page })),
  },
  { method: "GET", path: "/v1/:plural", answer: lists },
  { method: "GET", path: `${ns}/:plural`, answer: lists },
  { method: "GET", path: `${ns}/:plural/:name`, answer: one },
  { method: "DELETE", path: `${ns}/:plural/:name`, answer: (call) => remove(call, objectOf(call.params)) },
  { method: "POST", path: `${ns}/:plural/:name/:verb`, answer: verb },
  { method: "POST", path: `${ns}/syncs/:name/prune`, answer: prune },
  { method: "GET", path: `${ns}/:plural/:name/events`, answer: events },
  { method: "GET", path: `${ns}/:plural/:name/logs`, answer: logs },
  {
    method: "GET",
    path: "/v1/clusters/:name/logs",
    answer: ({ ports, request, params }) => readLogs(ports, request, linesAbout(clusterOf(params))),
  },
  {
    method: "GET",
    path: "/v1/clusterdiscoveries/:name/logs",
    answer: ({ ports, request, params }) => readLogs(ports, request, linesAbout(discoveryOf(params))),
  },
  {
    method: "GET",
    path: "/v1/logs",
    answer: ({ ports, request }) => readLogs(ports, request, linesOf(request.query.id)),
  },

  { method: "GET", path: `${ns}/:subjects/:name/syncs`, answer: syncsOfSubject },
  { method: "GET", path: `${ns}/:subjects/:name/fleet`, answer: fleetMembers },
  { method: "POST", path: `${ns}/:subjects/:name/contents`, answer: contents },
  {
    method: "GET",
    path: `${ns}/:subjects/:name/rollout`,
    answer: ({ ports, params }) => overviewOf(ports, subjectFrom(params)),
  },
  { method: "GET", path: `${ns}/:subjects/:name/rollouts`, answer: rollouts },
  { method: "GET", path: `${ns}/:subjects/:name/rollouts/:number`, answer: oneRollout },
  { method: "GET", path: `${ns}/:subjects/:name/rollouts/:number/targets`, answer: targets },
];

const kindOfPlural = {
  sources: "Source",
  syncgroups: "SyncGroup",
  syncs: "Sync",
  rollouts: "Rollout",
} as const;

/** @throws StarlingError `NotFound`, `MethodNotAllowed`, and whatever the route refuses. */
export async function answerRequest(ports: ApiPorts, request: HttpRequest): Promise<unknown> {
  let otherMethod = false;
  for (const route of routes) {
    const params = matchPath(route.path, request.path);
    if (params === undefined) continue;
    if (route.method === request.method) return route.answer({ ports, request, params });
    otherMethod = true;
  }
  const path = excerpt(`/${request.path.join("/")}`, 200);
  if (otherMethod) throw refusal("MethodNotAllowed", `${request.method} is not possible on ${path}`);
  throw refusal("NotFound", `there is no ${path}`);
}

function apply({ ports, request }: Call): Promise<unknown> {
  const body = parseBody(applyBody, request.body);
  return applyDocuments(ports, {
    documents: body.documents,
    mode: body.dryRun ? "dryRun" : "write",
    confirmed: body.confirm ? "confirmed" : "ask",
    caller: caller(request, body.reason),
  });
}

function verb({ ports, request, params }: Call): Promise<unknown> {
  const body = parseBody(operateBody, request.body);
  return operate(ports, {
    reference: objectOf(params),
    verb: params.verb as OperateRequest["verb"],
    ...(body.withSource ? { sources: "include" } : {}),
    caller: caller(request, body.reason),
  });
}

function prune({ ports, request, params }: Call): Promise<unknown> {
  const body = parseBody(pruneBody, request.body);
  return pruneForeign(ports, {
    namespace: part(params, "namespace"),
    name: part(params, "name"),
    ...defined({ cluster: body.cluster }),
    uids: body.uids,
    confirmed: body.confirm ? "confirmed" : "ask",
    caller: caller(request, body.reason),
  });
}

function accept({ ports, request, params }: Call): Promise<unknown> {
  const body = parseBody(acceptBody, request.body);
  return acceptCluster(ports, {
    name: part(params, "name"),
    uid: body.uid,
    confirmed: body.confirm ? "confirmed" : "ask",
    caller: caller(request, body.reason),
  });
}

function recover({ ports, request, params }: Call): Promise<unknown> {
  const { reason, ...body } = parseBody(recoverBody, request.body);
  return recoverCluster(ports, { cluster: part(params, "name"), ...body, caller: caller(request, reason) });
}

function putFreeze({ ports, request, params }: Call): Promise<unknown> {
  const { reason, clusters, until } = parseBody(freezeBody, request.body);
  const name = freezeName(params);
  const at = until === undefined ? undefined : new Date(until).toISOString();
  return freeze(ports, { name, clusters, until: at, caller: { principal: request.principal, reason } });
}

function liftFreeze({ ports, request, params }: Call): Promise<unknown> {
  const { reason } = parseBody(deleteQuery, request.query);
  return thaw(ports, { name: freezeName(params), caller: caller(request, reason) });
}

/** It is typed in a hurry, and printed as a command. */
function freezeName(params: PathParams): string {
  const name = part(params, "freeze");
  if (objectName.test(name)) return name;
  throw refusal("BadRequest", `a freeze cannot be called "${excerpt(name)}"; use a-z, 0-9 and -, at most 63 of them`);
}

function remove({ ports, request }: Call, reference: ObjectReference): Promise<unknown> {
  const cascade = request.query.cascade ?? "delete";
  if (cascade !== "delete" && cascade !== "orphan") {
    throw refusal("BadRequest", `cascade is "${excerpt(cascade)}"; expected delete or orphan`);
  }
  return deleteObject(ports, {
    reference,
    cascade,
    confirmed: request.query.confirm === "true" ? "confirmed" : "ask",
    caller: caller(request, parseBody(deleteQuery, request.query).reason),
  });
}

async function clusters({ ports, request }: Call): Promise<unknown> {
  return list("Cluster", request, (page) => listClusters(ports, page));
}

async function lists({ ports, request, params }: Call): Promise<unknown> {
  const namespace = params.namespace;
  const kind = kindOf(params);
  if (kind === "Source") return list(kind, request, (page) => listSources(ports.table, { namespace, page }));
  if (kind === "SyncGroup") return list(kind, request, (page) => listSyncGroups(ports.table, { namespace, page }));
  if (request.query.labelSelector !== undefined) {
    throw refusal("BadRequest", `${kind}s have no labels; leave labelSelector out`);
  }
  if (kind === "Rollout") return list(kind, request, (page) => listNewestRollouts(ports.table, { namespace, page }));
  const scope = namespace === undefined ? {} : { namespace };
  return list(kind, request, (page) => listSyncs(ports.table, { ...scope, ...stateOf(request), page }));
}

async function one({ ports, request, params }: Call): Promise<unknown> {
  const kind = kindOf(params);
  const { namespace, name } = objectPath(params);
  if (kind === "Sync") {
    return getSync(ports.table, { namespace, name, ...named(request, "cluster") });
  }
  if (kind !== "Rollout") return getObject(ports, { kind, namespace, name });
  const [, subjectName, number] = /^(.+)-([1-9]\d{0,7})$/.exec(name) ?? [];
  if (subjectName === undefined) throw refusal("NotFound", `${name} is no rollout's name; expected NAME-NUMBER`);
  for (const subjectKind of ["SyncGroup", "Sync"] as const) {
    const subject: Subject = { namespace, kind: subjectKind, name: subjectName };
    const newest = await listRollouts(ports.table, { subject, page: { limit: 1 } });
    if (newest.items.length === 0) continue;
    return showRollout(ports.table, { subject, number: Number(number) });
  }
  throw refusal("NotFound", `Rollout ${namespace}/${name} does not exist`);
}

async function syncsOnCluster({ ports, request, params }: Call): Promise<unknown> {
  const filter = { cluster: part(params, "name"), ...named(request, "namespace"), ...stateOf(request) };
  return list("Sync", request, (page) => listSyncsOnCluster(ports.table, { ...filter, page }));
}

async function syncsOfSubject({ ports, request, params }: Call): Promise<unknown> {
  const filter = { subject: subjectFrom(params), ...stateOf(request) };
  return list("Sync", request, (page) => listSyncs(ports.table, { ...filter, page }));
}

async function fleetMembers({ ports, request, params }: Call): Promise<unknown> {
  const asked = { subject: subjectFrom(params), ...named(request, "cluster") };
  return list("FleetMember", request, (page) => listFleetMembers(ports.table, { ...asked, page }));
}

function contents({ ports, request, params }: Call): Promise<unknown> {
  return linkContents(ports, {
    subject: subjectFrom(params),
    ...parseBody(contentsBody, request.body),
    caller: caller(request, undefined),
  });
}

async function rollouts({ ports, request, params }: Call): Promise<unknown> {
  const subject = subjectFrom(params);
  return list("Rollout", request, (page) => listRollouts(ports.table, { subject, page }));
}

async function oneRollout({ ports, params }: Call): Promise<unknown> {
  return rolloutObject(await getRollout(ports.table, rolloutOf(params)));
}

async function targets({ ports, request, params }: Call): Promise<unknown> {
  const way = await getRollout(ports.table, rolloutOf(params));
  const { stage, state } = request.query;
  const filter = {
    way,
    ...defined({ stage }),
    ...(state === undefined ? {} : { states: targetStatesOf(state) }),
  };
  return list("Target", request, (page) => listTargets(ports, { ...filter, page }));
}

async function events({ ports, request, params }: Call): Promise<unknown> {
  const { namespace, name } = objectPath(params);
  const query = { about: { namespace, kind: kindOf(params), name }, ...named(request, "cluster") };
  return list("Event", request, (page) => listEvents(ports.table, { ...query, page }));
}

async function logs({ ports, request, params }: Call): Promise<unknown> {
  const { namespace, name } = objectPath(params);
  const kind = kindOf(params);
  if (kind === "Rollout") throw refusal("BadRequest", "the log of a rollout is its SyncGroup's");
  return readLogs(ports, request, linesAbout({ kind, namespace, name, ...named(request, "cluster") }));
}

/** As many items as an answer holds: what somebody wrote is no reason that others cannot list. */
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

function kindOf(params: PathParams): (typeof kindOfPlural)[keyof typeof kindOfPlural] {
  return kindOfPlural[params.plural as keyof typeof kindOfPlural];
}

function objectOf(params: PathParams): ObjectReference {
  const kind = kindOf(params);
  const { namespace, name } = objectPath(params);
  if (kind === "Rollout") throw refusal("MethodNotAllowed", "rollouts are records; act on the SyncGroup instead");
  if (kind === "Sync" && name.includes(".")) {
    const [group] = name.split(".");
    throw refusal("MethodNotAllowed", `Sync ${name} belongs to SyncGroup ${group}; act on the group instead`);
  }
  return { kind, namespace, name };
}

function clusterOf(params: PathParams): ObjectReference {
  return { kind: "Cluster", name: part(params, "name") };
}

function discoveryOf(params: PathParams): ObjectReference {
  return { kind: "ClusterDiscovery", name: part(params, "name") };
}

function valuesOf(params: PathParams): ObjectReference {
  return { kind: "ClusterValues", name: part(params, "name") };
}

function subjectFrom(params: PathParams): Subject {
  const { namespace, name } = objectPath(params);
  return { namespace, kind: params.subjects === "syncs" ? "Sync" : "SyncGroup", name };
}

function rolloutOf(params: PathParams): { readonly subject: Subject; readonly number?: number } {
  const subject = subjectFrom(params);
  return params.number === "newest" ? { subject } : { subject, number: Number(params.number) };
}

function objectPath(params: PathParams): { readonly namespace: string; readonly name: string } {
  return { namespace: part(params, "namespace"), name: part(params, "name") };
}

function caller(request: HttpRequest, reason: string | undefined): Caller {
  return reason === undefined ? { principal: request.principal } : { principal: request.principal, reason };
}
