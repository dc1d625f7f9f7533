/** Reads the annotations that decide when an object is applied: hooks of Helm and Argo CD, waves, and dependencies. */

import type { JsonObject } from "#shared/base/json.ts";
import { type ManifestObject, stringMapAt } from "#shared/kube/kube-object.ts";
import { groupOf, isBuiltinGroup, type ObjectId } from "#shared/kube/object-id.ts";

/** The kind of an apply: Helm runs different hooks at the first install and at later applies. */
export type ApplyEvent = "install" | "upgrade";

export const applyEvents = ["install", "upgrade"] as const satisfies readonly ApplyEvent[];

/** `SyncFail` runs when one of the other phases has failed. */
export type ApplyPhase = "PreSync" | "Sync" | "PostSync" | "SyncFail";

/** In their order in time. */
export const phaseOrder: readonly ApplyPhase[] = ["PreSync", "Sync", "PostSync", "SyncFail"];

type DeletePolicy = "BeforeHookCreation" | "HookSucceeded" | "HookFailed";

export interface HookMarks {
  /** The phase for each event. Without a phase, the hook does not run at the event. */
  readonly phases: Readonly<Partial<Record<ApplyEvent, ApplyPhase>>>;
  /** The last phase of the hook. Its delete policy waits for the end of this phase. */
  readonly until: Readonly<Partial<Record<ApplyEvent, ApplyPhase>>>;
  /** The object runs nothing itself; other hooks need it. */
  readonly isAid: boolean;
  readonly deletePolicies: ReadonlySet<DeletePolicy>;
  /** The annotation that makes the object a hook. */
  readonly annotation: string;
  /** The events in the annotation. */
  readonly events: readonly string[];
  /** The events at which Starling never runs the hook. */
  readonly unrun: readonly string[];
}

export interface OrderMarks {
  readonly wave: number;
  readonly dependsOn: readonly ObjectId[];
  /** Absent for an object that is not a hook. */
  readonly hook?: HookMarks;
}

/** The problem of an annotation, and the remedy. */
interface MarkProblem {
  readonly annotation: string;
  readonly reason: string;
}

export const orderAnnotations = {
  argoHook: "argocd.argoproj.io/hook",
  argoDeletePolicy: "argocd.argoproj.io/hook-delete-policy",
  wave: "argocd.argoproj.io/sync-wave",
  helmHook: "helm.sh/hook",
  helmWeight: "helm.sh/hook-weight",
  helmDeletePolicy: "helm.sh/hook-delete-policy",
  dependsOn: "config.kubernetes.io/depends-on",
} as const;

type Read<T> = T | { readonly problem: MarkProblem };

/** @returns the first problem, if an annotation is invalid. */
export function orderMarksOf(object: ManifestObject): Read<OrderMarks> {
  const annotations = stringMapAt(object, "metadata", "annotations");
  const hook = hookOf(annotations, isAid(object));
  if (hook !== undefined && "problem" in hook) return hook;
  const wave = waveOf(annotations);
  if (typeof wave !== "number") return wave;
  const dependsOn = referencesOf(annotations[orderAnnotations.dependsOn] ?? "");
  if ("problem" in dependsOn) return dependsOn;
  return { wave, dependsOn, ...(hook === undefined ? {} : { hook }) };
}

/** For any object, also an unchecked one. */
export function hookMarksOf(object: JsonObject): Read<HookMarks> | undefined {
  return hookOf(stringMapAt(object, "metadata", "annotations"), isAid(object));
}

const programs: ReadonlySet<string> = new Set([
  "CronJob",
  "DaemonSet",
  "Deployment",
  "Job",
  "Pod",
  "ReplicaSet",
  "ReplicationController",
  "StatefulSet",
]);

/**
 * Whether the object is of a built-in kind without a program: accounts, roles, settings and similar. The behaviour of
 * custom kinds is unknown.
 */
function isAid({ apiVersion, kind }: JsonObject): boolean {
  return typeof apiVersion === "string" && isBuiltinGroup(groupOf(apiVersion)) && !programs.has(String(kind));
}

/** Whether an object is a hook, according to its readable marks. */
export function isHook(object: ManifestObject): boolean {
  const hook = hookMarksOf(object);
  return hook !== undefined && !("problem" in hook);
}

type Annotations = Readonly<Record<string, string>>;

