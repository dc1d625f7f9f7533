import { digestOf, hexOf } from "#shared/base/digest.ts";
import { foreignText } from "#shared/base/foreign-text.ts";
import { isJsonObject, type JsonObject } from "#shared/base/json.ts";
import { type HookMarks, hookMarksOf } from "#shared/kube/order-marks.ts";
import type { HelmRelease } from "#shared/source/helm/helm-release.ts";
import { type ManifestDocument, placeOf } from "#shared/source/yaml/manifest-documents.ts";
import { ManifestError } from "#shared/source/yaml/manifest-error.ts";

export interface Sifted {
  readonly documents: readonly ManifestDocument[];
  /** What was left out, or is not run at each of its times, and why, in words. */
  readonly leftOut: readonly string[];
}

/**
 * Parts hooks from what is applied. Those for tests, rollbacks and deletions are left out by name: nothing of that is an
 * apply. Others are run in their turn, or, where somebody says so, left out as well or refused.
 * @throws ManifestError `HookRefused` naming all that are refused, or what is wrong with one.
 */
export function siftHooks(documents: readonly ManifestDocument[], hooks: HelmRelease["hooks"]): Sifted {
  const kept: ManifestDocument[] = [];
  const leftOut: string[] = [];
  const refused: ManifestDocument[] = [];
  for (const document of documents) {
    const marks = hookMarksOf(document.object);
    if (marks === undefined) {
      kept.push(document);
      continue;
    }
    if ("problem" in marks) throw wrongHook(document, marks.problem);
    const isRun = Object.keys(marks.phases).length > 0;
    const name = nameOf(document.object);
    if (!isRun) leftOut.push(`${name} is left out: it is a hook for ${shown(marks.events)}, which is not run here`);
    else if (hooks === "Omit") leftOut.push(`${name} is left out: it is a hook for ${shown(marks.events)}`);
    else if (hooks === "Refuse") refused.push(document);
    else {
      kept.push(named(document));
      if (marks.unrun.length > 0)
        leftOut.push(`${name} is a hook for ${shown(marks.unrun)}, too, which is not run here`);
    }
  }
  if (refused.length > 0) throw refusalOf(refused);
  return { documents: kept, leftOut };
}

const mostNamed = 10;
/** Of what names an object, and of its events, this much is shown. */
const maxName = 120;
const digestLength = 7;

/** What is a hook with its whole name, for kustomize, which takes nothing without one. */
export function namedHook(document: ManifestDocument): ManifestDocument {
  return hookMarksOf(document.object) === undefined ? document : named(document);
}

/** A hook is made anew each time: it may leave the end of its name to whoever makes it, and has the same for the same content. */
function named(document: ManifestDocument): ManifestDocument {
  const { metadata } = document.object;
  if (!isJsonObject(metadata) || metadata.name !== undefined || typeof metadata.generateName !== "string")
    return document;
  const { generateName, ...rest } = metadata;
  const name = `${generateName}${hexOf(digestOf(document.object)).slice(0, digestLength)}`;
  return { ...document, object: { ...document.object, metadata: { ...rest, name } } };
}

function wrongHook(
  document: ManifestDocument,
  { annotation, reason }: { readonly annotation: string; readonly reason: string },
): ManifestError {
  const { at, prefix } = placeOf(document);
  const field = `${prefix}metadata.annotations["${annotation}"]`;
  return new ManifestError("HookRefused", { ...at, object: nameOf(document.object), field }, reason);
}

function refusalOf(refused: readonly ManifestDocument[]): ManifestError {
  const [first, ...others] = refused;
  if (first === undefined) throw new Error("no hook was refused");
  const { at, prefix } = placeOf(first);
  const names = others.slice(0, mostNamed).map((other) => nameOf(other.object));
  const more = others.length > mostNamed ? ` and ${others.length - mostNamed} more` : "";
  const also = names.length === 0 ? "" : ` (so are the hooks ${names.join(", ")}${more})`;
  const marks = hookMarksOf(first.object) as HookMarks;
  return new ManifestError(
    "HookRefused",
    { ...at, object: nameOf(first.object), field: `${prefix}metadata.annotations["${marks.annotation}"]` },
    `is ${shown(marks.events)}${also}, and the template says render.helm.hooks: Refuse; ` +
      "turn them off in the chart's values, or say hooks: Honor to have them run, or Omit where the objects do without",
  );
}

function shown(events: readonly string[]): string {
  return foreignText(events.join(", "), maxName);
}

function nameOf({ kind, metadata }: JsonObject): string {
  const { name, generateName, namespace } = isJsonObject(metadata) ? metadata : {};
  const place = typeof namespace === "string" && namespace !== "" ? `${namespace}/` : "";
  return foreignText(`${String(kind)} ${place}${String(name ?? generateName)}`, maxName);
}
