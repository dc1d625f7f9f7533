/** Computes what a rollout does: pure functions of an owner, its Sources and the fleet. */

import { defined } from "#shared/base/defined.ts";
import { digestOf } from "#shared/base/digest.ts";
import { canonicalJson } from "#shared/base/json.ts";
import { renderPath } from "#shared/base/path-template.ts";
import { compareText } from "#shared/base/text-order.ts";
import { type SelectableCluster, selects } from "#shared/fleet/kinds/cluster-selection.ts";
import type { RolloutStrategy, SyncGroupSpec } from "#shared/fleet/kinds/sync-group.ts";
import { rolloutStrategy } from "#shared/fleet/kinds/sync-group.ts";
import type { SyncTemplate, TemplateOverride } from "#shared/fleet/kinds/sync-template.ts";
import { pathsTaken, type SourcePin, templateSources, valueSources } from "#shared/fleet/kinds/template-sources.ts";
import {
  bindFields,
  boundInputs,
  digestOnce,
  overridden,
  overridesFor,
  specialisationFieldsOf,
  specialisationOf,
} from "#shared/fleet/rollout/cluster-inputs.ts";
import type { Artifact, FleetRow, SyncGroupRow, UserSyncRow } from "#shared/fleet/rows/object-rows.ts";
import type {
  BoundInputs,
  PinnedSource,
  Plan,
  PlannedOverride,
  PlannedTemplate,
  RolloutStateRow,
  SnapshotTarget,
  TargetInput,
} from "#shared/fleet/rows/rollout-rows.ts";
import type { Among } from "#shared/kube/reasons.ts";
import { digestAt } from "#shared/source/folder-digests.ts";
import { helmOptions } from "#shared/source/helm/helm-options.ts";
import type { RenderOptions } from "#shared/source/render-options.ts";
import type { Specialisation } from "#shared/source/specialisation.ts";
import { normalFolder } from "#shared/source/tree-listing.ts";

/** Part of every distinct input: a renderer with other results makes a new plan. */
export const renderEngine = "starling-render/1 kubectl-v35";

/** The fields of a SyncGroup and of a user's Sync that the planner uses. */
export type Relation = Pick<SyncGroupSpec, "clusters" | "templates"> & { readonly rollout: RolloutStrategy };

type Plannable = "type" | "namespace" | "name" | "spec" | "operations";
/** The spec that a plan is made from, written or about to be written. */
export type PlannedOwner = Pick<SyncGroupRow, Plannable> | Pick<UserSyncRow, Plannable>;

/** The facts about a Source's artifact that a plan needs. */
export type PlannedArtifact = Pick<Artifact, "revision" | "digest" | "charts" | "folders">;

/** The facts about a Source that a plan needs. */
export interface SourceFacts {
  readonly status: { readonly artifact?: PlannedArtifact };
  /** The revisions at which templates stay. */
  readonly pins?: ReadonlyMap<string, PinFacts> | undefined;
}

/** A revision of a Source: its artifact, why there is none, or neither until it was looked for. */
export interface PinFacts {
  readonly artifact?: PlannedArtifact;
  readonly failure?: { readonly message: string };
}

/** A user's Sync is a group of one cluster and one template. */
export function relationOf(row: PlannedOwner): Relation {
  if (row.type === "SyncGroup") return row.spec;
  const { cluster, ...template } = row.spec;
  return {
    clusters: { names: [cluster] },
    templates: [{ name: row.name, ...template }],
    rollout: rolloutStrategy.parse({}),
  };
}

export type DesiredPlan =
  | { readonly ok: true; readonly plan: Plan }
  /** Why there is nothing to plan yet. */
  | {
      readonly ok: false;
      readonly reason: Among<
        "SourceNotFound" | "SourceNotReady" | "RevisionNotStored" | "RowTooLarge" | "NewerRow" | "NoProgress"
      >;
      readonly message: string;
    };

/** A template that stays in the plan although the spec drops it, and its position in the rollout that has it. */
export interface KeptTemplate {
  readonly template: PlannedTemplate;
  readonly at: number;
}

/**
 * The desired plan of an owner: every template pinned to its Source's artifact. An owner that is being deleted has a
 * plan without templates. @param kept - in the order of their positions.
 */
