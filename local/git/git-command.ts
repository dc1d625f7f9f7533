import { type ChildProcessByStdio, spawn } from "node:child_process";
import { once } from "node:events";
import type { Readable, Writable } from "node:stream";
import { text } from "node:stream/consumers";

export type GitProcess = ChildProcessByStdio<Writable, Readable, Readable>;

/** Nothing of the user's or the machine's git settings (hooks, signing, insteadOf) reaches these commands. */
const isolation = { GIT_CONFIG_GLOBAL: "/dev/null", GIT_CONFIG_NOSYSTEM: "1", GIT_TERMINAL_PROMPT: "0" };

/** Starts git with further environment variables; the rest of the environment is inherited. */
export function spawnGit(args: readonly string[], variables: Readonly<Record<string, string>> = {}): GitProcess {
  return spawnWith({ ...isolation, ...variables }, args);
}

/**
 * Runs git to its end and gives its standard output.
 * @throws Error with git's own words when it fails.
 */
export async function runGit(args: readonly string[], input: Uint8Array | string = ""): Promise<string> {
  const child = spawnGit(args);
  child.stdin.on("error", () => {});
  child.stdin.end(input);
  return outputOf(child, args);
}

interface UsersGitOptions {
  readonly timeoutSeconds?: number;
  readonly variables?: Readonly<Record<string, string>>;
}

/** Never asks; and only reads: what is not there is not fetched from where a repository says, and no index is written anew. */
const reading = {
  GIT_TERMINAL_PROMPT: "0",
  GIT_ASKPASS: "true",
  SSH_ASKPASS: "true",
  GIT_NO_LAZY_FETCH: "1",
  GIT_OPTIONAL_LOCKS: "0",
};

/**
 * Runs git on something of the user's, with the user's settings: `safe.directory`, proxies, authorities.
 * @throws Error with git's own words when it fails, or is not done within the time.
 */
export async function runUsersGit(args: readonly string[], options: UsersGitOptions = {}): Promise<string> {
  const { timeoutSeconds = 600, variables = {} } = options;
  const child = spawnWith({ ...reading, ...variables }, args);
  child.stdin.end();
  const timer = setTimeout(() => child.kill(), timeoutSeconds * 1000);
  try {
    return await outputOf(child, args);
  } catch (error) {
    if (child.signalCode === null) throw error;
    throw new Error(`git ${args.join(" ")} was not done within ${timeoutSeconds} seconds`, { cause: error });
  } finally {
    clearTimeout(timer);
  }
}

function spawnWith(variables: Readonly<Record<string, string>>, args: readonly string[]): GitProcess {
  const assignments = Object.entries(variables).map(([name, value]) => `${name}=${value}`);
  return spawn("env", [...assignments, "git", ...args], { stdio: ["pipe", "pipe", "pipe"] });
}

async function outputOf(child: GitProcess, args: readonly string[]): Promise<string> {
  const [output, complaint, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, "close")]);
  if (code !== 0) throw new Error(`git ${args.join(" ")} ended with exit code ${code}: ${complaint.trim()}`);
  return output;
}
