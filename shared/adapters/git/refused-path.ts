import { StarlingError } from "#shared/base/errors.ts";

const remedies: readonly (readonly [problem: RegExp, remedy: string])[] = [
  [/^is not a valid file name|^is there twice/, "rename it"],
  [/submodule/, "commit its files in the repository itself"],
  [/Git LFS/, "commit the file itself (git lfs migrate export)"],
  [/pattern|KiB/, "write fewer and shorter patterns"],
  [/link/, "commit the file or folder itself instead of the link"],
];

/** @param problem - what is wrong with the path: `is there twice`. */
export function refusedPath(path: string, problem: string): StarlingError {
  const [, remedy] = remedies.find(([pattern]) => pattern.test(problem)) ?? [undefined, "remove it"];
  const message = `the path ${JSON.stringify(path)} of the repository ${problem}; ${remedy}, or narrow spec.paths`;
  return new StarlingError(message, { code: "GitPathRefused", retry: "permanent" });
}

const lfsBeginning = Buffer.from("version https://git-lfs.github.com/spec/v1\n");
/** The limit of git-lfs itself. */
const maxPointerBytes = 1024;

/** A pointer only names the file, which the forge keeps outside of the repository. */
export function isLfsPointer(content: Uint8Array): boolean {
  return content.length < maxPointerBytes && lfsBeginning.equals(content.subarray(0, lfsBeginning.length));
}
