import { at, type Chart } from "#shared/source/helm/chart.ts";
import { type ManifestDocument, parseManifests } from "#shared/source/yaml/manifest-documents.ts";
import { ManifestError } from "#shared/source/yaml/manifest-error.ts";

/** Helm writes it before every document; one may begin with what looks like it, for Helm leaves a second `---` in place. */
const sources = /^---\n# Source: (.*)\n/gm;

/** The documents of what Helm wrote, each with the template that it is from. @throws ManifestError `InvalidYaml` */
export function readOutput({ name, folder }: Pick<Chart, "name" | "folder">, output: string): ManifestDocument[] {
  const marks = marksIn(output);
  return marks.flatMap((mark, index) => {
    const text = output.slice(mark.index + mark[0].length, marks[index + 1]?.index);
    return documentsIn(text, `${fileOf({ name, folder }, mark[1] ?? "")} (as rendered)`);
  });
}

/** Without those that a file wrote itself: directly behind one of Helm's, which never has a document of nothing. */
function marksIn(output: string): readonly RegExpExecArray[] {
  const marks: RegExpExecArray[] = [];
  let end = -1;
  for (const mark of output.matchAll(sources)) {
    if (mark.index === end) continue;
    marks.push(mark);
    end = mark.index + mark[0].length;
  }
  return marks;
}

/**
 * Charts of others often write a label twice, and who installs them cannot change that: the last one counts, as with Helm
 * itself, and it is told. What is in git is somebody's to mend, and refused.
 */
function documentsIn(text: string, file: string): ManifestDocument[] {
  try {
    return parseManifests(text, file);
  } catch (error) {
    if (!(error instanceof ManifestError) || !error.reason.startsWith("duplicate key")) throw error;
    const { line, column } = error.place;
    const remark = `${file}:${line}:${column}: has a key twice in a map; the last one counts, as with Helm`;
    const [first, ...others] = parseManifests(text, file, { twice: "last counts" });
    return first === undefined ? [] : [{ ...first, remark }, ...others];
  }
}

/** Helm calls files by the chart's name; people know them by its folder. */
export function fileOf({ name, folder }: Pick<Chart, "name" | "folder">, helmFile: string): string {
  return at(folder, helmFile.startsWith(`${name}/`) ? helmFile.slice(name.length + 1) : helmFile);
}
