/** The changes that an apply would make in one cluster now, found with the caller's own rights. */
import type { ShownDiff } from "#cli/format/diff-text.ts";
import { type FleetView, fleetOf } from "#cli/seeing/fleet-view.ts";
import { inOwnCluster, type OwnAccess } from "#cli/seeing/own-cluster.ts";
import { Renderer } from "#cli/seeing/renderer.ts";
import { CliFailure, usageFailure } from "#cli/session/failure.ts";
import type { Session } from "#cli/session/session.ts";
import type { MemberSync } from "#shared/fleet/api/fleet-member.ts";
import { desiredClusters, distinctInputs } from "#shared/fleet/forecast/desired-clusters.ts";
import { eventOn } from "#shared/fleet/forecast/event-on.ts";
import type { ApplyOptions } from "#shared/fleet/kinds/sync-template.ts";
import { overridden } from "#shared/fleet/rollout/cluster-inputs.ts";
import type { ClusterClient } from "#shared/kube/cluster-client.ts";
import { configMapKind } from "#shared/kube/engine/core-kinds.ts";
import { diffSet, type SetDiff } from "#shared/kube/engine/diff-set.ts";
import type { ManifestObject } from "#shared/kube/kube-object.ts";
import { objectDifferences } from "#shared/kube/object-differences.ts";
import { isHook } from "#shared/kube/order-marks.ts";
import { memberKindsOf, parentName, parentNamespace, setIdOf } from "#shared/kube/parent-object.ts";

export interface LiveQuestion {
  readonly view: FleetView;
  /** Only this template of a group. */
  readonly template: string | undefined;
  readonly cluster: string | undefined;
  readonly access: OwnAccess;
  /** The assigned rendering, or the rendering with the given documents and folders. */
  readonly of: "assigned" | "desired";
}

/** @throws CliFailure when the group is on no cluster, or on several and none is chosen. */
export async function liveDiffs(session: Session, question: LiveQuestion): Promise<readonly ShownDiff[]> {
  const { view, access } = question;
  const cluster = clusterOf(question);
  const syncs = await syncsOn(session, cluster, question);
  const { namespace } = view.owner;
  return inOwnCluster(session, { cluster, access }, async (client) => {
    const diffs: ShownDiff[] = [];
    for (const sync of syncs) diffs.push(shown(sync, cluster, await found(client, { ...sync, namespace })));
    return diffs;
  });
}

/** The desired state of a Sync on the cluster. */
interface LiveSync {
  readonly name: string;
  readonly revision: string;
  readonly objects: readonly ManifestObject[];
  readonly apply: ApplyOptions;
}

function clusterOf({ view, template, cluster, of }: LiveQuestion): string {
  const { kind, name } = view.owner;
  const selected = desiredClusters(view.desired, view.plan, fleetOf(view)).map((one) => one.cluster);
  const having = view.clusters.filter(({ syncs }) => syncs.some(({ action }) => action === "apply"));
  const all = [...new Set([...selected, ...(of === "assigned" ? having.map((one) => one.name) : [])])];
  const said = `${kind} ${name}`;
  if (cluster !== undefined && all.includes(cluster)) return cluster;
  const [first, ...others] = all;
  if (cluster !== undefined || first === undefined) {
    const where = cluster === undefined ? "no cluster that is registered" : `cluster ${cluster}`;
    throw new CliFailure(`${said} has no rendering for ${where}`, { exit: "no", next: `starling render ${name}` });
  }
  if (others.length === 0) return first;
  const object = template === undefined ? `${kind.toLowerCase()}/${name}` : `sync/${name}.${template}`;
  const next = `starling diff ${object} --cluster ${first} -n ${view.owner.namespace}`;
  throw usageFailure(`${said} is on ${all.length} clusters; choose one with --cluster`, next);
}

async function syncsOn(session: Session, cluster: string, question: LiveQuestion): Promise<readonly LiveSync[]> {
  const { view, template, of } = question;
  const name = template === undefined ? undefined : `${view.owner.name}.${template}`;
  const isMeant = (sync: string) => name === undefined || sync === name;
  const member = view.clusters.find((one) => one.name === cluster);
  const assigned = (member?.syncs ?? []).filter((sync) => isMeant(sync.name) && sync.renderDigest !== undefined);
  const renderer = new Renderer(session, view);
  if (of === "assigned" && assigned.length > 0) return storedSyncs(renderer, assigned);
  const desired = desiredClusters(
    view.desired,
    view.plan,
    fleetOf({ ...view, clusters: member === undefined ? [] : [member] }),
  );
  const { distinct, problems } = distinctInputs(desired);
  const inputs = distinct.filter(({ sync }) => isMeant(sync));
  const { renderings, failures } = await renderer.made(inputs);
  const [problem] = [...problems.map((one) => `template ${one.template}: ${one.problem}`), ...failures.values()];
  if (problem !== undefined) throw new CliFailure(`on cluster ${cluster}: ${problem}`, { exit: "no" });
  return inputs.flatMap(({ sync, digest, template: of_, overrides }) => {
    const rendering = renderings.get(digest);
    if (rendering === undefined) return [];
    const { apply } = overridden(of_, overrides);
    const had = member?.syncs.find(({ name: of }) => of === sync);
    const objects = rendering.objects[eventOn(had, rendering.digest)];
    return [{ name: sync, revision: of_.revision, objects, apply }];
  });
}

async function storedSyncs(renderer: Renderer, assigned: readonly MemberSync[]): Promise<readonly LiveSync[]> {
  const stored = await renderer.stored(assigned.flatMap(({ renderDigest }) => renderDigest ?? []));
  return assigned.map((sync) => {
    const { name, revision, renderDigest = "", action, apply } = sync;
    if (action === "delete") return { name, revision: `${revision}, which is being deleted`, objects: [], apply };
    const objects = stored.get(renderDigest)?.objects[eventOn(sync, renderDigest)] ?? [];
    return { name, revision, objects, apply };
  });
}

async function found(
  client: ClusterClient,
  { name, namespace, objects, apply }: LiveSync & { readonly namespace: string },
): Promise<SetDiff> {
  const set = { syncNamespace: namespace, syncName: name };
  const parent = await client.get(
    configMapKind,
    { namespace: parentNamespace, name: parentName(set) },
    { metadataOnly: true },
  );
  const { prune, defaultNamespace } = apply;
  return diffSet(client, { objects, setId: setIdOf(set), defaultNamespace, groupKinds: memberKindsOf(parent), prune });
}

function shown({ name, revision, objects }: LiveSync, cluster: string, found: SetDiff): ShownDiff {
  const hooks = objects.filter(isHook).length;
  return {
    sync: name,
    clusters: [cluster],
    against: "live",
    revision,
    differences: found.differences.flatMap(({ before, after }) =>
      objectDifferences(manifests(before), manifests(after)),
    ),
    notes: hooks === 0 ? [] : [`${hooks} hooks are not compared; they run at the next apply that changes something`],
    refused: found.refused.map(({ id, failure }) => ({ id, reason: failure.reason, message: failure.message })),
    unread: found.unread.map(({ kind, failure }) => ({ kind, message: failure.message })),
    kept: found.kept,
    sides: found.differences,
  };
}

function manifests(object: object | undefined): readonly ManifestObject[] {
  return object === undefined ? [] : [object as ManifestObject];
}
