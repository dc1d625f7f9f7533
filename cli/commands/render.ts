import { clustersText } from "#cli/format/clusters-text.ts";
import { serialise } from "#cli/format/serialise.ts";
import { manifestYaml } from "#cli/output/manifest-yaml.ts";
import { isData } from "#cli/output/output.ts";
import { type ChangeOptions, namespaceOf, readChanges, refuseUnused } from "#cli/seeing/change-options.ts";
import { assignedDigests } from "#cli/seeing/changed-renderings.ts";
import { type FleetView, fleetOf, sourceNamesOf, viewFleet } from "#cli/seeing/fleet-view.ts";
import { ownerArgument } from "#cli/seeing/owner-argument.ts";
import { isApart, type ReadRendering, Renderer } from "#cli/seeing/renderer.ts";
import { CliFailure, type ExitReason } from "#cli/session/failure.ts";
import type { Session } from "#cli/session/session.ts";
import { defined } from "#shared/base/defined.ts";
import { plainLine } from "#shared/base/plain-text.ts";
import {
  type DesiredCluster,
  type DistinctInput,
  desiredClusters,
  distinctInputs,
} from "#shared/fleet/forecast/desired-clusters.ts";
import { eventOn } from "#shared/fleet/forecast/event-on.ts";
import { maskedOrigins } from "#shared/fleet/forecast/masked-origins.ts";
import { type Origin, originsOf } from "#shared/fleet/forecast/origins.ts";
import type { ManifestObject } from "#shared/kube/kube-object.ts";
import { objectIdOf } from "#shared/kube/kube-object.ts";
import { isSecret, maskedObject } from "#shared/kube/masked-object.ts";
import { describeObject } from "#shared/kube/object-id.ts";
import { type ApplyEvent, applyEvents } from "#shared/kube/order-marks.ts";

export interface RenderCommandOptions extends ChangeOptions {
  readonly cluster?: string;
  readonly showOrigin?: boolean;
  readonly showSecrets?: boolean;
}

/** One distinct rendering, in the form of `-o json`. */
interface Shown {
  readonly sync: string;
  readonly template: string;
  readonly revision: string;
  readonly digest: string;
  readonly clusters: readonly string[];
  /** Whether these are the objects for an install or an upgrade, if the rendering has different ones. */
  readonly event?: ApplyEvent;
  readonly leftOut: readonly string[];
  readonly origins?: readonly Origin[];
  readonly objects: readonly ManifestObject[];
}

/** Prints the manifests of a group or Sync: each distinct rendering once, with its clusters. */
export async function render(session: Session, target: string, options: RenderCommandOptions): Promise<ExitReason> {
  const changes = await readChanges(session, options);
  const { owner, template } = ownerArgument(target, namespaceOf(session, changes));
  const view = await viewFleet(session, owner, changes);
  refuseUnused(changes, sourceNamesOf(view.desired));
  const clusters = chosen(desiredClusters(view.desired, view.plan, fleetOf(view)), view, options);
  const found = distinctInputs(clusters);
  const inputs = found.distinct.filter((input) => template === undefined || input.template.name === template);
  if (template !== undefined && !view.plan.templates.some(({ name }) => name === template)) {
    const names = view.plan.templates.map(({ name }) => name).join(", ");
    throw new CliFailure(`SyncGroup ${owner.name} has no template ${template}; it has ${names}`, {
      exit: "wrongInput",
    });
  }
  const renderer = new Renderer(session, view);
  const { renderings, failures } = await renderingsOf(renderer, view, inputs);
  const shown: Shown[] = [];
  for (const input of inputs) {
    const rendering = renderings.get(input.digest);
    if (rendering === undefined) continue;
    for (const part of byEvent(input, rendering, view)) {
      const origins = options.showOrigin === true ? await originsIn(renderer, view, part) : undefined;
      // A stored rendering does not record the objects that were left out of it.
      const isWhole = renderer.isMade(rendering)
        ? rendering.leftOut.length === 0
        : !("helm" in (input.build.render ?? {}));
      shown.push(shownOf(part, rendering, { origins, options, leftOut: isWhole ? "nothing" : "something" }));
    }
  }
  print(session, shown, options);
  for (const { template: of, problem, cluster } of found.problems) {
    if (template === undefined || of === template) session.note(`${cluster}: template ${of}: ${problem}`);
  }
  for (const input of inputs) {
    const failure = failures.get(input.digest);
    if (failure !== undefined)
      session.note(`${clustersText(input.clusters)}: template ${input.template.name}: ${failure}`);
  }
  if (view.unreadable.length > 0)
    session.note(`not shown: ${clustersText(view.unreadable)}: a newer version of Starling wrote their rows`);
  return failures.size > 0 || found.problems.length > 0 ? "no" : "done";
}

