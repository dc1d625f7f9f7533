/** The routes of the API, in one table. Everything that a route may do is in the use case that it names. */

import type { ZodType } from "zod";
import { readAnswers } from "#functions/api/http/read-routes.ts";
import { linkArtifact, linkArtifacts, linkRenderings } from "#functions/api/read/link-contents.ts";
import { listZones } from "#functions/api/read/list-zones.ts";
import { readInstallation } from "#functions/api/read/read-installation.ts";
import { linesAbout, linesOf, readAudit, readLogs } from "#functions/api/read/read-logs.ts";
import type { ApiPorts, Caller } from "#functions/api/request/api-ports.ts";
import type { HttpRequest } from "#functions/api/request/http-event.ts";
import {
  clusterOf,
  discoveryOf,
  kindOf,
  objectOf,
  objectPath,
  ownerFrom,
  valuesOf,
  windowOf,
} from "#functions/api/request/path-objects.ts";
import { named, objectName, parseBody } from "#functions/api/request/query-values.ts";
import type { ObjectReference } from "#functions/api/request/reference.ts";
import { refusal } from "#functions/api/request/refusal.ts";
import {
  acceptBody,
  applyBody,
  artifactsBody,
  cordonBody,
  deleteQuery,
  freezeBody,
  guardBody,
  operateBody,
  pruneBody,
  pushBody,
  recoverBody,
  renderingsBody,
  rolloutBodies,
  triggerBody,
  uncordonBody,
} from "#functions/api/request/request-bodies.ts";
import { type Answers, type Call, type PathParams, part, routerOf } from "#functions/api/request/route.ts";
import { acceptCluster } from "#functions/api/write/accept-cluster.ts";
import { applyDocuments } from "#functions/api/write/apply-documents.ts";
import { approveGuard } from "#functions/api/write/approve-guard.ts";
import { askCheck, readCheck } from "#functions/api/write/check-cluster.ts";
import { askZoneCheck, readZoneCheck } from "#functions/api/write/check-zone.ts";
import { cordonCluster, uncordonCluster } from "#functions/api/write/cordon-cluster.ts";
import { deleteObject } from "#functions/api/write/delete-object.ts";
import { freeze, listFreezes, thaw } from "#functions/api/write/freezes.ts";
import { type OperateRequest, operate } from "#functions/api/write/operate.ts";
import { operateRollout } from "#functions/api/write/operate-rollout.ts";
import { pruneForeign } from "#functions/api/write/prune-foreign.ts";
import { pushVersion } from "#functions/api/write/push-version.ts";
import { recoverCluster } from "#functions/api/write/recover-cluster.ts";
import type { RolloutRequest, RolloutVerb } from "#functions/api/write/rollout-verb.ts";
import { triggerReceiver } from "#functions/api/write/trigger-receiver.ts";
import { defined } from "#shared/base/defined.ts";
import { excerpt } from "#shared/base/excerpt.ts";
import { starlingVersion } from "#shared/base/starling-version.ts";
import { ns } from "#shared/fleet/api/api-routes.ts";
import { listOf } from "#shared/fleet/api/objects.ts";

type ApiCall = Call<ApiPorts>;

