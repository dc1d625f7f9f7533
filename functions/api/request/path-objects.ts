/** Reads the objects that a path names. */

import type { ObjectReference } from "#functions/api/request/reference.ts";
import { refusal } from "#functions/api/request/refusal.ts";
import { type PathParams, part } from "#functions/api/request/route.ts";
import type { Owner } from "#shared/fleet/rows/keys.ts";

const kindOfPlural = {
  sources: "Source",
  receivers: "Receiver",
  syncgroups: "SyncGroup",
  syncs: "Sync",
  rollouts: "Rollout",
} as const;

export function kindOf(params: PathParams): (typeof kindOfPlural)[keyof typeof kindOfPlural] {
  return kindOfPlural[params.plural as keyof typeof kindOfPlural];
}

export function objectOf(params: PathParams): ObjectReference {
  const kind = kindOf(params);
  const { namespace, name } = objectPath(params);
  if (kind === "Rollout") throw refusal("MethodNotAllowed", "rollouts are records; act on the SyncGroup instead");
  if (kind === "Sync" && name.includes(".")) {
    const [group] = name.split(".");
    throw refusal("MethodNotAllowed", `Sync ${name} belongs to SyncGroup ${group}; act on the group instead`);
  }
  return { kind, namespace, name };
}

export function clusterOf(params: PathParams): ObjectReference {
  return { kind: "Cluster", name: part(params, "name") };
}

export function discoveryOf(params: PathParams): ObjectReference {
  return { kind: "ClusterDiscovery", name: part(params, "name") };
}

export function valuesOf(params: PathParams): ObjectReference {
  return { kind: "ClusterValues", name: part(params, "name") };
}

export function windowOf(params: PathParams): ObjectReference {
  return { kind: "Window", name: part(params, "name") };
}

export function ownerFrom(params: PathParams): Owner {
  const { namespace, name } = objectPath(params);
  return { namespace, kind: params.owners === "syncs" ? "Sync" : "SyncGroup", name };
}

export function rolloutOf(params: PathParams): { readonly owner: Owner; readonly number?: number } {
  const owner = ownerFrom(params);
  return params.number === "newest" ? { owner } : { owner, number: Number(params.number) };
}

export function objectPath(params: PathParams): { readonly namespace: string; readonly name: string } {
  return { namespace: part(params, "namespace"), name: part(params, "name") };
}
