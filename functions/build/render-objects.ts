import type { ManifestObject } from "#shared/kube/kube-object.ts";
import type { KustomizeRunner, TreeFile } from "#shared/ports.ts";
import { kustomizationsOf } from "#shared/source/kustomization.ts";
import { readManifests } from "#shared/source/manifests.ts";
import { nestedKustomizations, readPlainFiles } from "#shared/source/plain-files.ts";
import type { RenderOptions } from "#shared/source/render-options.ts";
import { isWithin } from "#shared/source/tree-listing.ts";
import { ManifestError } from "#shared/source/yaml/manifest-error.ts";
import { type ManifestDocument, parseManifests } from "#shared/source/yaml/yaml.ts";

export interface RenderRequest {
  readonly files: readonly TreeFile[];
  /** The folder inside the artifact. */
  readonly path: string;
  /** Absent: kustomize when the folder has a kustomization file, else plain. */
  readonly render?: RenderOptions;
}

/**
 * The objects of a folder, checked, normalised and sorted by identity: the same for the same files, on any machine.
 * Without a choice in the template, a folder below with a kustomization of its own is built and joined, as Flux does;
 * `plain` by choice reads every file and builds nothing.
 * @throws ManifestError for what is wrong with the files, `EmptyRender` when nothing comes out of them; StarlingError
 *   `KustomizeFailed`.
 */
export async function renderObjects(request: RenderRequest, kustomize: KustomizeRunner): Promise<ManifestObject[]> {
  const path = normalFolder(request.path);
  if (!request.files.some((file) => isWithin(file.path, [path]) && file.path !== path)) {
    throw new ManifestError(
      "EmptyRender",
      { file: path },
      "is no folder of the artifact; check the template's path and the Source's spec.paths",
    );
  }
  const documents = await readDocuments({ ...request, path }, kustomize);
  const objects = readManifests(documents).map((manifest) => manifest.object);
  if (objects.length === 0) {
    throw new ManifestError(
      "EmptyRender",
      { file: path },
      "holds no objects; an empty rendering is never applied, delete the Sync to delete its objects",
    );
  }
  return objects;
}

async function readDocuments(request: RenderRequest, kustomize: KustomizeRunner): Promise<ManifestDocument[]> {
  const { files, path, render } = request;
  if (render?.plain !== undefined) return readPlainFiles(files, { folder: path, without: [] });
  const byPath = new Map(files.map((file) => [file.path, file]));
  const built =
    render?.kustomize !== undefined || kustomizationsOf(byPath, path).length > 0
      ? [path]
      : nestedKustomizations(files, path);
  const documents = built.includes(path) ? [] : readPlainFiles(files, { folder: path, without: built });
  for (const folder of built) {
    const output = await kustomize.build({ files, path: folder });
    documents.push(...parseManifests(output, `${folder} (as built by kustomize)`));
  }
  return documents;
}

/** `./deploy/` is `deploy`: paths come out of templates. */
function normalFolder(path: string): string {
  const parts = path.split("/").filter((part) => part !== "" && part !== ".");
  return parts.length === 0 ? "." : parts.join("/");
}
