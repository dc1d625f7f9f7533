import { stringifyJson } from "#shared/base/json.ts";
import { guardedObject } from "#shared/source/kustomize/guarded-object.ts";
import type { Specialisation } from "#shared/source/specialisation.ts";
import type { ListedFile } from "#shared/source/tree-listing.ts";
import { jsonAsYaml } from "#shared/source/yaml/json-as-yaml.ts";
import type { ManifestDocument } from "#shared/source/yaml/manifest-documents.ts";

/** What kustomize is given around: a folder of the artifact that is a kustomization, or objects that were rendered. */
export type Base =
  | { readonly folder: string; readonly documents?: never }
  | { readonly documents: readonly ManifestDocument[] };

/** The artifact's place in the tree that kustomize gets: a kustomization may not be within what it includes. */
const artifact = "artifact";
const generated = "specialised";

/** Whether kustomize has anything to do. */
export function needsKustomize({ edits = {}, namespace }: Specialisation): boolean {
  const { components, patches, namePrefix, nameSuffix, images } = edits;
  return [components, patches, namePrefix, nameSuffix, images, namespace].some((field) => field !== undefined);
}

/**
 * A kustomization with these edits around a base, for kustomize to do them in its own order: components, patches,
 * namespace, prefix and suffix, images.
 */
export function generatedKustomization(
  files: readonly ListedFile[],
  base: Base,
  { edits = {}, namespace }: Specialisation,
): { readonly files: readonly ListedFile[]; readonly path: string } {
  const { components, patches, namePrefix, nameSuffix, images } = edits;
  const inArtifact = (path: string) => `../${artifact}/${path}`;
  const kustomization = {
    apiVersion: "kustomize.config.k8s.io/v1beta1",
    kind: "Kustomization",
    resources: [base.documents === undefined ? inArtifact(base.folder) : "objects.yaml"],
    components: components?.map(inArtifact),
    patches,
    namespace,
    namePrefix,
    nameSuffix,
    // kustomize takes a name for a regular expression.
    images: images?.map((image) => ({ ...image, name: image.name.replaceAll(/[\\^$.*+?()[\]{}|]/g, "\\$&") })),
  };
  const made = [fileOf("kustomization.yaml", stringifyJson(kustomization))];
  if (base.documents !== undefined) {
    made.push(
      fileOf("objects.yaml", base.documents.map(({ object }) => jsonAsYaml(guardedObject(object))).join("\n---\n")),
    );
  }
  const moved = files.map((file) => ({ ...file, path: `${artifact}/${file.path}` }));
  return { files: [...moved, ...made], path: generated };
}

function fileOf(name: string, text: string): ListedFile {
  return { path: `${generated}/${name}`, executable: false, content: new TextEncoder().encode(text) };
}
