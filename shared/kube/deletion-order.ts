/**
 * The order in which objects of one Sync are deleted: the reverse of the order in which they are applied. Later waves go before
 * earlier ones, what depends on something before that, and the rest by kind. A pure function of the objects as they are in the
 * cluster; what their marks say amiss holds no deletion up.
 */
import { circlesAmong } from "#shared/base/circles.ts";
import { firstOf } from "#shared/base/counted.ts";
import { compareForApply, deletionRankOf, rankOf, ranks } from "#shared/kube/apply-order.ts";
import type { KubeObject, ManifestObject } from "#shared/kube/kube-object.ts";
import { describeObject, type ObjectId, objectIdKey } from "#shared/kube/object-id.ts";
import { orderAnnotations, orderMarksOf } from "#shared/kube/order-marks.ts";

/** What is said of one object, and is no reason not to delete it. */
export interface DeletionNote {
  readonly id: ObjectId;
  readonly message: string;
}

export interface DeletionOrder {
  /** What is of one step may be deleted at the same time. */
  readonly steps: readonly (readonly ObjectId[])[];
  /** By `objectIdKey`, what depends on an object by its annotation, and has to be gone before it. */
  readonly dependents: ReadonlyMap<string, readonly ObjectId[]>;
  /** By `objectIdKey`, the wave of an object. Absent of what no wave is waited for: hooks, Namespaces, definitions. */
  readonly waves: ReadonlyMap<string, number>;
  readonly notes: readonly DeletionNote[];
}

interface Node {
  readonly id: ObjectId;
  readonly references: readonly ObjectId[];
  /** Of an object that is kept and whose marks can be read; others go with the lowest wave. */
  readonly ownWave: number | undefined;
  /** What depends on it by its annotation. */
  readonly dependents: Set<Node>;
  /** What it depends on by its annotation. */
  readonly dependencies: Set<Node>;
  /** Its Namespace and its definition, which go later whatever anybody says. */
  readonly surroundings: Set<Node>;
  wave: number;
  rank: number;
  layer: number;
}

/** @param liveOf - by `objectIdKey`, the objects as they are in the cluster, as far as they are known. */
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
    notes.push({ id, message: `${annotation} ${reason}; it is deleted by its kind` });
    return { ...node, references: [], ownWave: undefined };
  }
  const isKept = marks !== undefined && marks.hook === undefined;
  return { ...node, references: marks?.dependsOn ?? [], ownWave: isKept ? marks.wave : undefined };
}

function isSurrounding(id: ObjectId): boolean {
  return rankOf(id) === ranks.namespace || rankOf(id) === ranks.definition;
}

/** The group of the objects that a definition defines. */
export function definedGroup({ name }: ObjectId): string {
  return name.slice(name.indexOf(".") + 1);
}

/** What is not among the objects is not being deleted: a dependence on it does not matter. */
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

/** In git an object may leave out its namespace, or name one that its kind has not. */
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

/** @returns the objects with what goes first in front; those that are in a circle, or come after one, are left out. */
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

/** Only the annotations can close a circle: they give way. */
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
    const message = `${orderAnnotations.dependsOn} goes round in a circle with ${firstOf(names, { most: 3 })}; it is deleted by its kind`;
    notes.push({ id: node.id, message });
  }
}

/**
 * As an apply has it the other way round: what is needed has no later wave than what needs it, whatever it says of itself, and
 * what needs something of an earlier kind goes with that.
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
