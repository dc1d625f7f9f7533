import { digestOf, hexOf } from "#shared/base/digest.ts";
import { foreignText } from "#shared/base/foreign-text.ts";
import { isJsonObject, type JsonObject } from "#shared/base/json.ts";
import { type HookMarks, hookMarksOf } from "#shared/kube/order-marks.ts";
import type { HelmRelease } from "#shared/source/helm/helm-release.ts";
import { type ManifestDocument, placeOf } from "#shared/source/yaml/manifest-documents.ts";
import { ManifestError } from "#shared/source/yaml/manifest-error.ts";

export interface Sifted {
  readonly documents: readonly ManifestDocument[];
  /** Sentences about hooks that were left out or do not run at each of their events, with the reason. */
  readonly leftOut: readonly string[];
}

/**
 * Separates hooks from the other objects. Hooks for tests, rollbacks and deletions are left out and named, because an
 * apply is none of these events. The other hooks run in their turn, unless the template leaves them out or refuses
 * them.
 * @throws ManifestError `HookRefused` that names all refused hooks, or says what is wrong with one.
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
    if (!isRun)
      leftOut.push(`${name} is left out: it is a hook for ${shown(marks.events)}, which Starling does not run`);
    else if (hooks === "Omit") leftOut.push(`${name} is left out: it is a hook for ${shown(marks.events)}`);
    else if (hooks === "Refuse") refused.push(document);
    else {
      kept.push(named(document));
      if (marks.unrun.length > 0)
        leftOut.push(`${name} is a hook for ${shown(marks.unrun)}, too, which Starling does not run`);
    }
  }
  if (refused.length > 0) throw refusalOf(refused);
  return { documents: kept, leftOut };
}

const mostNamed = 10;
/** The limit for the shown name of an object and for the shown events. */
const maxName = 120;
const digestLength = 7;

/** A hook with its complete name. kustomize refuses an object without a name. */
export function namedHook(document: ManifestDocument): ManifestDocument {
  return hookMarksOf(document.object) === undefined ? document : named(document);
}

/**
 * A hook is created anew each time, and may leave the end of its name to the API server (`generateName`). Here the name
 * ends with a digest, so that the same content has the same name.
 */
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
  const also = names.length === 0 ? "" : ` (also the hooks ${names.join(", ")}${more})`;
  const marks = hookMarksOf(first.object) as HookMarks;
  return new ManifestError(
    "HookRefused",
    { ...at, object: nameOf(first.object), field: `${prefix}metadata.annotations["${marks.annotation}"]` },
    `is ${shown(marks.events)}${also}, and the template has render.helm.hooks: Refuse; ` +
      "turn the hooks off in the chart's values, or set hooks: Honor to run them, or hooks: Omit if the objects do not need them",
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
