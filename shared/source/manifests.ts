import { excerpt } from "#shared/base/excerpt.ts";
import { isJsonObject, type Json, type JsonObject } from "#shared/base/json.ts";
import { pathSegmentProblem } from "#shared/base/path-segment.ts";
import { quoted } from "#shared/base/shell-word.ts";
import { compareText } from "#shared/base/text-order.ts";
import { type ManifestObject, objectIdOf } from "#shared/kube/kube-object.ts";
import { partOfLabel } from "#shared/kube/membership.ts";
import { describeObject, groupOf, type ObjectId, objectIdKey, versionOf } from "#shared/kube/object-id.ts";
import { normaliseManifest } from "#shared/source/normalise-manifest.ts";
import { type ManifestDocument, placeOf } from "#shared/source/yaml/manifest-documents.ts";
import { describeValue, ManifestError, type ManifestPlace } from "#shared/source/yaml/manifest-error.ts";

/** One object that may be applied: checked and normalised, with the place it comes from. */
export interface Manifest {
  readonly object: ManifestObject;
  readonly id: ObjectId;
  readonly place: ManifestPlace;
}

/** Changes an object before it is checked. Its refusals are reported with the object's place. */
export type ChangeObject = (object: JsonObject, refuse: (field: string, reason: string) => never) => JsonObject;

/**
 * Turns decoded documents into the objects to apply. Each is checked and normalised. The result is sorted by identity,
 * so that moving an object from one file to another changes nothing.
 * @throws ManifestError with file, document, object and field: `InvalidObject` for a missing apiVersion, kind or name,
 * a generateName, labels or annotations that are not strings, or a foreign ApplySet label; `DuplicateObject` for two
 * objects with the same (group, kind, namespace, name), whatever their versions.
 */
export function readManifests(
  documents: readonly ManifestDocument[],
  change: ChangeObject = (object) => object,
): Manifest[] {
  const manifests = documents.map((document) => check(changed(document, change)));
  refuseDuplicates(manifests);
  return manifests.toSorted(compareManifests);
}

/** Compares by identity. */
export function compareManifests(a: Manifest, b: Manifest): number {
  return compareText(objectIdKey(a.id), objectIdKey(b.id));
}

function changed(document: ManifestDocument, change: ChangeObject): ManifestDocument {
  const { at, prefix } = placeOf(document);
  const refuse = (field: string, reason: string): never => {
    throw new ManifestError("SubstitutionFailed", { ...at, field: `${prefix}${field}` }, reason);
  };
  return { ...document, object: change(document.object, refuse) };
}

function check(found: ManifestDocument): Manifest {
  const { object, file, document, line } = found;
  const { at, prefix } = placeOf(found);

  function refuse(field: string, reason: string): never {
    throw new ManifestError("InvalidObject", { ...at, field: `${prefix}${field}` }, reason);
  }

  if (object.apiVersion === undefined && object.kind === undefined) throw notKubernetes(found);
  requireText(object.apiVersion, "apiVersion", "a value such as v1 or apps/v1", refuse);
  requireText(object.kind, "kind", "a value such as ConfigMap", refuse);
  if (groupOf(object.apiVersion as string) === ownGroup) throw ofStarling(found);
  const metadata = object.metadata;
  if (!isJsonObject(metadata)) refuse("metadata", `${gotInstead(metadata)}, expected a map with a name`);
  if (metadata.name === undefined && metadata.generateName !== undefined) {
    refuse(
      "metadata.generateName",
      "cannot be synced, because every apply would create another object; set metadata.name",
    );
  }
  requireText(metadata.name, "metadata.name", "a name", refuse);
  if (metadata.namespace !== undefined && metadata.namespace !== null && typeof metadata.namespace !== "string") {
    refuse("metadata.namespace", `${gotInstead(metadata.namespace)}, expected a string; put it in quotes`);
  }
  const texts = { apiVersion: object.apiVersion, kind: object.kind, "metadata.name": metadata.name };
  for (const [field, value] of Object.entries({ ...texts, "metadata.namespace": metadata.namespace })) {
    const problem = typeof value === "string" ? nameProblem(field, value) : undefined;
    if (problem === undefined) continue;
    refuse(field, `${gotInstead(value)}, which ${problem}: it becomes a part of the object's address in the API`);
  }
  for (const member of ["labels", "annotations"] as const) {
    const values = metadata[member];
    if (values === undefined || values === null) continue;
    if (!isJsonObject(values)) refuse(`metadata.${member}`, `${gotInstead(values)}, expected a map of strings`);
    for (const [key, value] of Object.entries(values)) {
      if (typeof value === "string") continue;
      refuse(`metadata.${member}["${key}"]`, `${gotInstead(value)}, expected a string; put it in quotes`);
    }
    if (member === "labels" && values[partOfLabel] !== undefined) {
      refuse(
        `metadata.labels["${partOfLabel}"]`,
        `is set to "${values[partOfLabel]}"; Starling sets this label itself to mark the owner of an object: remove it`,
      );
    }
  }
  if (isJsonObject(object.sops) && !isLeftEncrypted(metadata)) {
    refuse(
      "sops",
      `is set, so the object is encrypted with SOPS, and Starling decrypts nothing; let an operator in the cluster create the Secret, or annotate the object with ${decryptMark}: disabled to apply it as it is`,
    );
  }
  const { stringData } = object;
  if (object.kind === "Secret" && object.apiVersion === "v1" && stringData !== undefined && stringData !== null) {
    if (!isJsonObject(stringData))
      return refuse("stringData", "must be a map of keys and texts, such as `password: text`");
    for (const [key, value] of Object.entries(stringData)) {
      // The value itself is never shown: it is a secret.
      if (typeof value !== "string")
        refuse(`stringData["${key}"]`, `is a ${typeof value}, expected a string; put it in quotes`);
    }
  }
  const normalised = normaliseManifest(object as ManifestObject);
  return { object: normalised, id: objectIdOf(normalised), place: { file, document, line } };
}