/** Argo CD's annotation takes precedence over Helm's, as in Argo CD. */
function hookOf(annotations: Annotations, aids: boolean): Read<HookMarks> | undefined {
  const argo = itemsOf(annotations[orderAnnotations.argoHook]);
  if (argo.length > 0) return argoHook(argo, { annotations, isAid: aids });
  // As in Helm 3 and later, an object with `crd-install` is an ordinary object.
  const helm = itemsOf(annotations[orderAnnotations.helmHook])
    .map((event) => event.toLowerCase())
    .filter((event) => event !== "crd-install");
  return helm.length === 0 ? undefined : helmHook(helm, { annotations, isAid: aids });
}

interface HookObject {
  readonly annotations: Annotations;
  readonly isAid: boolean;
}

/**
 * The first and the last phase of an object. An aid stays between them; a program runs once.
 * @returns undefined when the phases are impossible for the object.
 */
function spanOf(phases: readonly ApplyPhase[], aids: boolean): readonly [ApplyPhase, ApplyPhase] | undefined {
  const span = phaseOrder.filter((phase) => phases.includes(phase));
  const [first] = span;
  const last = span.at(-1);
  if (first === undefined || last === undefined) return undefined;
  return first === last || (aids && last !== "SyncFail") ? [first, last] : undefined;
}

const argoPhases: Readonly<Record<string, ApplyPhase | undefined>> = {
  PreSync: "PreSync",
  Sync: "Sync",
  PostSync: "PostSync",
  SyncFail: "SyncFail",
  Skip: undefined,
  PreDelete: undefined,
  PostDelete: undefined,
};

function argoHook(events: readonly string[], { annotations, isAid: aids }: HookObject): Read<HookMarks> {
  const annotation = orderAnnotations.argoHook;
  const unknown = events.find((event) => !Object.hasOwn(argoPhases, event));
  if (unknown !== undefined) return refuse(annotation, `has ${quoted(unknown)}, expected ${oneOf(argoPhases)}`);
  const named = events.map((event) => argoPhases[event]).filter((phase) => phase !== undefined);
  const span = spanOf(named, aids);
  if (span === undefined && named.length > 0)
    return refuse(annotation, `has the phases ${[...new Set(named)].join(" and ")}; ${twoObjects}`);
  const deletePolicies = policiesOf(annotations, orderAnnotations.argoDeletePolicy, argoPolicies);
  if ("problem" in deletePolicies) return deletePolicies;
  const [first, last] = span ?? [];
  const atBoth = (phase: ApplyPhase | undefined) =>
    phase === undefined || events.includes("Skip") ? {} : { install: phase, upgrade: phase };
  const times = { phases: atBoth(first), until: atBoth(last) };
  return { ...times, isAid: aids, deletePolicies, annotation, events, unrun: unrunOf(events, argoPhases) };
}

const twoObjects = "a Job or Pod runs only once in each apply: write two objects with different names";

/** The event and the phase of each hook; undefined for events that are not an apply. */
const helmEvents: Readonly<Record<string, readonly [ApplyEvent, ApplyPhase] | undefined>> = {
  "pre-install": ["install", "PreSync"],
  "pre-upgrade": ["upgrade", "PreSync"],
  "post-install": ["install", "PostSync"],
  "post-upgrade": ["upgrade", "PostSync"],
  "pre-delete": undefined,
  "post-delete": undefined,
  "pre-rollback": undefined,
  "post-rollback": undefined,
  test: undefined,
  "test-success": undefined,
  "test-failure": undefined,
};

function helmHook(events: readonly string[], { annotations, isAid: aids }: HookObject): Read<HookMarks> {
  const annotation = orderAnnotations.helmHook;
  const unknown = events.find((event) => !Object.hasOwn(helmEvents, event));
  if (unknown !== undefined) return refuse(annotation, `has ${quoted(unknown)}, expected ${oneOf(helmEvents)}`);
  const runs = events.map((name) => helmEvents[name]).filter((run) => run !== undefined);
  const phases: Partial<Record<ApplyEvent, ApplyPhase>> = {};
  const until: Partial<Record<ApplyEvent, ApplyPhase>> = {};
  for (const event of applyEvents) {
    const named = runs.filter(([of]) => of === event).map(([, phase]) => phase);
    if (named.length === 0) continue;
    const span = spanOf(named, aids);
    if (span === undefined) return refuse(annotation, `is for before and after one ${event}; ${twoObjects}`);
    [phases[event], until[event]] = span;
  }
  const deletePolicies = policiesOf(annotations, orderAnnotations.helmDeletePolicy, helmPolicies);
  return "problem" in deletePolicies
    ? deletePolicies
    : { phases, until, isAid: aids, deletePolicies, annotation, events, unrun: unrunOf(events, helmEvents) };
}

