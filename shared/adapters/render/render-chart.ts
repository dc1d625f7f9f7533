import { unpackCharts } from "#shared/adapters/render/packed-charts.ts";
import type { HelmRunner, TreeFile } from "#shared/ports.ts";
import { asksForEvent, forBothEvents } from "#shared/source/helm/both-events.ts";
import { readChart } from "#shared/source/helm/chart.ts";
import { explainHelm } from "#shared/source/helm/explain-helm.ts";
import type { HelmRelease } from "#shared/source/helm/helm-release.ts";
import { siftHooks } from "#shared/source/helm/hooks.ts";
import { readOutput } from "#shared/source/helm/rendered-output.ts";
import { renderingsOf, requireSame } from "#shared/source/helm/second-rendering.ts";
import { valuesOf } from "#shared/source/helm/values.ts";
import { type Manifest, readManifests } from "#shared/source/manifests.ts";
import { isWithin } from "#shared/source/tree-listing.ts";
import type { ManifestDocument } from "#shared/source/yaml/manifest-documents.ts";

export interface ChartRequest {
  readonly files: readonly TreeFile[];
  /** The chart's folder inside the artifact; `.` is the artifact itself. */
  readonly path: string;
  readonly release: HelmRelease;
}

/**
 * The documents of a chart, rendered twice: what is not the same both times is refused, and so is what is another at an
 * upgrade, but for hooks.
 * @throws ManifestError of what is wrong with the chart or its values, `NonDeterministicRender`; StarlingError `HelmFailed`.
 */
export async function renderChart(
  { files, path, release }: ChartRequest,
  { helm }: { readonly helm: HelmRunner },
): Promise<ManifestDocument[]> {
  const chart = readChart(path, await unpackCharts(path, filesBelow(files, path)));
  const values = valuesOf(release, files);
  const upgrade = asksForEvent(chart, values) ? "apart" : "alike";
  const answer = await helm.template({ ...renderingsOf(chart, release.lookup), values, release, upgrade });
  if ("refusal" in answer) throw explainHelm(chart, answer.refusal);
  const [first, second] = answer.outputs;
  const documents = readOutput(chart, first);
  // Documents in another order, or other comments, are no other objects.
  if (first !== second) {
    const { hooks } = release;
    requireSame(applied(documents, hooks), applied(readOutput(chart, second), hooks));
  }
  if (answer.upgrade === undefined || answer.upgrade === first) return documents;
  return forBothEvents(documents, readOutput(chart, answer.upgrade));
}

/** What is left out may be called otherwise each time: names of tests are often drawn by lot. */
function applied(documents: readonly ManifestDocument[], hooks: HelmRelease["hooks"]): readonly Manifest[] {
  return readManifests(siftHooks(documents, hooks).documents);
}

function filesBelow(files: readonly TreeFile[], path: string): ReadonlyMap<string, Uint8Array> {
  const start = path === "." ? 0 : path.length + 1;
  return new Map(
    files.filter((file) => isWithin(file.path, [path])).map(({ path: name, content }) => [name.slice(start), content]),
  );
}
