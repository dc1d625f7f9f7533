import { at, type Chart } from "#shared/source/helm/chart.ts";
import { type ManifestDocument, parseManifests } from "#shared/source/yaml/manifest-documents.ts";
import { ManifestError } from "#shared/source/yaml/manifest-error.ts";

/**
 * Helm writes this line before every document. A document can begin with such a line itself, because Helm leaves a
 * second `---` in place.
 */
const sources = /^---\n# Source: (.*)\n/gm;

/**
 * Splits Helm's output into documents, each with the template that it comes from. @throws ManifestError `InvalidYaml`
 */
export function readOutput({ name, folder }: Pick<Chart, "name" | "folder">, output: string): ManifestDocument[] {
  const marks = marksIn(output);
  return marks.flatMap((mark, index) => {
    const text = output.slice(mark.index + mark[0].length, marks[index + 1]?.index);
    return documentsIn(text, `${fileOf({ name, folder }, mark[1] ?? "")} (as rendered)`);
  });
}

/**
 * Helm's own lines, without those that a file wrote: these follow one of Helm's directly, and Helm never writes an
 * empty document.
 */
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
 * Charts of third parties often contain a label twice, and their users cannot change that. The last one counts, as in
 * Helm itself, and a remark reports it. In manifests from git, which their authors can correct, a duplicate key is
 * refused.
 */
function documentsIn(text: string, file: string): ManifestDocument[] {
  try {
    return parseManifests(text, file);
  } catch (error) {
    if (!(error instanceof ManifestError) || !error.reason.startsWith("duplicate key")) throw error;
    const { line, column } = error.place;
    const remark = `${file}:${line}:${column}: has a duplicate key in a map; the last one counts, as in Helm`;
    const [first, ...others] = parseManifests(text, file, { twice: "last counts" });
    return first === undefined ? [] : [{ ...first, remark }, ...others];
  }
}

/** Helm's paths begin with the chart's name. People know the files by the chart's folder. */
export function fileOf({ name, folder }: Pick<Chart, "name" | "folder">, helmFile: string): string {
  return at(folder, helmFile.startsWith(`${name}/`) ? helmFile.slice(name.length + 1) : helmFile);
}
