import { StarlingError } from "#shared/base/errors.ts";
import { stringifyJson } from "#shared/base/json.ts";
import { freeMark, guardedObject, guardedPatch } from "#shared/source/kustomize/guarded-object.ts";
import type { Specialisation } from "#shared/source/specialisation.ts";
import type { ListedFile } from "#shared/source/tree-listing.ts";
import { jsonAsYaml } from "#shared/source/yaml/json-as-yaml.ts";
import type { ManifestDocument } from "#shared/source/yaml/manifest-documents.ts";
import { ManifestError } from "#shared/source/yaml/manifest-error.ts";

/** The base of the generated kustomization: a folder of the artifact that is a kustomization, or rendered objects. */
export type Base =
  | { readonly folder: string; readonly documents?: never }
  | { readonly documents: readonly ManifestDocument[] };

/**
 * The artifact's folder in the tree for kustomize. It is not the root, because a kustomization may not lie inside what
 * it includes.
 */
const artifact = "artifact";
const generated = "specialised";

/** Whether kustomize has anything to do. */
export function needsKustomize({ edits = {}, namespace }: Specialisation): boolean {
  const { components, patches, namePrefix, nameSuffix, images } = edits;
  return [components, patches, namePrefix, nameSuffix, images, namespace].some((field) => field !== undefined);
}

export interface GeneratedKustomization {
  readonly files: readonly ListedFile[];
  readonly path: string;
  /** The character that every guarded text contains, and no other text. */
  readonly mark: string;
}

/**
 * A kustomization with these edits around a base. kustomize makes them in its own order: components, patches,
 * namespace, prefix and suffix, images.
 */
export function generatedKustomization(
  files: readonly ListedFile[],
  base: Base,
  { edits = {}, namespace }: Specialisation,
): GeneratedKustomization {
  const { components, patches, namePrefix, nameSuffix, images } = edits;
  const fromHere = (path: string) => `../${artifact}/${path}`;
  const kustomization = {
    apiVersion: "kustomize.config.k8s.io/v1beta1",
    kind: "Kustomization",
    resources: [base.documents === undefined ? fromHere(base.folder) : "objects.yaml"],
    components: components?.map(fromHere),
    patches,
    namespace,
    namePrefix,
    nameSuffix,
    // kustomize reads a name as a regular expression.
    images: images?.map((image) => ({ ...image, name: image.name.replaceAll(/[\\^$.*+?()[\]{}|]/g, "\\$&") })),
  };
  const written = (value: unknown) => fileOf("kustomization.yaml", stringifyJson(value));
  const mark = freeMark([...files, written(kustomization)].map(({ content }) => content));
  const guarded = patches?.map((one) => ({ ...one, patch: guardedPatch(one.patch, mark) }));
  const made = [written({ ...kustomization, patches: guarded })];
  if (base.documents !== undefined) {
    const objects = base.documents.map(({ object }) => jsonAsYaml(guardedObject(object, mark)));
    made.push(fileOf("objects.yaml", objects.join("\n---\n")));
  }
  const moved = files.map((file) => ({ ...file, path: `${artifact}/${file.path}` }));
  return { files: [...moved, ...made], path: generated, mark };
}

const treePath = new RegExp(`(^|[\\s'"(])(?:\\.\\./)*${artifact}/`, "gm");

/**
 * The error with the paths that people know, those of the artifact and fields of the template, instead of paths of the
 * generated tree.
 */
export function inArtifact(error: unknown): unknown {
  const plainly = (text: string) =>
    text
      .replaceAll(treePath, "$1")
      .replaceAll(`'${artifact}'`, "'.'")
      .replaceAll(`${generated}/kustomization.yaml`, "the root of the repository")
      .replace(new RegExp(`^${generated}: `), "the template: ");
  if (error instanceof StarlingError) {
    const { code, retry, data } = error;
    return new StarlingError(plainly(error.message), { code, retry, data, cause: error });
  }
  if (!(error instanceof ManifestError)) return error;
  const { file, ...place } = error.place;
  const known = file.startsWith(`${generated}/`)
    ? "the template"
    : file.startsWith(`${artifact}/`)
      ? file.slice(artifact.length + 1)
      : file;
  return new ManifestError(error.code, { ...place, file: known }, plainly(error.reason));
}

function fileOf(name: string, text: string): ListedFile {
  return { path: `${generated}/${name}`, executable: false, content: new TextEncoder().encode(text) };
}
