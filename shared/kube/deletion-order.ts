/**
 * The order in which the objects of one Sync are deleted: the reverse of the order of applying. Later waves are deleted
 * before earlier ones. Within a wave, dependents are deleted before their dependencies, and the rest by kind. The order
 * is a pure function of the objects in the cluster. A wrong mark never blocks a deletion.
 */
import { circlesAmong } from "#shared/base/circles.ts";
import { firstOf } from "#shared/base/counted.ts";
import { compareForApply, deletionRankOf, rankOf, ranks } from "#shared/kube/apply-order.ts";
import type { KubeObject, ManifestObject } from "#shared/kube/kube-object.ts";
import { describeObject, type ObjectId, objectIdKey } from "#shared/kube/object-id.ts";
import { orderAnnotations, orderMarksOf } from "#shared/kube/order-marks.ts";

/** A remark about one object that does not prevent its deletion. */
export interface DeletionNote {
  readonly id: ObjectId;
  readonly message: string;
}

export interface DeletionOrder {
  /** The objects of one step can be deleted at the same time. */
  readonly steps: readonly (readonly ObjectId[])[];
  /** By `objectIdKey`, the objects that depend on an object by annotation and must be deleted before it. */
  readonly dependents: ReadonlyMap<string, readonly ObjectId[]>;
  /**
   * By `objectIdKey`, the wave of an object. Hooks, Namespaces and definitions are absent, because no deletion waits
   * for their waves.
   */
  readonly waves: ReadonlyMap<string, number>;
  readonly notes: readonly DeletionNote[];
}

interface Node {
  readonly id: ObjectId;
  readonly references: readonly ObjectId[];
  /** The wave of an object that is no hook and whose marks are readable. All others get the lowest wave. */
  readonly ownWave: number | undefined;
  /** The objects that depend on this one by annotation. */
  readonly dependents: Set<Node>;
  /** The objects on which this one depends by annotation. */
  readonly dependencies: Set<Node>;
  /** Its Namespace and its definition, which are always deleted later. */
  readonly surroundings: Set<Node>;
  wave: number;
  rank: number;
  layer: number;
}

/** @param liveOf - the objects in the cluster by `objectIdKey`, as far as they are known. */
export function orderDeletion(ids: readonly ObjectId[], liveOf: ReadonlyMap<string, KubeObject>): DeletionOrder {
  const notes: DeletionNote[] = [];
  const nodes = [...ids].sort(compareForApply).map((id) => nodeOf(id, liveOf.get(objectIdKey(id)), notes));
  connect(nodes);
  breakCircles(nodes, notes);
  place(nodes);
  const waves = nodes.flatMap(({ id, ownWave, wave }): [string, number][] =>
    ownWave === undefined || isSurrounding(id) ? [] : [[objectIdKey(id), wave]],
  );
  const dependents = nodes.map((node): [string, ObjectId[]] => [
    objectIdKey(node.id),
    [...node.dependents].map(({ id }) => id),
  ]);
  return { steps: inSteps(nodes), dependents: new Map(dependents), waves: new Map(waves), notes };
}

function nodeOf(id: ObjectId, live: KubeObject | undefined, notes: DeletionNote[]): Node {
  const marks = live === undefined ? undefined : orderMarksOf(live as ManifestObject);
  const common = { dependents: new Set<Node>(), dependencies: new Set<Node>(), surroundings: new Set<Node>() };
  const node = { ...common, id, wave: 0, rank: deletionRankOf(id), layer: 0 };
  if (marks !== undefined && "problem" in marks) {
    const { annotation, reason } = marks.problem;
    notes.push({ id, message: `${annotation} ${reason}; the object is deleted in the order of its kind` });
    return { ...node, references: [], ownWave: undefined };
  }
  const isKept = marks !== undefined && marks.hook === undefined;
  return { ...node, references: marks?.dependsOn ?? [], ownWave: isKept ? marks.wave : undefined };
}

function isSurrounding(id: ObjectId): boolean {
  return rankOf(id) === ranks.namespace || rankOf(id) === ranks.definition;
}

/** The API group of the kind that a definition defines. */
export function definedGroup({ name }: ObjectId): string {
  return name.slice(name.indexOf(".") + 1);
}

