import type { ListedFile } from "#shared/source/tree-listing.ts";

/**
 * The files of a chart as `helm package` packs it, without the folder of the chart's name.
 * @returns the files relative to the chart, or what is wrong with the archive.
 */
export function chartFilesOf(packed: readonly ListedFile[]): readonly ListedFile[] | string {
  const folders = new Set(packed.map(({ path }) => (path.includes("/") ? path.slice(0, path.indexOf("/")) : "")));
  if (folders.has("")) return "has files outside of the chart's folder; pack the chart with `helm package`";
  if (folders.size > 1) return `has the folders ${[...folders].slice(0, 3).join(", ")}; pack a single chart`;
  return packed.map((file) => ({ ...file, path: file.path.slice(file.path.indexOf("/") + 1) }));
}
