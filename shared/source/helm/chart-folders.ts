/** Finds the folders that are charts by the names of files alone, without a parser. */
import { compareText } from "#shared/base/text-order.ts";

export const chartFile = "Chart.yaml";

/** Further charts are not recorded. A repository with more of them must say in `path` which folder is a chart. */
const maxNoted = 200;

/** The folders of an artifact that are charts, without the charts that another chart depends on. */
export function chartFolders(files: readonly { readonly path: string }[]): readonly string[] {
  const found = files.flatMap(({ path }) => {
    if (path === chartFile) return ["."];
    return path.endsWith(`/${chartFile}`) ? [path.slice(0, -chartFile.length - 1)] : [];
  });
  const all = new Set(found);
  const isBelow = (folder: string) => {
    const [, parent] = /^(.*?)\/?charts\/[^/]+$/.exec(folder) ?? [];
    return parent !== undefined && all.has(parent === "" ? "." : parent);
  };
  return found
    .filter((folder) => !isBelow(folder))
    .sort(compareText)
    .slice(0, maxNoted);
}
