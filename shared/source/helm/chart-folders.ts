/** Which folders are charts, by the names of files alone: nothing of a chart is read, and no parser is needed. */
import { compareText } from "#shared/base/text-order.ts";

export const chartFile = "Chart.yaml";

/** More are not noted: whoever has them says which folder is one. */
const maxNoted = 200;

/** The folders of an artifact that are charts, without those that only others depend on. */
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
