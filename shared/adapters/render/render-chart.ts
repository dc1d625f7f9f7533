import { unpackCharts } from "#shared/adapters/render/packed-charts.ts";
import { StarlingError } from "#shared/base/errors.ts";
import { isJsonObject } from "#shared/base/json.ts";
import { applyMark } from "#shared/kube/apply-marks.ts";
import { stringMapAt } from "#shared/kube/kube-object.ts";
import type { HelmOutputs, HelmRunner, TreeFile } from "#shared/ports.ts";
import { asksForEvent, type ByEvent } from "#shared/source/helm/both-events.ts";
import { type Chart, readChart } from "#shared/source/helm/chart.ts";
import { chartValues } from "#shared/source/helm/chart-values.ts";
import { explainHelm } from "#shared/source/helm/explain-helm.ts";
import type { HelmRelease } from "#shared/source/helm/helm-release.ts";
import { siftHooks } from "#shared/source/helm/hooks.ts";
import { readOutput } from "#shared/source/helm/rendered-output.ts";
import { chartRenderings, requireSame } from "#shared/source/helm/second-rendering.ts";
import { type Manifest, readManifests } from "#shared/source/manifests.ts";
import { isWithin } from "#shared/source/tree-listing.ts";
import type { ManifestDocument } from "#shared/source/yaml/manifest-documents.ts";

export interface ChartRequest {
  readonly files: readonly TreeFile[];
  /** The chart's folder inside the artifact; `.` is the artifact itself. */
  readonly path: string;
  readonly release: HelmRelease;
  /** Files of other artifacts that the release may name, by digest. */
  readonly others?: ReadonlyMap<string, readonly TreeFile[]>;
}

/**
 * The documents of a chart, for an install and for an upgrade. Each is rendered twice, and a difference between both
 * renderings is refused.
 * @throws ManifestError for a problem of the chart or its values, `NonDeterministicRender`; StarlingError `HelmFailed`.
 */
export async function renderChart(
  { files, path, release, others }: ChartRequest,
  { helm }: { readonly helm: HelmRunner },
): Promise<ByEvent<readonly ManifestDocument[]>> {
  const chart = readChart(path, await unpackCharts(path, filesBelow(files, path)));
  const values = chartValues(release, files, others);
  const upgrade = asksForEvent(chart, values) ? "apart" : "alike";
  const input = { ...chartRenderings(chart, release.lookup), values, release, upgrade } as const;
  const answer = await helm.template(input).catch((error: unknown) => {
    throw ofChart(path, error);
  });
  if ("refusal" in answer) throw explainHelm(chart, answer.refusal);
  const install = documentsOf(chart, answer.outputs, release);
  return { install, upgrade: answer.upgrade === undefined ? install : documentsOf(chart, answer.upgrade, release) };
}

/** Names the chart in the error, because a template can have several charts through a kustomization. */
function ofChart(path: string, error: unknown): unknown {
  if (!(error instanceof StarlingError) || error.code !== "HelmFailed") return error;
  const { code, retry, data } = error;
  return new StarlingError(`${path}: ${error.message}`, { code, retry, data, cause: error });
}

function documentsOf(
  chart: Chart,
  [first, second]: HelmOutputs,
  { hooks, crds }: HelmRelease,
): readonly ManifestDocument[] {
  const documents = readOutput(chart, first);
  // A different order or different comments do not change the objects.
  if (first !== second) requireSame(applied(documents, hooks), applied(readOutput(chart, second), hooks));
  return crds === "Create"
    ? documents.map((document) => (isOfCrds(chart, document) ? onlyMade(document) : document))
    : documents;
}

/** Whether the document is in the folder `crds/` of the chart or of a dependency. */
function isOfCrds({ folder }: Chart, { file }: ManifestDocument): boolean {
  return /^(?:charts\/[^/]+\/)*crds\//.test(folder === "." ? file : file.slice(folder.length + 1));
}

function onlyMade(document: ManifestDocument): ManifestDocument {
  const { metadata } = document.object;
  const annotations = stringMapAt(document.object, "metadata", "annotations");
  const marked = {
    ...(isJsonObject(metadata) ? metadata : {}),
    annotations: { ...annotations, [applyMark]: "IfNotPresent" },
  };
  return { ...document, object: { ...document.object, metadata: marked } };
}

/** Hooks that are left out may have a different name each time: names of test hooks are often random. */
function applied(documents: readonly ManifestDocument[], hooks: HelmRelease["hooks"]): readonly Manifest[] {
  return readManifests(siftHooks(documents, hooks).documents);
}

function filesBelow(files: readonly TreeFile[], path: string): ReadonlyMap<string, Uint8Array> {
  const start = path === "." ? 0 : path.length + 1;
  return new Map(
    files.filter((file) => isWithin(file.path, [path])).map(({ path: name, content }) => [name.slice(start), content]),
  );
}
