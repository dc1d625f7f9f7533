/**
 * The one door through which every git of Starling is started: no repository that came from elsewhere runs a program by it.
 * It needs git 2.32, the first that goes by GIT_CONFIG_GLOBAL. What came later is no condition of its promise.
 */
import { type ChildProcessByStdio, spawn } from "node:child_process";
import { resolve } from "node:path";
import type { Readable, Writable } from "node:stream";
import { defined } from "#shared/base/defined.ts";

export type GitProcess = ChildProcessByStdio<Writable, Readable, Readable>;

export interface GitStart {
  /** The repository that git reads. Absent: none, also where the caller stands in one. */
  readonly folder?: string;
  /** What git may reach besides the folder; `none` by default. `remotes` are what the user's own settings allow. */
  readonly reach?: "none" | "folders" | "remotes";
  /** What git inherits; by default, what this process has. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** Further variables. */
  readonly variables?: Readonly<Record<string, string>>;
}

/**
 * Variables that put another repository into the place of the one that is meant, or settings and hooks into a new one: git sets
 * them for hooks and aliases.
 */
const misleading = [
  "GIT_ALTERNATE_OBJECT_DIRECTORIES",
  "GIT_COMMON_DIR",
  "GIT_CONFIG",
  "GIT_DIR",
  "GIT_GRAFT_FILE",
  "GIT_IMPLICIT_WORK_TREE",
  "GIT_INDEX_FILE",
  "GIT_NAMESPACE",
  "GIT_OBJECT_DIRECTORY",
  "GIT_INTERNAL_SUPER_PREFIX",
  "GIT_NO_REPLACE_OBJECTS",
  "GIT_PREFIX",
  "GIT_REPLACE_REF_BASE",
  "GIT_SHALLOW_FILE",
  "GIT_TEMPLATE_DIR",
  "GIT_WORK_TREE",
];

/** Git asks nobody, writes no index anew, and fetches no object that is missing. */
const calm = { GIT_TERMINAL_PROMPT: "0", GIT_OPTIONAL_LOCKS: "0", GIT_NO_LAZY_FETCH: "1" };

/** A folder's own settings lose against these. `core.fsmonitor` is empty: before 2.36, `false` is the name of a program. */
const harmless = [
  ...["core.fsmonitor=", "core.hooksPath=/dev/null", "core.alternateRefsCommand=true", "init.templateDir="],
  // What is shown of a commit would have its signature verified, by a program of the folder's.
  "log.showSignature=false",
];

/**
 * Every way to another repository is a program that settings name. A git before 2.39.4 does not know GIT_NO_LAZY_FETCH: its
 * fetches for missing objects end here.
 */
const reaches = {
  none: { GIT_ALLOW_PROTOCOL: "" },
  folders: { GIT_ALLOW_PROTOCOL: "file" },
  remotes: {},
} as const satisfies Record<NonNullable<GitStart["reach"]>, Readonly<Record<string, string>>>;

export function startGit(args: readonly string[], start: GitStart = {}): GitProcess {
  const { folder, reach = "none", env, variables = {} } = start;
  const assigned = Object.entries({ ...calm, ...reaches[reach], ...variables });
  const changes = [
    ...misleading.flatMap((name) => ["-u", name]),
    ...assigned.map(([name, value]) => `${name}=${value}`),
  ];
  const where = folder === undefined ? [] : ["-C", resolve(folder)];
  const settings = harmless.flatMap((setting) => ["-c", setting]);
  return spawn("env", [...changes, "git", "--no-pager", ...settings, ...where, ...args], {
    // Not where the caller stands: git reads the settings of a repository there, whatever it is asked.
    cwd: "/",
    stdio: ["pipe", "pipe", "pipe"],
    ...defined({ env }),
  });
}
