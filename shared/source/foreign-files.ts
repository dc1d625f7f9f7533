/** Refuses files that belong to another tool and are not manifests, and names that tool. */
import { chartFile, chartFolders } from "#shared/source/helm/chart-folders.ts";
import { isWithin, type ListedFile } from "#shared/source/tree-listing.ts";
import { ManifestError } from "#shared/source/yaml/manifest-error.ts";

/**
 *
 * @param part - the part of the artifact that is read as plain manifests.
 * @throws ManifestError `NotKubernetes` for a folder that is inside a chart or contains one, and for a file of Rancher
 * Fleet.
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
      "is a file of Rancher Fleet; write its settings in the template (render.helm, path, apply.defaultNamespace), and set a path that does not contain the file",
    );
  }
}

function foreign(file: string, reason: string): ManifestError {
  return new ManifestError("NotKubernetes", { file }, reason);
}
