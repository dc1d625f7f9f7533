/**
 * A rendering is made once for many clusters, and made again where it is lost: what is drawn by lot, or read off a clock,
 * would be shared by a fleet and then change by itself. So a chart is rendered twice, each time with fixed answers of its own.
 */
import { isJsonObject, type Json } from "#shared/base/json.ts";
import { describeObject } from "#shared/kube/object-id.ts";
import { bytesAsText, type Chart } from "#shared/source/helm/chart.ts";
import { fixedFile, fixedFunctions, fixedTemplates, type Version } from "#shared/source/helm/fixed-functions.ts";
import { withCalls } from "#shared/source/helm/template-calls.ts";
import type { Manifest } from "#shared/source/manifests.ts";
import { ManifestError } from "#shared/source/yaml/manifest-error.ts";

interface Renderings {
  /** The chart's files for the first one. */
  readonly chart: ReadonlyMap<string, Uint8Array>;
  /** Those that are others for the second one. */
  readonly instead: ReadonlyMap<string, Uint8Array>;
}

/** @param lookup - `Empty`: what a chart looks up is not there, and that is right. Else what comes to it fails. */
export function chartRenderings(chart: Chart, lookup: "Refuse" | "Empty"): Renderings {
  if (chart.watched.length === 0) return { chart: chart.files, instead: new Map() };
  const [first, second] = [fixedFilesOf(chart, "first", lookup), fixedFilesOf(chart, "second", lookup)];
  const instead = [...second].filter(([path, content]) => first.get(path)?.equals(content) !== true);
  return { chart: new Map([...chart.files, ...first]), instead: new Map(instead) };
}

function fixedFilesOf({ files, watched }: Chart, version: Version, lookup: "Refuse" | "Empty"): Map<string, Buffer> {
  const functions = new Map(fixedFunctions(version));
  // Fails for what it is given, where a template comes to it.
  if (lookup === "Refuse") functions.set("lookup", { name: "fail  " });
  const fixed = watched.flatMap(({ path, calls }) => {
    const content = files.get(path);
    if (content === undefined) return [];
    return [[path, Buffer.from(withCalls(bytesAsText(content), calls, functions), "latin1")] as const];
  });
  return new Map([...fixed, [fixedFile, Buffer.from(fixedTemplates(version, { lookup }))]]);
}

/** @throws ManifestError `NonDeterministicRender` naming object and field, never the value: it may be a secret. */
export function requireSame(first: readonly Manifest[], second: readonly Manifest[]): void {
  const difference = firstDifference(first, second);
  if (difference !== undefined) throw nonDeterministic(difference.manifest, difference.field);
}

/** The first object that is not the same in both, and the field: empty where all of it is not. */
export function firstDifference(
  first: readonly Manifest[],
  second: readonly Manifest[],
): { readonly manifest: Manifest; readonly field: string } | undefined {
  for (const [index, manifest] of first.entries()) {
    const field = differenceOf(manifest.object, second[index]?.object, "");
    if (field !== undefined) return { manifest, field };
  }
  const more = second[first.length];
  return more === undefined ? undefined : { manifest: more, field: "" };
}

function nonDeterministic({ id, place: { file } }: Manifest, field: string): ManifestError {
  const place = { file, object: describeObject(id), ...(field === "" ? {} : { field }) };
  return new ManifestError(
    "NonDeterministicRender",
    place,
    "is another each time the chart is rendered (NonDeterministicRender): it comes from chance or from the clock, and a fleet would share it and then see it change. " +
      "Set the value by which the chart takes it from you, such as a password, a certificate or the name of an existing Secret",
  );
}

/** Where two values differ first; undefined when they do not, empty where all of them does. */
function differenceOf(a: Json | undefined, b: Json | undefined, field: string): string | undefined {
  if (Array.isArray(a) && Array.isArray(b) && a.length === b.length) {
    return firstOf(a.map((item: Json, index) => () => differenceOf(item, b[index], `${field}[${index}]`)));
  }
  if (isJsonObject(a) && isJsonObject(b)) {
    const keys = [...new Set([...Object.keys(a), ...Object.keys(b)])];
    return firstOf(keys.map((key) => () => differenceOf(a[key], b[key], memberOf(field, key))));
  }
  return Object.is(a, b) ? undefined : field;
}

function memberOf(field: string, key: string): string {
  if (!/^[A-Za-z_][A-Za-z0-9_-]*$/.test(key)) return `${field}["${key.slice(0, 100)}"]`;
  return field === "" ? key : `${field}.${key}`;
}

function firstOf(looks: readonly (() => string | undefined)[]): string | undefined {
  for (const look of looks) {
    const found = look();
    if (found !== undefined) return found;
  }
  return undefined;
}
