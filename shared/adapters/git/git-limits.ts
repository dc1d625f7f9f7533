import { StarlingError } from "#shared/base/errors.ts";

/**
 * The limits of a repository. The announced sizes are checked before anything is unpacked. Without limits, a pack of 6
 * MB with a file of 1.5 GB took 5.9 GB of memory, and a few trees that contain each other unfold without end. Together
 * the limits stay below half of the function's memory.
 */
export interface GitLimits {
  readonly maxFiles: number;
  /** The limit of all files' contents together. */
  readonly maxContentBytes: number;
  /** The limit of a path in the repository, so that an archive can contain it. */
  readonly maxPathBytes: number;
  /** Files and folders that are visited, selected or not. */
  readonly maxEntries: number;
  readonly maxPackBytes: number;
  /** The limit of a pack. A single commit of the largest public repositories has 100,000. */
  readonly maxObjects: number;
  /** The limit of one unpacked object. A delta counts with its result. */
  readonly maxObjectBytes: number;
  /** The limit of all unpacked objects of a pack. */
  readonly maxUnpackedBytes: number;
  /** The limit of a commit or a tag itself, with its author, time and message. */
  readonly maxTextBytes: number;
  /** The limit of deltas on deltas. Git writes no longer chains. */
  readonly maxDeltaDepth: number;
  /** The limit of a listing. */
  readonly maxListingBytes: number;
  readonly maxRefs: number;
  readonly maxRefNameBytes: number;
  /** For one listing, and for one fetch together with its unpacking. */
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

/** The remedy when the selected files are too large. */
export const narrowPaths = "narrow spec.paths, or remove what is not needed";
/** The remedy when too much is sent: only some git servers leave out what is not selected. */
export const splitRepository =
  "narrow spec.paths, if the git server can leave out the rest (partial clone), remove large files (older commits do not count), " +
  "or move the deployed files to their own repository";
/** The remedy when there are too many references. */
export const fewerRefs =
  "delete references that nobody needs, or name a branch, a tag or a longer tagPrefix in spec.git.ref";

/** @param found - the size and the limit: `the commit has 3 files; at most 2 are taken`. */
export function gitTooLarge(found: string, remedy: string): StarlingError {
  return new StarlingError(`${found}; ${remedy}`, { code: "GitTooLarge", retry: "permanent" });
}

/** The server's answer does not follow the git protocol. */
export function malformedGitAnswer(what: string, cause?: unknown): StarlingError {
  return new StarlingError(`${what}; check the git server, and whether a proxy changes its answers`, {
    code: "GitOperationFailed",
    retry: "transient",
    cause,
  });
}
