/**
 * A rendering is made once for many clusters, and made again when it is lost. A random value or a time would be shared
 * by the whole fleet, and would later change by itself. Therefore each chart is rendered twice, with different fixed
 * answers.
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
  /** The files that differ in the second one. */
  readonly instead: ReadonlyMap<string, Uint8Array>;
}

/**
 * @param lookup - `Empty`: a lookup finds nothing, and that is right. `Refuse`: a template that reaches a lookup fails.
 */
export function chartRenderings(chart: Chart, lookup: "Refuse" | "Empty"): Renderings {
  if (chart.watched.length === 0) return { chart: chart.files, instead: new Map() };
  const [first, second] = [fixedFilesOf(chart, "first", lookup), fixedFilesOf(chart, "second", lookup)];
  const instead = [...second].filter(([path, content]) => first.get(path)?.equals(content) !== true);
  return { chart: new Map([...chart.files, ...first]), instead: new Map(instead) };
}

function fixedFilesOf({ files, watched }: Chart, version: Version, lookup: "Refuse" | "Empty"): Map<string, Buffer> {
  const functions = new Map(fixedFunctions(version));
  // A call with these arguments fails whenever a template reaches it.
  if (lookup === "Refuse") functions.set("lookup", { name: "fail  " });
  const fixed = watched.flatMap(({ path, calls }) => {
    const content = files.get(path);
    if (content === undefined) return [];
    return [[path, Buffer.from(withCalls(bytesAsText(content), calls, functions), "latin1")] as const];
  });
  return new Map([...fixed, [fixedFile, Buffer.from(fixedTemplates(version, { lookup }))]]);
}

/**
 * @throws ManifestError `NonDeterministicRender` with object and field, never with the value, because it can be a
 * secret.
 */
export function requireSame(first: readonly Manifest[], second: readonly Manifest[]): void {
  const difference = firstDifference(first, second);
  if (difference !== undefined) throw nonDeterministic(difference.manifest, difference.field);
}

/** The first object that differs between both, and its field; the field is empty when the whole object differs. */
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
    "changes each time the chart is rendered (NonDeterministicRender), because it is random or comes from the clock: all clusters would share the value until a later rendering changes it. " +
      "Set it in the chart's values, for example a password, a certificate or the name of an existing Secret",
  );
}

/** The field at which two values first differ; undefined when they are equal, empty when they differ as a whole. */
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

function firstOf(searches: readonly (() => string | undefined)[]): string | undefined {
  for (const search of searches) {
    const found = search();
    if (found !== undefined) return found;
  }
  return undefined;
}