const answers: Answers<ApiPorts> = {
  ...readAnswers,

  "GET /v1/version": async () => ({ api: "v1", service: "starling", version: starlingVersion }),
  "GET /v1/whoami": async ({ ports, request }) => ({ principal: request.principal, installation: ports.installation }),
  "GET /v1/installation": ({ ports }) => readInstallation(ports),
  "POST /v1/apply": apply,
  "DELETE /v1/clusterdiscoveries/:name": (call) => remove(call, discoveryOf(call.params)),
  "DELETE /v1/clustervalues/:name": (call) => remove(call, valuesOf(call.params)),
  "GET /v1/clustervalues/:name/logs": ({ ports, request, params }) =>
    readLogs(ports, request, linesAbout(valuesOf(params))),
  "DELETE /v1/windows/:name": (call) => remove(call, windowOf(call.params)),
  "GET /v1/windows/:name/logs": ({ ports, request, params }) => readLogs(ports, request, linesAbout(windowOf(params))),
  "DELETE /v1/clusters/:name": (call) => remove(call, clusterOf(call.params)),
  "POST /v1/clusters/:name/accept": accept,
  "POST /v1/clusters/:name/recover": recover,
  "POST /v1/clusters/:name/check": ({ ports, request, params }) =>
    askCheck(ports, part(params, "name"), caller(request, undefined)),
  "GET /v1/clusters/:name/check": ({ ports, params }) => readCheck(ports, part(params, "name")),
  "POST /v1/clusters/:name/cordon": cordon,
  "POST /v1/clusters/:name/uncordon": uncordon,
  "GET /v1/zones": async ({ ports }) => listZones(ports),
  "POST /v1/zones/:zone/check": ({ ports, request, params }) =>
    askZoneCheck(ports, part(params, "zone"), caller(request, undefined)),
  "GET /v1/zones/:zone/check": ({ ports, params }) => readZoneCheck(ports, part(params, "zone")),
  "GET /v1/freezes": async ({ ports }) => listOf("Freeze", await listFreezes(ports), undefined),
  "POST /v1/freezes/:freeze": putFreeze,
  "DELETE /v1/freezes/:freeze": liftFreeze,
  [`DELETE ${ns}/:plural/:name`]: (call) => remove(call, objectOf(call.params)),
  [`POST ${ns}/:plural/:name/:verb`]: verb,
  [`POST ${ns}/:owners/:name/:rolloutVerb`]: rollout,
  [`POST ${ns}/syncgroups/:name/approve-guard`]: guardApproval,
  [`POST ${ns}/syncs/:name/prune`]: prune,
  [`POST ${ns}/receivers/:name/trigger`]: trigger,
  [`GET ${ns}/:plural/:name/logs`]: logs,
  "GET /v1/clusters/:name/logs": ({ ports, request, params }) =>
    readLogs(ports, request, linesAbout(clusterOf(params))),
  "GET /v1/clusterdiscoveries/:name/logs": ({ ports, request, params }) =>
    readLogs(ports, request, linesAbout(discoveryOf(params))),
  "GET /v1/logs": ({ ports, request }) => readLogs(ports, request, linesOf(request.query.id)),
  "GET /v1/audit": ({ ports, request }) => readAudit(ports, request),
  [`POST ${ns}/:owners/:name/contents`]: renderings,
  [`POST ${ns}/sources/:name/contents`]: artifacts,
  "GET /v1/sources/:namespace/:name/artifacts/:reference": artifact,
  [`POST ${ns}/sources/:name/uploads`]: push,
};

/** @throws StarlingError `NotFound`, `MethodNotAllowed`, and whatever the route refuses. */
export const answerRequest = routerOf(answers);

function apply({ ports, request }: ApiCall): Promise<unknown> {
  const body = parseBody(applyBody, request.body);
  return applyDocuments(ports, {
    documents: body.documents,
    mode: body.dryRun ? "dryRun" : "write",
    confirmed: body.confirm ? "confirmed" : "ask",
    guardHashes: body.guardHashes,
    caller: caller(request, body.reason),
  });
}

function verb({ ports, request, params }: ApiCall): Promise<unknown> {
  const body = parseBody(operateBody, request.body);
  return operate(ports, {
    reference: objectOf(params),
    verb: params.verb as OperateRequest["verb"],
    ...(body.withSource ? { sources: "include" } : {}),
    until: body.until,
    caller: caller(request, body.reason),
  });
}

function rollout({ ports, request, params }: ApiCall): Promise<unknown> {
  const verb = params.rolloutVerb as RolloutVerb;
  const schema: ZodType<RolloutRequest["body"]> = rolloutBodies[verb];
  const body = parseBody(schema, request.body);
  const asked = { owner: ownerFrom(params), verb, body, caller: caller(request, body.reason) };
  return operateRollout(ports, asked as RolloutRequest);
}

function guardApproval({ ports, request, params }: ApiCall): Promise<unknown> {
  const { hash, reason } = parseBody(guardBody, request.body);
  const owner = { namespace: part(params, "namespace"), kind: "SyncGroup", name: part(params, "name") } as const;
  return approveGuard(ports, { owner, hash, caller: caller(request, reason) });
}

