/**
 * The only place that starts git. No repository from elsewhere can make git run a program. It needs git 2.32, the first
 * version with GIT_CONFIG_GLOBAL. Later features are not required.
 */
import { type ChildProcessByStdio, spawn } from "node:child_process";
import { resolve } from "node:path";
import type { Readable, Writable } from "node:stream";
import { defined } from "#shared/base/defined.ts";

export type GitProcess = ChildProcessByStdio<Writable, Readable, Readable>;

export interface GitStart {
  /** The repository that git reads. Default: none, even if the caller is inside one. */
  readonly folder?: string;
  /**
   * The repositories that git may reach besides the folder. Default: `none`. `remotes` means everything that the user's own settings
   * allow.
   */
  readonly reach?: "none" | "folders" | "remotes";
  /** The environment that git inherits. Default: this process's. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** Additional variables. */
  readonly variables?: Readonly<Record<string, string>>;
}

/**
 * Variables that replace the intended repository, or that put settings and hooks into a new one. Git sets them for
 * hooks and aliases.
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

/** Git prompts for nothing, does not rewrite the index, and fetches no missing objects. */
const calm = { GIT_TERMINAL_PROMPT: "0", GIT_OPTIONAL_LOCKS: "0", GIT_NO_LAZY_FETCH: "1" };

/**
 * Settings that override the folder's own. `core.fsmonitor` is empty, because before git 2.36 `false` is the name of a
 * program.
 */
const harmless = [
  ...["core.fsmonitor=", "core.hooksPath=/dev/null", "core.alternateRefsCommand=true", "init.templateDir="],
  // Showing a commit would otherwise verify its signature with a program of the folder.
  "log.showSignature=false",
];

/**
 * The access to another repository uses programs from the settings. A git before 2.39.4 does not know
 * GIT_NO_LAZY_FETCH; its fetches of missing objects fail here.
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
    // Not the caller's folder: git would read the settings of a repository there.
    cwd: "/",
    stdio: ["pipe", "pipe", "pipe"],
    ...defined({ env }),
  });
}
