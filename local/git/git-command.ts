import { once } from "node:events";
import { text } from "node:stream/consumers";
import { type GitProcess, type GitStart, startGit } from "#shared/adapters/git/start-git.ts";

/** Keeps the git settings of the user and the machine (hooks, signing, insteadOf) away from these commands. */
const isolation = { GIT_CONFIG_GLOBAL: "/dev/null", GIT_CONFIG_NOSYSTEM: "1" };

/** Starts git on a repository of Starling's own, with additional environment variables. */
export function spawnGit(args: readonly string[], variables: Readonly<Record<string, string>> = {}): GitProcess {
  return startGit(args, { variables: { ...isolation, ...variables } });
}

/** Runs git to its end and returns its standard output. @throws Error with git's message when git fails. */
export async function runGit(args: readonly string[], input: Uint8Array | string = ""): Promise<string> {
  const child = spawnGit(args);
  child.stdin.on("error", () => {});
  child.stdin.end(input);
  return outputOf(child, args);
}

interface UsersGitOptions extends Pick<GitStart, "folder" | "reach" | "variables"> {
  readonly timeoutSeconds?: number;
}

/** Keeps git from asking for a password in a window. */
const askingNobody = { GIT_ASKPASS: "true", SSH_ASKPASS: "true" };

/**
 * Runs git on a repository of the user, with the user's settings: `safe.directory`, proxies, authorities. @throws Error
 * with git's message when git fails or exceeds the time.
 */
export async function runUsersGit(args: readonly string[], options: UsersGitOptions = {}): Promise<string> {
  const { timeoutSeconds = 600, variables = {}, ...where } = options;
  const child = startGit(args, { ...where, variables: { ...askingNobody, ...variables } });
  child.stdin.on("error", () => {});
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

async function outputOf(child: GitProcess, args: readonly string[]): Promise<string> {
  const [output, complaint, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, "close")]);
  if (code !== 0) throw new Error(`git ${args.join(" ")} ended with exit code ${code}: ${complaint.trim()}`);
  return output;
}
