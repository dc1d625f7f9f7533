/**
 * A rendering is made once for many clusters, and made again where it is lost: what is drawn by lot, or read off a clock,
 * would be shared by a fleet and then change by itself. So a chart is rendered twice.
 */
import { isJsonObject, type Json } from "#shared/base/json.ts";
import { describeObject } from "#shared/kube/object-id.ts";
import { bytesAsText, type Chart } from "#shared/source/helm/chart.ts";
import { withCalls } from "#shared/source/helm/template-calls.ts";
import type { Manifest } from "#shared/source/manifests.ts";
import { ManifestError } from "#shared/source/yaml/manifest-error.ts";

/** Fails for what `lookup` is given, where a template comes to it. */
const failing = "fail  ";

/** The files for the first rendering. @param lookup - `Empty`: what a chart looks up is not there, and that is right. */
export function firstRendering(chart: Chart, lookup: "Refuse" | "Empty"): ReadonlyMap<string, Uint8Array> {
  if (lookup === "Empty") return chart.files;
  return new Map([...chart.files, ...rewritten(chart, { lookup: failing })]);
}

/**
 * The files that are others for the second rendering, at another time: in place of `now` stands a moment of which no part, from the year
 * to the second, is that of the present one. Chance is another by itself.
 */
export function secondRendering(chart: Chart, { lookup, now }: { lookup: "Refuse" | "Empty"; now: Date }) {
  const moment = `(toDate "2006-01-02T15:04:05Z07:00" "${otherMoment(now)}")`;
  const instead = lookup === "Empty" ? { now: moment } : { lookup: failing, now: moment };
  return rewritten(chart, instead);
}

function otherMoment(now: Date): string {
  const other = new Date(0);
  other.setUTCFullYear(now.getUTCFullYear() - 3, (now.getUTCMonth() + 5) % 12, ((now.getUTCDate() + 9) % 28) + 1);
  other.setUTCHours((now.getUTCHours() + 7) % 24, (now.getUTCMinutes() + 23) % 60, (now.getUTCSeconds() + 31) % 60);
  if (other.getUTCDay() === now.getUTCDay()) other.setUTCDate(other.getUTCDate() + 1);
  return other.toISOString().replace(/\.\d+Z$/, "Z");
}

function rewritten(
  { files, watched }: Chart,
  instead: Readonly<Record<string, string>>,
): ReadonlyMap<string, Uint8Array> {
  const result = new Map<string, Uint8Array>();
  for (const { path, calls } of watched) {
    const content = files.get(path);
    if (content === undefined || !calls.some(({ name }) => name in instead)) continue;
    result.set(path, Buffer.from(withCalls(bytesAsText(content), calls, instead), "latin1"));
  }
  return result;
}

/** @throws ManifestError `NonDeterministicRender` naming object and field, never the value: it may be a secret. */
export function requireSame(first: readonly Manifest[], second: readonly Manifest[]): void {
  for (const [index, manifest] of first.entries()) {
    const field = differenceOf(manifest.object, second[index]?.object, "");
    if (field !== undefined) throw nonDeterministic(manifest, field);
  }
  const more = second[first.length];
  if (more !== undefined) throw nonDeterministic(more, "");
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
