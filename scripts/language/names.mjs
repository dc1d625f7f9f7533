/** Finds names that stand twice: files of one name, and names that several files export. */
import { conventionalExports, conventionalFiles } from "./table.mjs";

/** `files` are `{ path, exports }`; the answer is a list of `{ name, paths }` for files and for exports. */
export function findTwice(files) {
  const code = files.filter(({ path }) => /^(functions|shared|cli)\//.test(path));
  const byFile = grouped(code.map(({ path }) => ({ name: path.slice(path.lastIndexOf("/") + 1), path })));
  const byExport = grouped(
    code.flatMap(({ path, exports }) => [...new Set(exports.map(({ name }) => name))].map((name) => ({ name, path }))),
  );
  return {
    files: byFile.filter(({ name }) => !Object.hasOwn(conventionalFiles, name)),
    exports: byExport.filter(({ name }) => !Object.hasOwn(conventionalExports, name)),
  };
}

function grouped(pairs) {
  const paths = new Map();
  for (const { name, path } of pairs) paths.set(name, [...(paths.get(name) ?? []), path]);
  return [...paths].filter(([, each]) => each.length > 1).map(([name, each]) => ({ name, paths: each }));
}
