import { StarlingError } from "#shared/base/errors.ts";

/**
 * What a repository may cost. Whatever is bigger is refused before it is made, by what its headers announce: a pack of
 * 6 MB that holds one file of 1.5 GB took 5.9 GB of memory, and a few trees that hold each other unfold for ever.
 * Together they stay below half of the function's memory.
 */
export interface GitLimits {
  readonly maxFiles: number;
  /** Of the files' contents together. */
  readonly maxContentBytes: number;
  /** Of a path in the repository: what an archive of an artifact may name. */
  readonly maxPathBytes: number;
  /** Files and folders that are looked at, wanted or not. */
  readonly maxEntries: number;
  readonly maxPackBytes: number;
  /** In a pack; a commit alone of the largest public repositories has 100,000. */
  readonly maxObjects: number;
  /** Of one object, unpacked; a delta counts with its result. */
  readonly maxObjectBytes: number;
  /** Of all objects of a pack, unpacked. */
  readonly maxUnpackedBytes: number;
  /** Of a commit or a tag itself: who, when, and what they wrote. */
  readonly maxTextBytes: number;
  /** Deltas upon deltas; no git writes longer chains. */
  readonly maxDeltaDepth: number;
  /** Of a listing. */
  readonly maxListingBytes: number;
  readonly maxRefs: number;
  readonly maxRefNameBytes: number;
  /** For one listing, and for one fetch with its unpacking. */
  readonly timeoutSeconds: number;
}

const mib = 1024 * 1024;

export const defaultGitLimits: GitLimits = {
  maxFiles: 20_000,
  maxContentBytes: 100 * mib,
  maxPathBytes: 1024,
  maxEntries: 200_000,
  maxPackBytes: 200 * mib,
  maxObjects: 250_000,
  maxObjectBytes: 100 * mib,
  maxUnpackedBytes: 1024 * mib,
  maxTextBytes: mib,
  maxDeltaDepth: 4095,
  maxListingBytes: 16 * mib,
  maxRefs: 100_000,
  maxRefNameBytes: 255,
  timeoutSeconds: 60,
};

/** Where the size of what is wanted decides. */
export const narrowPaths = "narrow spec.paths, or remove what is not needed";
/** Where it does not: a git server sends whole commits. */
export const splitRepository =
  "spec.paths does not help, because git sends the whole commit: remove large files from it (older commits do not count), " +
  "or move what is deployed to a repository of its own";
/** Where the references are what there is too much of. */
export const fewerRefs =
  "delete references that nobody needs, or name a branch, a tag or a longer tagPrefix in spec.git.ref";

/** @param found - what there is and what may be: `the commit has 3 files; at most 2 are taken`. */
export function gitTooLarge(found: string, remedy: string): StarlingError {
  return new StarlingError(`${found}; ${remedy}`, { code: "GitTooLarge", retry: "permanent" });
}

/** What the server sends is not what git says it is. */
export function malformedGitAnswer(what: string, cause?: unknown): StarlingError {
  return new StarlingError(`${what}; check the git server, or whether something between changes what it sends`, {
    code: "GitOperationFailed",
    retry: "transient",
    cause,
  });
}