function trigger({ ports, request, params }: ApiCall): Promise<unknown> {
  const { reason } = parseBody(triggerBody, request.body);
  return triggerReceiver(ports, { ...objectPath(params), caller: caller(request, reason) });
}

function prune({ ports, request, params }: ApiCall): Promise<unknown> {
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

function accept({ ports, request, params }: ApiCall): Promise<unknown> {
  const body = parseBody(acceptBody, request.body);
  return acceptCluster(ports, {
    name: part(params, "name"),
    uid: body.uid,
    confirmed: body.confirm ? "confirmed" : "ask",
    caller: caller(request, body.reason),
  });
}

function recover({ ports, request, params }: ApiCall): Promise<unknown> {
  const { reason, ...body } = parseBody(recoverBody, request.body);
  return recoverCluster(ports, { cluster: part(params, "name"), ...body, caller: caller(request, reason) });
}

function cordon({ ports, request, params }: ApiCall): Promise<unknown> {
  const { reason, until } = parseBody(cordonBody, request.body);
  return cordonCluster(ports, { name: part(params, "name"), until, caller: { principal: request.principal, reason } });
}

function uncordon({ ports, request, params }: ApiCall): Promise<unknown> {
  const { reason } = parseBody(uncordonBody, request.body);
  return uncordonCluster(ports, { name: part(params, "name"), caller: caller(request, reason) });
}

function putFreeze({ ports, request, params }: ApiCall): Promise<unknown> {
  const { reason, clusters, until } = parseBody(freezeBody, request.body);
  const name = freezeName(params);
  return freeze(ports, { name, clusters, until, caller: { principal: request.principal, reason } });
}

function liftFreeze({ ports, request, params }: ApiCall): Promise<unknown> {
  const { reason } = parseBody(deleteQuery, request.query);
  return thaw(ports, { name: freezeName(params), caller: caller(request, reason) });
}

/** The body is typed in a hurry, and printed as a command. */
function freezeName(params: PathParams): string {
  const name = part(params, "freeze");
  if (objectName.test(name)) return name;
  throw refusal("BadRequest", `a freeze cannot be called "${excerpt(name)}"; use a-z, 0-9 and -, at most 63 of them`);
}

function remove({ ports, request }: ApiCall, reference: ObjectReference): Promise<unknown> {
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

function artifact({ ports, request, params }: ApiCall): Promise<unknown> {
  const asked = { source: objectPath(params), reference: part(params, "reference") };
  // The pattern `sources/*/artifacts` of a viewer, who gets no content, fits this path as well.
  if (/(?:^|\/)artifacts$/.test(asked.reference)) {
    throw refusal(
      "BadRequest",
      `${excerpt(asked.reference)} is not enough here; write the whole revision, or a commit`,
    );
  }
  return linkArtifact(ports, { ...asked, caller: caller(request, undefined) });
}

function renderings({ ports, request, params }: ApiCall): Promise<unknown> {
  const body = parseBody(renderingsBody, request.body);
  return linkRenderings(ports, { owner: ownerFrom(params), ...body, caller: caller(request, undefined) });
}

function artifacts({ ports, request, params }: ApiCall): Promise<unknown> {
  const body = parseBody(artifactsBody, request.body);
  return linkArtifacts(ports, { source: objectPath(params), ...body, caller: caller(request, undefined) });
}

function push({ ports, request, params }: ApiCall): Promise<unknown> {
  const { reason, ...body } = parseBody(pushBody, request.body);
  return pushVersion(ports, { source: objectPath(params), ...body, caller: caller(request, reason) });
}

async function logs({ ports, request, params }: ApiCall): Promise<unknown> {
  const { namespace, name } = objectPath(params);
  const kind = kindOf(params);
  if (kind === "Rollout") throw refusal("BadRequest", "the log of a rollout is its SyncGroup's");
  return readLogs(ports, request, linesAbout({ kind, namespace, name, ...named(request, "cluster") }));
}

function caller(request: HttpRequest, reason: string | undefined): Caller {
  return reason === undefined ? { principal: request.principal } : { principal: request.principal, reason };
}
