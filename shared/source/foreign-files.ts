/** Files that mean something to another tool, and are no manifests: said as what they are. */
import { chartFile, chartFolders } from "#shared/source/helm/chart-folders.ts";
import { isWithin, type ListedFile } from "#shared/source/tree-listing.ts";
import { ManifestError } from "#shared/source/yaml/manifest-error.ts";

/**
 * @param part - of the artifact, that is read as plain manifests.
 * @throws ManifestError `NotKubernetes` for a folder that is in a chart, or holds one, and for a file of Fleet's.
 */
export function refuseForeignFiles(
  files: readonly ListedFile[],
  { folder, without }: { readonly folder: string; readonly without: readonly string[] },
): void {
  const charts = chartFolders(files);
  const around = charts.find((chart) => chart !== folder && isWithin(folder, [chart]));
  if (around !== undefined) {
    throw foreign(folder, `is inside the Helm chart ${around}, whose templates are no manifests; set path: ${around}`);
  }
  const within = files.filter(({ path }) => isWithin(path, [folder]) && !isWithin(path, without));
  const own = charts.find((chart) =>
    within.some(({ path }) => path === (chart === "." ? chartFile : `${chart}/${chartFile}`)),
  );
  if (own !== undefined) {
    throw foreign(
      own === "." ? chartFile : `${own}/${chartFile}`,
      `makes ${own === "." ? "the repository" : own} a Helm chart, whose templates are no manifests; give it a template of its own with path: ${own} and render: {helm: {}}`,
    );
  }
  const fleet = within.find(({ path }) => /(^|\/)fleet\.ya?ml$/.test(path));
  if (fleet !== undefined) {
    throw foreign(
      fleet.path,
      "is a file of Rancher Fleet's: say what it says in the template (render.helm, path, apply.defaultNamespace), and leave the file out by a path beside it",
    );
  }
}

function foreign(file: string, reason: string): ManifestError {
  return new ManifestError("NotKubernetes", { file }, reason);
}