export function desiredPlan(
  row: PlannedOwner,
  sources: ReadonlyMap<string, SourceFacts>,
  kept: readonly KeptTemplate[] = [],
): DesiredPlan {
  if (row.operations.deletion !== undefined) return { ok: true, plan: planOf({ templates: [], deletion: "delete" }) };
  const relation = relationOf(row);
  const templates: PlannedTemplate[] = [];
  for (const template of relation.templates) {
    const artifacts = new Map<string, PlannedArtifact>();
    for (const name of templateSources(template)) {
      const source = sources.get(name);
      if (source === undefined) {
        const message = `template ${template.name}: there is no Source ${name} in namespace ${row.namespace}; apply one, or name another`;
        return { ok: false, reason: "SourceNotFound", message };
      }
      if (name === template.source && template.revision !== undefined) {
        const pin = pinnedArtifact(source, { source: name, revision: template.revision });
        if (typeof pin === "string")
          return { ok: false, reason: "RevisionNotStored", message: `template ${template.name}: ${pin}` };
        artifacts.set(name, pin);
        continue;
      }
      const artifact = source.status.artifact;
      if (artifact === undefined) {
        const message = `template ${template.name}: Source ${name} has no artifact yet; see: starling describe source/${name} -n ${row.namespace}`;
        return { ok: false, reason: "SourceNotReady", message };
      }
      artifacts.set(name, artifact);
    }
    templates.push(pinned(template, artifacts));
  }
  for (const { template, at } of kept) templates.splice(at, 0, template);
  return { ok: true, plan: planOf({ templates }) };
}

/** The artifact of a revision, or why there is none. */
function pinnedArtifact({ pins }: SourceFacts, { source, revision }: SourcePin): PlannedArtifact | string {
  const { artifact, failure } = pins?.get(revision) ?? {};
  if (failure !== undefined) return `revision ${revision} of Source ${source}: ${failure.message}`;
  return artifact ?? `revision ${revision} of Source ${source} is looked for; it is not stored yet`;
}

/** @param artifacts - artifacts of every Source that it names. */
function pinned(template: SyncTemplate, artifacts: ReadonlyMap<string, PlannedArtifact>): PlannedTemplate {
  const pins = [...artifacts].map(([source, artifact]) => ({
    artifact,
    pin: pinOf(source, artifact, pathsTaken(template, source)),
  }));
  const [own, ...besides] = pins;
  if (own === undefined) throw new Error("a template without a Source");
  const { artifact, pin } = own;
  return {
    name: template.name,
    ...pin,
    path: template.path,
    apply: template.apply,
    ...defined({
      besides: besides.length === 0 ? undefined : besides.map(({ pin }) => pin),
      render: template.render ?? detectedRender(template.path, artifact),
      ...specialisationFieldsOf(template),
      overrides: template.overrides?.map((override) => pinnedOverride(template, override, artifact)),
    }),
  };
}

function pinOf(
  source: string,
  { revision, digest, folders = {} }: PlannedArtifact,
  paths: readonly string[],
): PinnedSource {
  const taken = paths.map((path) => digestAt(fixedPart(path), folders));
  const counts = taken.includes(undefined) ? undefined : digestOf([...new Set(taken)].sort());
  return { source, revision, artifactDigest: digest, ...defined({ counts }) };
}

/** The folder that all clusters have in common, whatever the expressions' values. */
function fixedPart(path: string): string {
  const [fixed = ""] = path.split("{{", 1);
  return normalFolder(fixed === path ? path : fixed.slice(0, Math.max(0, fixed.lastIndexOf("/"))));
}

/** The kind of a folder other than the template's is detected again, unless the override states it. */
function pinnedOverride(
  { render }: SyncTemplate,
  override: TemplateOverride,
  artifact: PlannedArtifact,
): PlannedOverride {
  if (override.path === undefined || override.render !== undefined || render !== undefined) return override;
  return { ...override, render: detectedRender(override.path, artifact) ?? "detect" };
}

/** Charts are recognised by their folders; every other folder is examined when it is rendered. */
function detectedRender(path: string, { charts = [] }: PlannedArtifact): RenderOptions | undefined {
  return charts.includes(normalFolder(path)) ? { helm: helmOptions.parse({}) } : undefined;
}

function planOf(parts: Omit<Plan, "planHash">): Plan {
  const planHash = digestOf({ ...parts, templates: parts.templates.map(rolloutOf), engine: renderEngine });
  return { ...parts, planHash };
}

/**
 * The part of a template that the plan's hash covers: its fields, with `apply`, and the digests of its files. A commit that
 * changes none of these files makes no new plan.
 */
