import { isJsonObject, type JsonObject } from "#shared/base/json.ts";
import type { RenderInput, TreeFile } from "#shared/ports.ts";
import { maxRenderingBytes } from "#shared/source/build-job.ts";
import { namedHook } from "#shared/source/helm/hooks.ts";
import { type Base, generatedKustomization, inArtifact } from "#shared/source/kustomize/generated-kustomization.ts";
import { restoredObject } from "#shared/source/kustomize/guarded-object.ts";
import { type ChangeObject, readManifests } from "#shared/source/manifests.ts";
import type { Specialisation } from "#shared/source/specialisation.ts";
import { substituteObject } from "#shared/source/substitution/substitute-object.ts";
import { substituteText } from "#shared/source/substitution/substitute-text.ts";
import { type ManifestDocument, parseManifests, placeOf } from "#shared/source/yaml/manifest-documents.ts";
import { ManifestError } from "#shared/source/yaml/manifest-error.ts";

/** The documents that kustomize makes of a base and the edits that kustomize supports. */
export async function kustomized(
  files: readonly TreeFile[],
  given: Base,
  {
    specialise,
    kustomize,
  }: {
    readonly specialise: Specialisation;
    readonly kustomize: { build(input: Pick<RenderInput, "files" | "path">): Promise<string> };
  },
): Promise<ManifestDocument[]> {
  const base: Base = given.documents === undefined ? given : { documents: given.documents.map(namedHook) };
  for (const document of base.documents ?? []) refuseLocalConfig(document);
  const { mark, ...made } = generatedKustomization(files, base, specialise);
  const output = await kustomize.build(made).catch((error: unknown) => {
    // An invalid object is reported with its file and line, which kustomize does not know.
    readManifests(base.documents ?? [], changesOf(specialise));
    throw inArtifact(error);
  });
  const documents = parseManifests(output, "the objects (as specialised by kustomize)");
  return documents.map((document) => ({ ...document, object: restoredObject(document.object, mark) }));
}

const localConfig = "config.kubernetes.io/local-config";

/**
 * @throws ManifestError `LocalConfigRefused`, because kustomize would silently drop the object, and it would be pruned.
 */
function refuseLocalConfig(document: ManifestDocument): void {
  const { metadata } = document.object;
  if (!isJsonObject(metadata) || !isJsonObject(metadata.annotations)) return;
  if (!Object.hasOwn(metadata.annotations, localConfig)) return;
  const { at, prefix } = placeOf(document);
  throw new ManifestError(
    "LocalConfigRefused",
    { ...at, field: `${prefix}metadata.annotations["${localConfig}"]` },
    "is set, so that kustomize, which applies this template's edits, would drop the object; remove the annotation or the object",
  );
}

/** Adds the Namespace that the template requests, if it is not in the documents. */
export function withNamespace(
  documents: readonly ManifestDocument[],
  { edits, namespace }: Specialisation = {},
): readonly ManifestDocument[] {
  if (edits?.createNamespace === undefined || namespace === undefined) return documents;
  if (documents.some(({ object }) => isNamespace(object, namespace))) return documents;
  const object = { apiVersion: "v1", kind: "Namespace", metadata: { name: namespace } };
  return [...documents, { object, file: "createNamespace", document: 1, line: 1 }];
}

function isNamespace({ apiVersion, kind, metadata }: JsonObject, name: string): boolean {
  return apiVersion === "v1" && kind === "Namespace" && isJsonObject(metadata) && metadata.name === name;
}

/** The changes of each object, in this order: labels and annotations, then the variables in its strings. */
export function changesOf({ edits = {}, namespace, variables, mode }: Specialisation = {}): ChangeObject {
  const room = { left: maxRenderingBytes };
  const substitute = mode === "text" ? substituteText : substituteObject;
  return (object, refuse) => {
    const { commonMetadata, createNamespace } = edits;
    const own = namespace !== undefined && isNamespace(object, namespace) ? createNamespace : undefined;
    const marked = [own, commonMetadata].reduce<JsonObject>(withMarks, object);
    return variables === undefined ? marked : substitute(marked, { variables, room }, refuse);
  };
}

type Marks = NonNullable<NonNullable<Specialisation["edits"]>["commonMetadata"]>;

/** Overrides the object's own labels and annotations. */
function withMarks(object: JsonObject, marks: Marks | undefined): JsonObject {
  const metadata = isJsonObject(object.metadata) ? object.metadata : {};
  const changed = (["labels", "annotations"] as const).flatMap((member) => {
    const [added, before] = [marks?.[member], metadata[member]];
    return added === undefined ? [] : [[member, { ...(isJsonObject(before) ? before : {}), ...added }] as const];
  });
  return changed.length === 0 ? object : { ...object, metadata: { ...metadata, ...Object.fromEntries(changed) } };
}
