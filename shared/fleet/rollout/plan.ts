/** What a rollout is to do: pure functions from a subject, its sources and the fleet. */

import { defined } from "#shared/base/defined.ts";
import { digestOf } from "#shared/base/digest.ts";
import { renderPath } from "#shared/base/path-template.ts";
import { selects } from "#shared/fleet/kinds/cluster-selection.ts";
import type { RolloutStrategy, SyncGroupSpec } from "#shared/fleet/kinds/sync-group.ts";
import { rolloutStrategy } from "#shared/fleet/kinds/sync-group.ts";
import type { SyncTemplate } from "#shared/fleet/kinds/sync-template.ts";
import type { FleetRow, SourceRow, SubjectRow } from "#shared/fleet/rows/object-rows.ts";
import type { HeadRow, Plan, PlannedTemplate } from "#shared/fleet/rows/rollout-rows.ts";
import type { RenderOptions } from "#shared/source/render-options.ts";

/** Part of every distinct input: a renderer that renders otherwise is a new plan. */
export const renderEngine = "starling-render/1 kubectl-v35";

/** What a SyncGroup and a user's Sync have in common for the planner. */
export type Relation = Pick<SyncGroupSpec, "clusters" | "templates"> & { readonly rollout: RolloutStrategy };

/** A user's Sync is a group of one cluster and one template. */
export function relationOf(row: SubjectRow): Relation {
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
  /** Nothing to plan yet, and why. */
  | {
      readonly ok: false;
      readonly reason: "SourceNotFound" | "SourceNotReady" | "RowTooLarge" | "NewerRow";
      readonly message: string;
    };

/**
 * The plan a subject asks for now: every template pinned to its Source's artifact, every template that was assigned
 * before and is gone marked for removal. A deleted subject asks for a plan without templates.
 */
export function desiredPlan(
  row: SubjectRow,
  sources: ReadonlyMap<string, SourceRow>,
  head: HeadRow | undefined,
): DesiredPlan {
  const assigned = head?.templates ?? [];
  const farewell = row.operations.deletion?.cascade;
  if (farewell !== undefined) return { ok: true, plan: planOf({ templates: [], removed: [...assigned], farewell }) };
  const relation = relationOf(row);
  const templates: PlannedTemplate[] = [];
  for (const template of relation.templates) {
    const source = sources.get(template.source);
    if (source === undefined) {
      const message = `template ${template.name}: there is no Source ${template.source} in namespace ${row.namespace}; apply one, or name another`;
      return { ok: false, reason: "SourceNotFound", message };
    }
    const artifact = source.status.artifact;
    if (artifact === undefined) {
      const message = `template ${template.name}: Source ${template.source} has no artifact yet; see: starling describe source/${template.source} -n ${row.namespace}`;
      return { ok: false, reason: "SourceNotReady", message };
    }
    templates.push(pinned(template, artifact));
  }
  const names = new Set(templates.map((template) => template.name));
  return { ok: true, plan: planOf({ templates, removed: assigned.filter((name) => !names.has(name)) }) };
}

function pinned(
  template: SyncTemplate,
  artifact: { readonly revision: string; readonly digest: string },
): PlannedTemplate {
  return {
    name: template.name,
    source: template.source,
    revision: artifact.revision,
    artifactDigest: artifact.digest,
    path: template.path,
    apply: template.apply,
    ...defined({ render: template.render }),
  };
}

/** Removals are no content: they follow from what was assigned before, and are done with when the plan is reached. */
function planOf(parts: Omit<Plan, "contentHash">): Plan {
  const { removed: _removed, ...content } = parts;
  return {
    ...parts,
    contentHash: digestOf({ ...content, templates: parts.templates.map(contentOf), engine: renderEngine }),
  };
}

/** Only the content counts: a commit that leaves the part alone is no new plan. */
function contentOf(template: PlannedTemplate): Omit<PlannedTemplate, "revision" | "source"> {
  const { revision: _revision, source: _source, ...content } = template;
  return content;
}

/** The distinct input a rendering is made from. */
export interface RenderingInput {
  readonly artifactDigest: string;
  readonly path: string;
  readonly render?: RenderOptions;
}

export function inputDigest(input: RenderingInput): string {
  return digestOf({ ...input, engine: renderEngine });
}

/** One selected cluster in its place: its stage, and for every template what it is rendered from. */
export interface Member {
  readonly cluster: string;
  /** Of the Cluster object: registered anew under the same name, it is another one. */
  readonly uid: string;
  readonly stage: number;
  /** By template in the plan's order; `problem` when the path cannot be computed for this cluster. */
  readonly inputs: readonly (RenderingInput | { readonly problem: string })[];
}

/**
 * The selected clusters, each in exactly one stage (the first that matches), ordered by stage and name.
 */
export function membersOf(relation: Relation, plan: Plan, fleet: readonly FleetRow[]): Member[] {
  const members: Member[] = [];
  for (const cluster of fleet) {
    if (!selects(relation.clusters, cluster)) continue;
    members.push({
      cluster: cluster.name,
      uid: cluster.uid,
      stage: stageOf(relation.rollout, cluster),
      inputs: plan.templates.map((template) => inputOf(template, cluster)),
    });
  }
  return members.sort((a, b) => a.stage - b.stage || (a.cluster < b.cluster ? -1 : 1));
}

/** The first stage that takes the cluster; the last one takes every other. */
export function stageOf(strategy: RolloutStrategy, cluster: FleetRow): number {
  const index = strategy.stages.findIndex((stage) => stage.clusters === undefined || selects(stage.clusters, cluster));
  return index === -1 ? strategy.stages.length - 1 : index;
}

/** What the template is rendered from on this cluster, or why that cannot be said. */
export function inputOf(template: PlannedTemplate, cluster: FleetRow): RenderingInput | { readonly problem: string } {
  const rendered = renderPath(template.path, cluster);
  if (!rendered.ok) return { problem: rendered.message };
  return {
    artifactDigest: template.artifactDigest,
    path: rendered.path,
    ...defined({ render: template.render }),
  };
}

/** Equal for equal sets of clusters with equal inputs: a changed label that moves nothing is no change. */
export function membershipHash(members: readonly Member[]): string {
  return digestOf(members.map(({ cluster, uid, inputs }) => ({ cluster, uid, inputs })));
}