function rolloutOf(template: PlannedTemplate) {
  const { revision: _revision, source: _source, artifactRevision: _earlier, ...own } = template;
  const { besides, counts, artifactDigest, ...rollout } = own;
  // The names stay, because a values file names its Source.
  const others = besides?.map((pin) => ({ source: pin.source, artifactDigest: pin.counts ?? pin.artifactDigest }));
  return { ...rollout, artifactDigest: counts ?? artifactDigest, ...defined({ besides: others }) };
}

/** The revision of a plan's templates, or the number of their revisions; a plan without templates is a deletion. */
export function describeRevisions({ templates }: Pick<Plan, "templates">): string {
  const [revision = "the deletion", ...others] = new Set(templates.map((template) => template.revision));
  return others.length === 0 ? revision : `${others.length + 1} revisions`;
}

/** The distinct input of a rendering. */
export interface RenderingInput {
  readonly artifactDigest: string;
  readonly path: string;
  readonly render?: RenderOptions;
  /** The further inputs of a chart. */
  readonly release?: { readonly name: string; readonly namespace: string };
  /** Artifacts of other Sources with values files. */
  readonly besides?: readonly Pick<PinnedSource, "source" | "artifactDigest">[];
  readonly specialise?: Specialisation;
  readonly bound?: BoundInputs;
  /** True when the artifacts are in the digest. */
  readonly overrides?: readonly number[];
}

export function inputDigest({ overrides: _applied, ...whole }: RenderingInput): string {
  const { render, specialise } = whole;
  const edits = specialise?.edits && digestOnce(specialise.edits);
  const input = edits === undefined ? whole : { ...whole, specialise: { ...specialise, edits } };
  if (render?.helm === undefined) return digestOf({ ...input, engine: renderEngine });
  return digestOf({ ...input, render: { helm: digestOnce(render.helm) }, engine: renderEngine });
}

/** A selected cluster in its stage, with everything that its inputs are made from. */
export interface Member {
  readonly cluster: string;
  /** Uid of the Cluster object: a new registration under the same name is another cluster. */
  readonly uid: string;
  /** Name of its stage. */
  readonly stage: string;
  readonly labels: FleetRow["labels"];
  readonly values: FleetRow["values"];
  /** Version of the member list in which it joined this stage. */
  readonly since: number;
  /** It is not selected any more, and a guard withholds that it leaves: it keeps what it has. */
  readonly leaving?: true;
}

/** The selected clusters by name, each in exactly one stage (the first that matches). */
export function membersOf(
  relation: Relation,
  fleet: readonly Pick<FleetRow, "name" | "uid" | "labels" | "values">[],
  since: number,
): readonly Member[] {
  return fleet
    .filter((cluster) => selects(relation.clusters, cluster))
    .map(({ name, uid, labels, values }) => ({
      cluster: name,
      uid,
      stage: stageOf(relation.rollout, { name, labels }),
      labels,
      values,
      since,
    }))
    .sort((a, b) => compareText(a.cluster, b.cluster));
}

/**
 * How a member list differs from the one before. A member of both that did not move keeps the version in which it
 * joined.
 */
export interface MemberChanges {
  readonly members: readonly Member[];
  readonly joined: readonly string[];
  readonly left: readonly string[];
  readonly relabelled: readonly string[];
  /** The inputs of a cluster that stayed in its stage have changed: that makes a new rollout. */
  readonly otherInputs: boolean;
}

/**
 * @param before - members without a uid are only known to have been there.
 * @param plan - plan of the newest rollout, which tells the labels and values that matter.
 */
export function memberChanges(
  before: readonly Member[],
  found: readonly Member[],
  plan: Pick<Plan, "templates"> | undefined,
): MemberChanges {
  const known = new Map(before.map((member) => [member.cluster, member]));
  const [joined, relabelled]: [string[], string[]] = [[], []];
  let otherInputs = false;
  const members = found.map((member) => {
    const old = known.get(member.cluster);
    // Includes members that are only known to have been there: their stage or inputs may have changed. A cluster that
    // was about to leave missed rollouts meanwhile.
    const isBack = old?.leaving === true && member.leaving === undefined;
    if (old === undefined || old.uid !== member.uid || isBack) joined.push(member.cluster);
    else if (old.stage !== member.stage) relabelled.push(member.cluster);
    else {
      otherInputs ||= plan !== undefined && !haveSameInputs(plan, old, member);
      return { ...member, since: old.since };
    }
    return member;
  });
  const still = new Map(found.map((member) => [member.cluster, member.uid]));
  const isGone = ({ cluster, uid }: Member) => (uid === "" ? !still.has(cluster) : still.get(cluster) !== uid);
  const left = before.filter(isGone).map(({ cluster }) => cluster);
  return { members, joined, left, relabelled, otherInputs };
}