const ownGroup = "starling.dev";
const decryptMark = "kustomize.toolkit.fluxcd.io/decrypt";

/** The same rule as Flux's. */
function isLeftEncrypted({ annotations }: JsonObject): boolean {
  const mark = isJsonObject(annotations) ? annotations[decryptMark] : undefined;
  return typeof mark === "string" && mark.toLowerCase() === "disabled";
}

/** The error names the document's first key, so that the author of a file that has another purpose recognises it. */
function notKubernetes(found: ManifestDocument): ManifestError {
  const { at, prefix } = placeOf(found);
  const [first] = Object.keys(found.object);
  const begins = first === undefined ? "is empty" : `begins with ${JSON.stringify(excerpt(first))}`;
  const isRendered = found.file.endsWith(")");
  const remedy = isRendered
    ? ""
    : "; all *.yaml, *.yml and *.json files below the path are read as manifests: move the file, choose a path without it, or list the manifests in a kustomization.yaml";
  const place = prefix === "" ? at : { ...at, field: prefix.slice(0, -1) };
  return new ManifestError(
    "NotKubernetes",
    place,
    `is not a Kubernetes object (it has neither apiVersion nor kind, and ${begins})${remedy}`,
  );
}

function ofStarling(found: ManifestDocument): ManifestError {
  const reason = `is an object of Starling, which no cluster knows; run \`starling apply -f ${quoted(excerpt(found.file))}\`, and move the file out of the path`;
  return new ManifestError("NotKubernetes", placeOf(found).at, reason);
}

function requireText(
  value: Json | undefined,
  field: string,
  ...[example, refuse]: readonly [string, (field: string, reason: string) => never]
): void {
  if (value === undefined) refuse(field, `is missing, but every Kubernetes object needs it; expected ${example}`);
  if (typeof value !== "string" || value === "") refuse(field, `${gotInstead(value)}, expected ${example}`);
}

/** An apiVersion has a slash between its two parts. No other field may have one. */
function nameProblem(field: string, value: string): string | undefined {
  const parts = field === "apiVersion" ? [groupOf(value), versionOf(value)] : [value];
  return parts.map(pathSegmentProblem).find((problem) => problem !== undefined);
}

function gotInstead(value: Json | undefined): string {
  return value === undefined ? "is missing" : `got ${describeValue(value)}`;
}

function refuseDuplicates(manifests: readonly Manifest[]): void {
  const first = new Map<string, Manifest>();
  for (const manifest of manifests) {
    const key = objectIdKey(manifest.id);
    const earlier = first.get(key);
    if (earlier === undefined) {
      first.set(key, manifest);
      continue;
    }
    const { file, document, line } = earlier.place;
    const versions = new Set([earlier.object.apiVersion, manifest.object.apiVersion]);
    const note =
      versions.size > 1 ? ` (as ${[...versions].join(" and ")}: the version is not part of the identity)` : "";
    throw new ManifestError(
      "DuplicateObject",
      { ...manifest.place, object: describeObject(manifest.id) },
      `is also in ${file}${line === undefined ? "" : `:${line}`}, document ${document}${note}; ${twiceRemedy(manifest.place.file, file)}`,
    );
  }
}

/** In one folder, two overlays both contain the objects of their base, and nobody intends to apply both. */
function twiceRemedy(file: string, earlier: string): string {
  const [own, other] = [file, earlier].map((name) => / \(as built by kustomize\)$/.exec(name)?.index);
  if (own === undefined || other === undefined || file === earlier) return "remove one of them";
  return `each kustomization below the path is built: set the path to one of them, such as ${file.slice(0, own)}`;
}
