import { foreignText } from "#shared/base/foreign-text.ts";
import { isJsonObject, type JsonObject } from "#shared/base/json.ts";
import { type ManifestDocument, placeOf } from "#shared/source/yaml/manifest-documents.ts";
import { ManifestError } from "#shared/source/yaml/manifest-error.ts";

const hookAnnotation = "helm.sh/hook";
/** Of events that are none of an apply: such an object is left out, as Helm does not make it either. */
const elsewhere: ReadonlySet<string> = new Set([
  "test",
  "test-success",
  "test-failure",
  "pre-rollback",
  "post-rollback",
]);
/** As Helm 3 and later have it: an object like any other. */
const noHook = "crd-install";

export interface Sifted {
  readonly documents: readonly ManifestDocument[];
  /** What was left out, and why, in words. */
  readonly leftOut: readonly string[];
}

/**
 * Parts hooks from objects. Tests, and what is for a rollback of Helm's, are left out by name. What Helm would run around an
 * install, an upgrade or a deletion is refused, for to leave it out, or to apply it with the rest, means something else;
 * who knows that it is not needed says so.
 * @throws ManifestError `HookRefused` naming all of them.
 */
export function siftHooks(documents: readonly ManifestDocument[], hooks: "Refuse" | "Omit"): Sifted {
  const kept: ManifestDocument[] = [];
  const leftOut: string[] = [];
  const refused: ManifestDocument[] = [];
  for (const document of documents) {
    const events = eventsOf(document.object);
    if (events.every((event) => event === noHook)) kept.push(document);
    else if (hooks === "Omit" || events.every((event) => elsewhere.has(event))) {
      const object = nameOf(document.object);
      leftOut.push(`${object} is left out: it is a hook of Helm's for ${shown(events)}, which is not run here`);
    } else refused.push(document);
  }
  if (refused.length > 0) throw refusalOf(refused);
  return { documents: kept, leftOut };
}

const mostNamed = 10;
/** Of what names an object, and of its events, this much is shown. */
const maxName = 120;

function refusalOf(refused: readonly ManifestDocument[]): ManifestError {
  const [first, ...others] = refused;
  if (first === undefined) throw new Error("no hook was refused");
  const { at, prefix } = placeOf(first);
  const names = others.slice(0, mostNamed).map((other) => nameOf(other.object));
  const more = others.length > mostNamed ? ` and ${others.length - mostNamed} more` : "";
  const also = names.length === 0 ? "" : ` (so are the hooks ${names.join(", ")}${more})`;
  return new ManifestError(
    "HookRefused",
    { ...at, object: nameOf(first.object), field: `${prefix}metadata.annotations["${hookAnnotation}"]` },
    `is ${shown(eventsOf(first.object))}${also}; hooks of Helm's are not run yet, and to apply them with the other objects would be something else. ` +
      "Turn them off in the chart's values, or say render.helm.hooks: Omit where the objects do without; in plain manifests, remove the annotation",
  );
}

function eventsOf(object: JsonObject): readonly string[] {
  const metadata = isJsonObject(object.metadata) ? object.metadata : {};
  const annotations = isJsonObject(metadata.annotations) ? metadata.annotations : {};
  const value = annotations[hookAnnotation];
  if (typeof value !== "string") return [];
  return value
    .split(",")
    .map((event) => event.trim().toLowerCase())
    .filter((event) => event !== "");
}

function shown(events: readonly string[]): string {
  return foreignText(events.join(", "), maxName);
}

function nameOf({ kind, metadata }: JsonObject): string {
  const { name, generateName, namespace } = isJsonObject(metadata) ? metadata : {};
  const place = typeof namespace === "string" && namespace !== "" ? `${namespace}/` : "";
  return foreignText(`${String(kind)} ${place}${String(name ?? generateName)}`, maxName);
}
