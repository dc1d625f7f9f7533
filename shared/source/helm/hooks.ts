import { isJsonObject, type JsonObject } from "#shared/base/json.ts";
import { ManifestError } from "#shared/source/yaml/manifest-error.ts";
import type { ManifestDocument } from "#shared/source/yaml/yaml.ts";

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
 * Parts hooks from objects. Tests, and what is for a rollback of Helm's, are left out by name; what Helm would run around
 * an install, an upgrade or a deletion is refused, for to leave it out, or to apply it with the rest, means something else.
 * @throws ManifestError `HookRefused`
 */
export function siftHooks(documents: readonly ManifestDocument[]): Sifted {
  const kept: ManifestDocument[] = [];
  const leftOut: string[] = [];
  for (const document of documents) {
    const events = eventsOf(document.object);
    if (events.every((event) => event === noHook)) {
      kept.push(document);
      continue;
    }
    const object = nameOf(document.object);
    if (events.every((event) => elsewhere.has(event))) {
      leftOut.push(`${object} is left out: it is a hook of Helm's for ${events.join(", ")}, which is not run here`);
      continue;
    }
    const { file, line } = document;
    throw new ManifestError(
      "HookRefused",
      { file, line, object, field: `metadata.annotations["${hookAnnotation}"]` },
      `is ${events.join(", ")}; hooks of Helm's are not run yet, and to apply it with the other objects would be something else. ` +
        "Turn it off in the chart's values, or remove the annotation where it may be applied with the rest",
    );
  }
  return { documents: kept, leftOut };
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

function nameOf({ kind, metadata }: JsonObject): string {
  const { name, namespace } = isJsonObject(metadata) ? metadata : {};
  const place = typeof namespace === "string" && namespace !== "" ? `${namespace}/` : "";
  return `${String(kind)} ${place}${String(name)}`;
}