function unrunOf(events: readonly string[], known: Readonly<Record<string, unknown>>): readonly string[] {
  return events.filter((event) => known[event] === undefined);
}

const argoPolicies: Readonly<Record<string, DeletePolicy>> = {
  BeforeHookCreation: "BeforeHookCreation",
  HookSucceeded: "HookSucceeded",
  HookFailed: "HookFailed",
};
const helmPolicies: Readonly<Record<string, DeletePolicy>> = {
  "before-hook-creation": "BeforeHookCreation",
  "hook-succeeded": "HookSucceeded",
  "hook-failed": "HookFailed",
};

function policiesOf(
  annotations: Annotations,
  annotation: string,
  known: Readonly<Record<string, DeletePolicy>>,
): ReadonlySet<DeletePolicy> | { readonly problem: MarkProblem } {
  const names = itemsOf(annotations[annotation]);
  const unknown = names.find((name) => !Object.hasOwn(known, name));
  if (unknown !== undefined) return refuse(annotation, `has ${quoted(unknown)}, expected ${oneOf(known)}`);
  const policies = names.map((name) => known[name]).filter((policy) => policy !== undefined);
  return new Set(policies.length === 0 ? ["BeforeHookCreation"] : policies);
}

/** A Helm hook without a wave uses its weight. */
function waveOf(annotations: Annotations): Read<number> {
  const isHelms = itemsOf(annotations[orderAnnotations.helmHook]).length > 0;
  const hasWave = annotations[orderAnnotations.wave] !== undefined;
  const annotation = isHelms && !hasWave ? orderAnnotations.helmWeight : orderAnnotations.wave;
  const text = (annotations[annotation] ?? "").trim();
  if (text === "") return 0;
  const wave = /^[+-]?\d{1,9}$/.test(text) ? Number(text) : undefined;
  return wave ?? refuse(annotation, `is ${quoted(text)}, expected a whole number such as "-1" or "5"`);
}

function referencesOf(text: string): readonly ObjectId[] | { readonly problem: MarkProblem } {
  const annotation = orderAnnotations.dependsOn;
  const names = itemsOf(text);
  const references: ObjectId[] = [];
  for (const name of names) {
    const reference = referenceFrom(name);
    if (reference === undefined) {
      const forms = "group/Kind/name or group/namespaces/NAMESPACE/Kind/name, the core group being empty";
      return refuse(annotation, `has ${quoted(name)}, expected ${forms}`);
    }
    references.push(reference);
  }
  const twice = firstRepeated(names);
  return twice === undefined ? references : refuse(annotation, `names ${quoted(twice)} twice; remove one of them`);
}

/** A list can be megabytes long, so that names are looked up in a set. */
function firstRepeated(names: readonly string[]): string | undefined {
  const seen = new Set<string>();
  for (const name of names) {
    if (seen.has(name)) return name;
    seen.add(name);
  }
  return undefined;
}

function referenceFrom(text: string): ObjectId | undefined {
  const parts = text.split("/");
  const [group = "", ...rest] = parts;
  const isNamespaced = parts.length === 5 && rest[0] === "namespaces";
  const [namespace = "", kind = "", name = ""] = isNamespaced ? rest.slice(1) : ["", ...rest];
  const isWhole = kind !== "" && name !== "" && (isNamespaced ? namespace !== "" : parts.length === 3);
  return isWhole ? { group, kind, namespace, name } : undefined;
}

function itemsOf(text = ""): readonly string[] {
  return text
    .split(",")
    .map((item) => item.trim())
    .filter((item) => item !== "");
}

function refuse(annotation: string, reason: string): { readonly problem: MarkProblem } {
  return { problem: { annotation, reason } };
}

function oneOf(known: Readonly<Record<string, unknown>>): string {
  return `one of ${Object.keys(known).join(", ")}`;
}

const maxQuoted = 60;

function quoted(text: string): string {
  return JSON.stringify(text.slice(0, maxQuoted));
}
