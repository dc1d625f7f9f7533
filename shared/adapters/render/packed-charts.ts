import { readTarGz } from "#shared/adapters/render/artifact-archive.ts";
import { errorMessage } from "#shared/base/errors.ts";
import { isWithin } from "#shared/source/tree-listing.ts";
import { ManifestError } from "#shared/source/yaml/manifest-error.ts";

/** A dependency as `helm package` makes it. Helm ignores other names, too. */
const packed = /^((?:charts\/[^/]+\/)*charts\/[^/._][^/]*)\.tgz$/;
/** More levels of charts inside charts than anyone has. */
const maxDepth = 8;
const maxBytes = 200 * 1024 * 1024;

/**
 * The files of a chart, with its packed dependencies (`charts/*.tgz`) unpacked in place at every depth, so that all of
 * them are checked.
 * @throws ManifestError `ChartRefused` for an archive that is damaged, or that contains anything except files.
 */
export async function unpackCharts(
  folder: string,
  files: ReadonlyMap<string, Uint8Array>,
): Promise<ReadonlyMap<string, Uint8Array>> {
  let result = files;
  for (let depth = 0; ; depth++) {
    const archives = [...result].filter(([path]) => packed.test(path));
    if (archives.length === 0) return result;
    const next = new Map([...result].filter(([path]) => !packed.test(path)));
    for (const [path, content] of archives) {
      if (depth === maxDepth)
        throw refused(folder, path, `contains packed charts in more than ${maxDepth} levels; unpack some of them`);
      await unpackInto(next, { folder, path, content });
    }
    result = next;
  }
}

interface PackedChart {
  readonly folder: string;
  readonly path: string;
  readonly content: Uint8Array;
}

async function unpackInto(files: Map<string, Uint8Array>, { folder, path, content }: PackedChart): Promise<void> {
  const target = path.slice(0, -".tgz".length);
  if ([...files.keys()].some((other) => isWithin(other, [target])))
    throw refused(folder, path, `is in the same folder as ${target}, to which it would be unpacked; keep one of them`);
  const unpacked = await readTarGz(content, { folders: "passed over" }).catch((error: unknown) => {
    throw refused(folder, path, `cannot be unpacked: ${errorMessage(error)}`);
  });
  let bytes = [...files.values()].reduce((sum, each) => sum + each.length, 0);
  for (const file of unpacked) {
    // The first segment is the chart's name.
    const inside = file.path.slice(file.path.indexOf("/") + 1);
    if (!file.path.includes("/"))
      throw refused(
        folder,
        path,
        `contains ${inside} outside of the chart's folder; pack the chart with \`helm package\``,
      );
    const place = `${target}/${inside}`;
    if (files.has(place)) throw refused(folder, path, `contains ${inside} twice, in two folders; pack a single chart`);
    bytes += file.content.length;
    if (bytes > maxBytes)
      throw refused(folder, path, `makes the chart larger than ${maxBytes} bytes; leave out unneeded files`);
    files.set(place, file.content);
  }
}

function refused(folder: string, path: string, reason: string): ManifestError {
  return new ManifestError("ChartRefused", { file: folder === "." ? path : `${folder}/${path}` }, reason);
}
