/**
 * The steps of one apply. A step begins when the step before it is ready. The phases are Argo CD's; a phase has waves,
 * and within a wave, dependencies decide. Within a step, objects are applied in the order of their kinds. The plan is a
 * pure function of the rendering and the event, so that every worker computes the same plan.
 */
import { rankOf, ranks } from "#shared/kube/apply-order.ts";
import { type ManifestObject, objectIdOf, stringAt } from "#shared/kube/kube-object.ts";
import { describeObject, type ObjectId, objectIdKey, placesOf } from "#shared/kube/object-id.ts";
import {
  type ApplyEvent,
  type ApplyPhase,
  type HookMarks,
  type OrderMarks,
  orderAnnotations,
  orderMarksOf,
  phaseOrder,
} from "#shared/kube/order-marks.ts";

export interface ApplyStep {
  readonly phase: ApplyPhase;
  readonly wave: number;
  readonly objects: readonly ManifestObject[];
}

export interface ApplyPlan {
  /** PreSync and Sync. After these, objects that are not part of the rendering are deleted. */
  readonly before: readonly ApplyStep[];
  /** PostSync. */
  readonly after: readonly ApplyStep[];
  /** SyncFail. */
  readonly onFailure: readonly ApplyStep[];
  /** The objects of the rendering that are hooks, including hooks of other events. */
  readonly hooks: ReadonlyMap<ManifestObject, HookMarks>;
}

export interface OrderProblem {
  readonly object: ManifestObject;
  readonly annotation: string;
  readonly reason: string;
}

export interface OrderQuestion {
  readonly event: ApplyEvent;
  /** The namespace of namespaced objects that name none; absent when it is not known yet. */
  readonly defaultNamespace?: string | undefined;
}

interface Node extends OrderMarks {
  readonly object: ManifestObject;
  readonly id: ObjectId;
  phase: ApplyPhase;
  at: number;
}

export function planSteps(
  objects: readonly ManifestObject[],
  question: OrderQuestion,
): ApplyPlan | { readonly problems: readonly OrderProblem[] } {
  const problems: OrderProblem[] = [];
  const nodes: Node[] = [];
  const hooks = new Map<ManifestObject, HookMarks>();
  const resting: ManifestObject[] = [];
  for (const object of objects) {
    const marks = orderMarksOf(object);
    if ("problem" in marks) {
      problems.push({ object, ...marks.problem });
      continue;
    }
    if (marks.hook !== undefined) hooks.set(object, marks.hook);
    const phase = marks.hook === undefined ? "Sync" : marks.hook.phases[question.event];
    if (phase === undefined) resting.push(object);
    else nodes.push({ ...marks, object, id: objectIdOf(object), phase, at: marks.wave });
  }
  if (problems.length > 0) return { problems };
  comeBeforeTheirs(nodes, question);
  const places = resting.flatMap((object) => placesOf(objectIdOf(object), question.defaultNamespace));
  const edges = edgesOf(nodes, { ...question, resting: new Set(places.map(objectIdKey)) });
  if ("problems" in edges) return edges;
  const layers = layersOf(nodes, edges);
  if ("problems" in layers) return layers;
  const steps = inSteps(nodes, layers);
  return {
    before: steps.filter(({ phase }) => phase === "PreSync" || phase === "Sync"),
    after: steps.filter(({ phase }) => phase === "PostSync"),
    onFailure: steps.filter(({ phase }) => phase === "SyncFail"),
    hooks,
  };
}

function comparePlaces(a: Node, b: Node): number {
  return phaseOrder.indexOf(a.phase) - phaseOrder.indexOf(b.phase) || a.at - b.at;
}

/** Finds the definitions and Namespaces among the objects that each object needs. */
function needsAmong(nodes: readonly Node[], { defaultNamespace = "" }: OrderQuestion) {
  const needed = new Map<string, Node>();
  for (const node of nodes) {
    const { id, object, hook } = node;
    if (hook !== undefined) continue;
    if (rankOf(id) === ranks.namespace) needed.set(`namespace ${id.name}`, node);
    if (rankOf(id) !== ranks.definition) continue;
    const kind = stringAt(object, "spec", "names", "kind") ?? "";
    needed.set(`kind ${stringAt(object, "spec", "group") ?? ""}/${kind}`, node);
  }
  return ({ id }: Node): readonly Node[] => {
    const namespace = id.namespace === "" ? defaultNamespace : id.namespace;
    const found = [needed.get(`kind ${id.group}/${id.kind}`), needed.get(`namespace ${namespace}`)];
    return found.filter((node) => node !== undefined);
  };
}

/** Moves a definition or a Namespace to the step of the first object that needs it, when its own wave is later. */
function comeBeforeTheirs(nodes: readonly Node[], question: OrderQuestion): void {
  const needsOf = needsAmong(nodes, question);
  for (const node of nodes) {
    if (node.phase === "SyncFail") continue;
    for (const needed of needsOf(node)) {
      if (needed === node || comparePlaces(node, needed) >= 0) continue;
      needed.phase = node.phase;
      needed.at = node.at;
    }
  }
}

interface Edge {
  readonly to: Node;
  /**
   * Whether the step waits for it. An object that needs only a definition or a Namespace is applied in the same step,
   * by rank.
   */
  readonly isAwaited: boolean;
}

type Edges = ReadonlyMap<Node, readonly Edge[]>;