/** An object outside of the set is not being deleted, so that a dependency on it does not matter. */
function connect(nodes: readonly Node[]): void {
  const byKey = new Map(nodes.map((node) => [objectIdKey(node.id), node]));
  const byName = new Map<string, Node[]>();
  const defining = new Map<string, Node[]>();
  for (const node of nodes) {
    add(byName, objectIdKey({ ...node.id, namespace: "" }), node);
    if (rankOf(node.id) === ranks.definition) add(defining, definedGroup(node.id), node);
  }
  for (const node of nodes) {
    const { id } = node;
    for (const to of node.references.flatMap((reference) => referredTo(reference, { byKey, byName }))) {
      node.dependencies.add(to);
      to.dependents.add(node);
    }
    const namespace = byKey.get(objectIdKey({ group: "", kind: "Namespace", namespace: "", name: id.namespace }));
    const around = [...(defining.get(id.group) ?? []), ...(namespace === undefined ? [] : [namespace])];
    for (const to of around) if (to !== node) node.surroundings.add(to);
  }
}

function add(map: Map<string, Node[]>, key: string, node: Node): void {
  const known = map.get(key);
  if (known) known.push(node);
  else map.set(key, [node]);
}

/** An object in git may leave out its namespace, or name one although its kind is cluster-scoped. */
function referredTo(
  reference: ObjectId,
  {
    byKey,
    byName,
  }: { readonly byKey: ReadonlyMap<string, Node>; readonly byName: ReadonlyMap<string, readonly Node[]> },
): readonly Node[] {
  const exact = byKey.get(objectIdKey(reference));
  if (exact !== undefined) return [exact];
  const named = byName.get(objectIdKey({ ...reference, namespace: "" })) ?? [];
  return reference.namespace === "" ? named : named.filter(({ id }) => id.namespace === "");
}

function after({ dependencies, surroundings }: Node): readonly Node[] {
  return [...dependencies, ...surroundings];
}

/** @returns the objects, those to delete first in front. Objects in a cycle, or behind one, are left out. */
function firstToLast(nodes: readonly Node[]): readonly Node[] {
  const open = new Map<Node, number>();
  for (const node of nodes) for (const to of after(node)) open.set(to, (open.get(to) ?? 0) + 1);
  const sorted = nodes.filter((node) => !open.has(node));
  for (const node of sorted) {
    for (const to of after(node)) {
      const left = (open.get(to) ?? 0) - 1;
      open.set(to, left);
      if (left === 0) sorted.push(to);
    }
  }
  return sorted;
}

/** Only annotations can close a cycle, so that they are ignored there. */
function breakCircles(nodes: readonly Node[], notes: DeletionNote[]): void {
  const circleOf = circlesAmong(nodes, after);
  for (const node of nodes) {
    const circle = [...node.dependencies].filter((to) => circleOf.get(to) === circleOf.get(node));
    if (circle.length === 0) continue;
    for (const to of circle) {
      node.dependencies.delete(to);
      to.dependents.delete(node);
    }
    const names = circle.map(({ id }) => describeObject(id));
    const message = `${orderAnnotations.dependsOn} forms a cycle with ${firstOf(names, { most: 3 })}; the object is deleted in the order of its kind`;
    notes.push({ id: node.id, message });
  }
}

/**
 * The reverse of an apply: an object that others need gets the wave of the earliest of them, and an object that needs
 * an object of an earlier rank gets that rank.
 */
function place(nodes: readonly Node[]): void {
  const sorted = firstToLast(nodes);
  const lowest = Math.min(0, ...nodes.map(({ ownWave }) => ownWave ?? 0));
  for (const node of nodes) node.wave = node.ownWave ?? lowest;
  for (const node of sorted) for (const to of after(node)) to.wave = Math.min(to.wave, node.wave);
  for (const node of sorted.toReversed()) node.rank = Math.min(node.rank, ...after(node).map(({ rank }) => rank));
  for (const node of sorted) {
    for (const to of node.dependencies) {
      if (to.wave === node.wave && to.rank === node.rank) to.layer = Math.max(to.layer, node.layer + 1);
    }
  }
}

function comparePlaces(a: Node, b: Node): number {
  return b.wave - a.wave || a.rank - b.rank || a.layer - b.layer;
}

function inSteps(nodes: readonly Node[]): readonly (readonly ObjectId[])[] {
  const steps: Node[][] = [];
  for (const node of [...nodes].sort(comparePlaces)) {
    const step = steps.at(-1);
    const [first] = step ?? [];
    if (step !== undefined && first !== undefined && comparePlaces(first, node) === 0) step.push(node);
    else steps.push([node]);
  }
  return steps.map((step) => step.map(({ id }) => id));
}