function haveSameInputs(plan: Pick<Plan, "templates">, a: Member, b: Member): boolean {
  if (canonicalJson([a.labels, a.values]) === canonicalJson([b.labels, b.values])) return true;
  return canonicalJson(inputsOf(plan, a)) === canonicalJson(inputsOf(plan, b));
}

/** The inputs of a plan's templates on a cluster, in order. */
export function inputsOf({ templates }: Pick<Plan, "templates">, member: Omit<Member, "stage" | "since" | "uid">) {
  const { cluster: name, labels, values } = member;
  return templates.map((template) => inputOf(template, { name, labels, values }));
}

/** The entry of a cluster in a snapshot of a plan. */
export function snapshotTarget(
  member: Pick<Member, "cluster" | "uid" | "labels" | "values">,
  plan: Plan,
): SnapshotTarget {
  const inputs = inputsOf(plan, member).map(
    (input): TargetInput =>
      "path" in input
        ? {
            digest: inputDigest(input),
            path: input.path,
            ...defined({ overrides: input.overrides, bound: input.bound }),
          }
        : input,
  );
  return { cluster: member.cluster, uid: member.uid, inputs };
}

/** The first stage that selects the cluster; the last one takes every other. */
export function stageOf({ stages }: RolloutStrategy, cluster: SelectableCluster): string {
  const stage = stages.find(({ clusters }) => clusters === undefined || selects(clusters, cluster)) ?? stages.at(-1);
  if (stage === undefined) throw new Error("a strategy without stages");
  return stage.name;
}

/** The input of the template on this cluster, or the reason why it is unknown. */
export function inputOf(
  planned: PlannedTemplate,
  cluster: Pick<FleetRow, "name" | "labels" | "values">,
): RenderingInput | { readonly problem: string } | { readonly disabled: true } {
  const overrides = overridesFor(planned, cluster);
  const template = overridden(planned, overrides);
  if (template.disabled === true) return { disabled: true };
  const context = { ...cluster, params: template.parameters ?? {} };
  const rendered = renderPath(template.path, context);
  if (!rendered.ok) return { problem: rendered.message };
  const chart = boundInputs(template, context);
  if ("problem" in chart) return chart;
  const fields = bindFields(template, context);
  if ("problem" in fields) return fields;
  const bound = { ...chart.bound, ...fields };
  const { name, artifactDigest, render, apply } = template;
  const release =
    render?.helm === undefined
      ? undefined
      : { name: render.helm.releaseName ?? name, namespace: apply.defaultNamespace ?? "" };
  const named = valueSources(render);
  const others = template.besides?.filter(({ source }) => named.includes(source));
  const besides = others?.map((pin) => ({ source: pin.source, artifactDigest: pin.artifactDigest }));
  return {
    artifactDigest,
    path: rendered.path,
    ...(besides === undefined || besides.length === 0 ? {} : { besides }),
    ...defined({ render, release, specialise: specialisationOf(template, bound) }),
    ...(Object.keys(bound).length === 0 ? {} : { bound }),
    ...(overrides.length === 0 ? {} : { overrides }),
  };
}

/**
 * Equal for plans that take every cluster to the same state: it covers the plan, the inputs of members, and whether a
 * recovery has happened since.
 */
export function planIdentity(
  plan: Plan,
  seen: { readonly inputsVersion: number; readonly recovered: number | undefined },
) {
  return digestOf({ planHash: plan.planHash, inputs: seen.inputsVersion, recovered: seen.recovered ?? 0 });
}

/** The identity of an owner's plan now. */
export function identityNow(
  {
    rolloutState,
    row,
  }: { readonly rolloutState: Pick<RolloutStateRow, "inputsVersion">; readonly row: Pick<PlannedOwner, "operations"> },
  plan: Plan,
): string {
  return planIdentity(plan, { inputsVersion: rolloutState.inputsVersion, recovered: row.operations.recovered?.number });
}
