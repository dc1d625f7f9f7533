/** What the annotations of an object say of when it is applied: hooks of Helm's and Argo CD's, waves, dependencies. */

import type { JsonObject } from "#shared/base/json.ts";
import { type ManifestObject, stringMapAt } from "#shared/kube/kube-object.ts";
import type { ObjectId } from "#shared/kube/object-id.ts";

/** What an apply is to the cluster: Helm runs other hooks around a first install than around what follows it. */
export type ApplyEvent = "install" | "upgrade";

export const applyEvents = ["install", "upgrade"] as const satisfies readonly ApplyEvent[];

/** `SyncFail` is for when one of the others has failed. */
export type ApplyPhase = "PreSync" | "Sync" | "PostSync" | "SyncFail";

type DeletePolicy = "BeforeHookCreation" | "HookSucceeded" | "HookFailed";

export interface HookMarks {
  /** Absent for an event: it is not run then. */
  readonly phases: Readonly<Partial<Record<ApplyEvent, ApplyPhase>>>;
  readonly deletePolicies: ReadonlySet<DeletePolicy>;
  /** Who says that it is one. */
  readonly annotation: string;
  /** As they stand there. */
  readonly events: readonly string[];
  /** Those at which it is not run, whatever is applied. */
  readonly unrun: readonly string[];
}

export interface OrderMarks {
  readonly wave: number;
  readonly dependsOn: readonly ObjectId[];
  /** Absent of an object that is there to stay. */
  readonly hook?: HookMarks;
}

/** What is wrong with an annotation, and what to do. */
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

/** @returns the first problem, where an annotation cannot be gone by. */
export function orderMarksOf(object: ManifestObject): Read<OrderMarks> {
  const annotations = stringMapAt(object, "metadata", "annotations");
  const hook = hookOf(annotations);
  if (hook !== undefined && "problem" in hook) return hook;
  const wave = waveOf(annotations);
  if (typeof wave !== "number") return wave;
  const dependsOn = referencesOf(annotations[orderAnnotations.dependsOn] ?? "");
  if ("problem" in dependsOn) return dependsOn;
  return { wave, dependsOn, ...(hook === undefined ? {} : { hook }) };
}

/** Of any object, in whatever form it is. */
export function hookMarksOf(object: JsonObject): Read<HookMarks> | undefined {
  return hookOf(stringMapAt(object, "metadata", "annotations"));
}

/** Whether an object is run and not kept: by its marks, as far as they can be read. */
export function isHook(object: ManifestObject): boolean {
  const hook = hookMarksOf(object);
  return hook !== undefined && !("problem" in hook);
}

type Annotations = Readonly<Record<string, string>>;

/** Argo CD's annotation goes over Helm's, as there. */
function hookOf(annotations: Annotations): Read<HookMarks> | undefined {
  const argo = itemsOf(annotations[orderAnnotations.argoHook]);
  if (argo.length > 0) return argoHook(argo, annotations);
  // As Helm 3 and later have it, `crd-install` makes an object like any other.
  const helm = itemsOf(annotations[orderAnnotations.helmHook])
    .map((event) => event.toLowerCase())
    .filter((event) => event !== "crd-install");
  return helm.length === 0 ? undefined : helmHook(helm, annotations);
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

function argoHook(events: readonly string[], annotations: Annotations): Read<HookMarks> {
  const annotation = orderAnnotations.argoHook;
  const unknown = events.find((event) => !Object.hasOwn(argoPhases, event));
  if (unknown !== undefined) return refuse(annotation, `has ${quoted(unknown)}, expected ${oneOf(argoPhases)}`);
  const phases = new Set(events.map((event) => argoPhases[event]).filter((phase) => phase !== undefined));
  const [phase, ...others] = phases;
  if (others.length > 0) return refuse(annotation, `has the phases ${[...phases].join(" and ")}; ${twoObjects}`);
  const deletePolicies = policiesOf(annotations, orderAnnotations.argoDeletePolicy, argoPolicies);
  if ("problem" in deletePolicies) return deletePolicies;
  const isRun = phase !== undefined && !events.includes("Skip");
  const phaseOf = isRun ? { install: phase, upgrade: phase } : {};
  return { phases: phaseOf, deletePolicies, annotation, events, unrun: unrunOf(events, argoPhases) };
}

const twoObjects = "one object is run once for each apply: write it twice, under two names";

/** Legend: when, and in which phase; what is run at other times than an apply is run at none. */
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

function helmHook(events: readonly string[], annotations: Annotations): Read<HookMarks> {
  const annotation = orderAnnotations.helmHook;
  const unknown = events.find((event) => !Object.hasOwn(helmEvents, event));
  if (unknown !== undefined) return refuse(annotation, `has ${quoted(unknown)}, expected ${oneOf(helmEvents)}`);
  const phases: Partial<Record<ApplyEvent, ApplyPhase>> = {};
  for (const [event, phase] of events.map((name) => helmEvents[name]).filter((run) => run !== undefined)) {
    if (phases[event] !== undefined && phases[event] !== phase)
      return refuse(annotation, `is for before and after one ${event}; ${twoObjects}`);
    phases[event] = phase;
  }
  const deletePolicies = policiesOf(annotations, orderAnnotations.helmDeletePolicy, helmPolicies);
  return "problem" in deletePolicies
    ? deletePolicies
    : { phases, deletePolicies, annotation, events, unrun: unrunOf(events, helmEvents) };
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

/** A hook of Helm's has its weight, where it has no wave. */
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
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  return twice === undefined ? references : refuse(annotation, `names ${quoted(twice)} twice; remove one of them`);
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