function chosen(
  clusters: readonly DesiredCluster[],
  view: FleetView,
  { cluster: name, offline }: Pick<RenderCommandOptions, "cluster" | "offline">,
): readonly DesiredCluster[] {
  const { kind, name: of, namespace } = view.owner;
  const described = `starling describe ${kind.toLowerCase()}/${of} -n ${namespace}`;
  const [next, known] =
    offline === true
      ? ["a document of kind Cluster in a file of -f", "in a document"]
      : ([described, "registered"] as const);
  if (name === undefined) {
    if (clusters.length > 0) return clusters;
    throw new CliFailure(`${kind} ${namespace}/${of} selects no cluster that is ${known}`, { exit: "no", next });
  }
  const one = clusters.filter(({ cluster }) => cluster === name);
  if (one.length > 0) return one;
  const why = view.clusters.some((cluster) => cluster.name === name) ? "is not selected" : `is not ${known}`;
  throw new CliFailure(`cluster ${name} ${why}: ${kind} ${namespace}/${of} has no rendering for it`, {
    exit: "no",
    next,
  });
}

interface Renderings {
  /** By digest of the input. */
  readonly renderings: ReadonlyMap<string, ReadRendering>;
  readonly failures: ReadonlyMap<string, string>;
}

/** Reads the renderings that clusters were assigned, and makes the others. */
async function renderingsOf(
  renderer: Renderer,
  view: FleetView,
  inputs: readonly DistinctInput[],
): Promise<Renderings> {
  const assigned = assignedDigests(view);
  const known = inputs.flatMap(({ digest }) => assigned.get(digest) ?? []);
  const stored = await renderer.stored(known);
  const made = await renderer.made(inputs.filter(({ digest }) => !assigned.has(digest)));
  const renderings = new Map(made.renderings);
  for (const { digest } of inputs) {
    const found = stored.get(assigned.get(digest) ?? "");
    if (found !== undefined) renderings.set(digest, found);
  }
  return { renderings, failures: made.failures };
}

interface InputPart extends DistinctInput {
  /** Whether these clusters get the objects for an install or an upgrade, if the rendering has different ones. */
  readonly event?: ApplyEvent;
}

function byEvent(input: DistinctInput, rendering: ReadRendering, view: FleetView): readonly InputPart[] {
  if (!isApart(rendering)) return [input];
  const syncs = new Map(
    view.clusters.map(({ name, syncs: all }) => [name, all.find((one) => one.name === input.sync)]),
  );
  return applyEvents.flatMap((event) => {
    const clusters = input.clusters.filter((name) => eventOn(syncs.get(name), rendering.digest) === event);
    return clusters.length === 0 ? [] : [{ ...input, clusters, event }];
  });
}

/** The origins of parameters and values on the first of the clusters. */
async function originsIn(
  renderer: Renderer,
  { clusters, layers }: FleetView,
  input: DistinctInput,
): Promise<readonly Origin[]> {
  const cluster = clusters.find(({ name }) => name === input.clusters[0]);
  if (cluster === undefined) return [];
  return originsOf(input.template, { cluster, layers, files: await renderer.valuesFiles(input) });
}

function shownOf(
  { template, sync, clusters, event }: InputPart,
  { digest, objects: all, leftOut }: ReadRendering,
  {
    origins,
    options,
    leftOut: unseen,
  }: {
    readonly origins: readonly Origin[] | undefined;
    readonly options: RenderCommandOptions;
    readonly leftOut: "nothing" | "something";
  },
): Shown {
  const isOpen = options.showSecrets === true;
  const objects = all[event ?? "upgrade"];
  const shownOrigins =
    origins === undefined || isOpen ? origins : maskedOrigins(origins, [...all.install, ...all.upgrade], unseen);
  return {
    sync,
    template: template.name,
    revision: template.revision,
    digest,
    clusters,
    ...defined({ event }),
    leftOut,
    ...defined({ origins: shownOrigins }),
    objects: isOpen ? objects : objects.map(maskedObject),
  };
}

function print(session: Session, shown: readonly Shown[], options: RenderCommandOptions): void {
  const { output } = session.options;
  if (isData(output) && output !== "yaml") {
    session.io.out(serialise({ kind: "RenderingList", metadata: {}, items: shown }, output));
    return;
  }
  for (const rendering of shown) {
    if (output === "name") {
      for (const object of rendering.objects) session.io.out(`${plainLine(describeObject(objectIdOf(object)))}\n`);
      continue;
    }
    session.io.out(headOf(rendering));
    for (const object of rendering.objects) session.io.out(`---\n${manifestYaml(object)}`);
  }
  if (options.showSecrets !== true && shown.some(({ objects }) => objects.some(isSecret)))
    session.note("values of Secrets are shown as ***; --show-secrets shows them");
}

/** The header as comments, so that the whole output is YAML. */
function headOf({ sync, clusters, event, revision, digest, leftOut, origins = [] }: Shown): string {
  const what = event === undefined ? "" : event === "install" ? ", for a first install" : ", for an upgrade";
  const lines = [
    `${sync} on ${clustersText(clusters)}${what}, ${revision}`,
    `rendering ${digest}`,
    ...leftOut.map((text) => `left out of the rendering: ${text}`),
    ...(origins.length === 0 ? [] : [`on ${clusters[0] ?? ""}:`]),
    ...origins.map(({ field, value, from }) => `  ${field} = ${JSON.stringify(value)}   (${from.join(" <- ")})`),
  ];
  return lines.map((line) => `# ${plainLine(line)}\n`).join("");
}