interface EdgeQuestion extends OrderQuestion {
  /** The `objectIdKey` of every place that a hook of another event can have. */
  readonly resting: ReadonlySet<string>;
}

function edgesOf(
  nodes: readonly Node[],
  question: EdgeQuestion,
): Edges | { readonly problems: readonly OrderProblem[] } {
  const needsOf = needsAmong(nodes, question);
  const find = finderOf(nodes, question);
  const problems: OrderProblem[] = [];
  const edges = new Map<Node, Edge[]>();
  for (const node of nodes) {
    const own: Edge[] = needsOf(node)
      .filter((needed) => needed !== node)
      .map((to) => ({ to, isAwaited: false }));
    for (const reference of node.dependsOn) {
      const to = find(reference);
      const reason = to === undefined ? missing(reference, question) : misplaced(node, to);
      if (reason !== undefined) problems.push({ object: node.object, annotation: orderAnnotations.dependsOn, reason });
      else if (to !== undefined) own.push({ to, isAwaited: true });
    }
    edges.set(node, own);
  }
  return problems.length > 0 ? { problems } : edges;
}

/** An object without a namespace matches any namespace while the default namespace is unknown. */
function finderOf(
  nodes: readonly Node[],
  { defaultNamespace }: OrderQuestion,
): (reference: ObjectId) => Node | undefined {
  const byPlace = new Map<string, Node>();
  for (const node of nodes) {
    for (const place of placesOf(node.id, defaultNamespace)) byPlace.set(objectIdKey(place), node);
  }
  return (reference) => {
    const exact = byPlace.get(objectIdKey(reference));
    if (exact !== undefined || defaultNamespace !== undefined) return exact;
    const open = byPlace.get(objectIdKey({ ...reference, namespace: "" }));
    return open?.id.namespace === "" ? open : undefined;
  };
}

function missing(reference: ObjectId, { event, resting }: EdgeQuestion): string {
  const name = describeObject(reference);
  if (resting.has(objectIdKey(reference)))
    return `names ${name}, a hook that does not run at an ${event}; name an object that is applied each time`;
  return `names ${name}, which is not an object of this template; correct the name, or put both objects into one template`;
}

function misplaced(node: Node, to: Node): string | undefined {
  if (comparePlaces(node, to) >= 0 && (to.phase !== "SyncFail" || node.phase === "SyncFail")) return undefined;
  return `names ${describeObject(to.id)}, which is applied later, in ${placeText(to)}, while this object is applied in ${placeText(node)}; change the wave or the hook of one of them`;
}

function placeText({ phase, at }: Node): string {
  return `${phase}, wave ${at}`;
}

/**
 * The longest chain of awaited dependencies in its own wave, for each object.
 * @returns the first cycle, if one exists.
 */
function layersOf(
  nodes: readonly Node[],
  edges: Edges,
): ReadonlyMap<Node, number> | { readonly problems: readonly OrderProblem[] } {
  const layers = new Map<Node, number>();
  const dependents = new Map<Node, Node[]>();
  const open = new Map<Node, number>();
  for (const [node, own] of edges) {
    open.set(node, own.length);
    for (const { to } of own) {
      const known = dependents.get(to);
      if (known) known.push(node);
      else dependents.set(to, [node]);
    }
  }
  const ready = nodes.filter((node) => open.get(node) === 0);
  for (let node = ready.pop(); node !== undefined; node = ready.pop()) {
    const inWave = (edges.get(node) ?? []).filter(({ to }) => node !== undefined && comparePlaces(node, to) === 0);
    layers.set(node, Math.max(0, ...inWave.map(({ to, isAwaited }) => (layers.get(to) ?? 0) + Number(isAwaited))));
    for (const dependent of dependents.get(node) ?? []) {
      const left = (open.get(dependent) ?? 0) - 1;
      open.set(dependent, left);
      if (left === 0) ready.push(dependent);
    }
  }
  return layers.size === nodes.length ? layers : { problems: [circleOf(nodes, edges, layers)] };
}

function circleOf(nodes: readonly Node[], edges: Edges, settled: ReadonlyMap<Node, number>): OrderProblem {
  const path: Node[] = [];
  let node = nodes.find((each) => !settled.has(each));
  while (node !== undefined && !path.includes(node)) {
    path.push(node);
    node = edges.get(node)?.find(({ to }) => !settled.has(to))?.to;
  }
  const [first, ...others] = node === undefined ? path : path.slice(path.indexOf(node));
  if (first === undefined) throw new Error("a cycle without an object");
  const names = [first, ...others, first].map(({ id }) => describeObject(id));
  const reason = `is part of a cycle: ${names.join(" waits for ")}; remove one of these dependencies`;
  return { object: first.object, annotation: orderAnnotations.dependsOn, reason };
}

function inSteps(nodes: readonly Node[], layers: ReadonlyMap<Node, number>): readonly ApplyStep[] {
  const layerOf = (node: Node) => layers.get(node) ?? 0;
  const compare = (a: Node, b: Node) => comparePlaces(a, b) || layerOf(a) - layerOf(b);
  const steps: Node[][] = [];
  for (const node of [...nodes].sort(compare)) {
    const last = steps.at(-1);
    const [first] = last ?? [];
    if (last !== undefined && first !== undefined && compare(first, node) === 0) last.push(node);
    else steps.push([node]);
  }
  return steps.map((members) => {
    const { phase = "Sync", at: wave = 0 } = members[0] ?? {};
    return { phase, wave, objects: members.map(({ object }) => object) };
  });
}
