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

/** One object that may be applied: checked, normalised, and with the place it came from. */
export interface Manifest {
  readonly object: ManifestObject;
  readonly id: ObjectId;
  readonly place: ManifestPlace;
}

/** Changes an object before it is checked; what it refuses is told with the object's place. */
export type ChangeObject = (object: JsonObject, refuse: (field: string, reason: string) => never) => JsonObject;

/**
 * Turns decoded documents into the objects to apply: each checked and normalised, the result sorted by identity so that
 * moving an object from one file to another changes nothing.
 * @throws ManifestError naming file, document, object and field:
 *   `InvalidObject` for a missing apiVersion, kind or name, a generateName, labels or annotations that are no strings,
 *   or a foreign ApplySet label; `DuplicateObject` for two objects of one (group, kind, namespace, name), whatever
 *   their versions.
 */
export function readManifests(
  documents: readonly ManifestDocument[],
  change: ChangeObject = (object) => object,
): Manifest[] {
  const manifests = documents.map((document) => check(changed(document, change)));
  refuseDuplicates(manifests);
  return manifests.toSorted(compareManifests);
}

/** By identity. */
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
  requireText(object.apiVersion, "apiVersion", "one such as v1 or apps/v1", refuse);
  requireText(object.kind, "kind", "one such as ConfigMap", refuse);
  if (groupOf(object.apiVersion as string) === ownGroup) throw ofStarling(found);
  const metadata = object.metadata;
  if (!isJsonObject(metadata)) refuse("metadata", `${gotInstead(metadata)}, expected a map with a name`);
  if (metadata.name === undefined && metadata.generateName !== undefined) {
    refuse("metadata.generateName", "cannot be synced: every run would create another object; give it a name");
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
        `is set to "${values[partOfLabel]}"; the label marks who owns an object in the cluster and is Starling's to set: remove it`,
      );
    }
  }
  if (isJsonObject(object.sops) && !isLeftEncrypted(metadata)) {
    refuse(
      "sops",
      `is there: the object is encrypted with SOPS, and nothing is decrypted here; have an operator in the cluster make the Secret, or mark it ${decryptMark}: disabled where it is to be applied as it is`,
    );
  }
  const { stringData } = object;
  if (object.kind === "Secret" && object.apiVersion === "v1" && stringData !== undefined && stringData !== null) {
    if (!isJsonObject(stringData))
      return refuse("stringData", "is no map; write a key and a text, as `password: text`");
    for (const [key, value] of Object.entries(stringData)) {
      // The value itself is never shown: it is a secret.
      if (typeof value !== "string")
        refuse(`stringData["${key}"]`, `is a ${typeof value}, expected a string; quote it`);
    }
  }
  const normalised = normaliseManifest(object as ManifestObject);
  return { object: normalised, id: objectIdOf(normalised), place: { file, document, line } };
}

const ownGroup = "starling.dev";
const decryptMark = "kustomize.toolkit.fluxcd.io/decrypt";

/** As Flux has it. */
function isLeftEncrypted({ annotations }: JsonObject): boolean {
  const mark = isJsonObject(annotations) ? annotations[decryptMark] : undefined;
  return typeof mark === "string" && mark.toLowerCase() === "disabled";
}

/** Where a file of a folder is meant for something else, its key tells whoever wrote it which it is. */
function notKubernetes(found: ManifestDocument): ManifestError {
  const { at, prefix } = placeOf(found);
  const [first] = Object.keys(found.object);
  const begins = first === undefined ? "is empty" : `begins with ${JSON.stringify(excerpt(first))}`;
  const isRendered = found.file.endsWith(")");
  const remedy = isRendered
    ? ""
    : "; all *.yaml, *.yml and *.json below the path are read as manifests: move it, choose a path without it, or list the manifests in a kustomization.yaml";
  const place = prefix === "" ? at : { ...at, field: prefix.slice(0, -1) };
  return new ManifestError(
    "NotKubernetes",
    place,
    `is no Kubernetes object (it has neither apiVersion nor kind, and ${begins})${remedy}`,
  );
}

function ofStarling(found: ManifestDocument): ManifestError {
  const reason = `is for Starling, and no cluster knows it; \`starling apply -f ${quoted(excerpt(found.file))}\`, and keep it out of the path`;
  return new ManifestError("NotKubernetes", placeOf(found).at, reason);
}

function requireText(
  value: Json | undefined,
  field: string,
  ...[example, refuse]: readonly [string, (field: string, reason: string) => never]
): void {
  if (value === undefined) refuse(field, `is missing; every Kubernetes object has one, expected ${example}`);
  if (typeof value !== "string" || value === "") refuse(field, `${gotInstead(value)}, expected ${example}`);
}

/** Only an apiVersion has a slash, between its two parts. */
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

/** Of two overlays in one folder each has all of their base: nobody means both. */
function twiceRemedy(file: string, earlier: string): string {
  const [own, other] = [file, earlier].map((name) => / \(as built by kustomize\)$/.exec(name)?.index);
  if (own === undefined || other === undefined || file === earlier) return "remove one of them";
  return `each kustomization below the path is built: set the path to one of them, as ${file.slice(0, own)}`;
}
