import { once } from "node:events";
import { text } from "node:stream/consumers";
import { type GitProcess, type GitStart, startGit } from "#shared/adapters/git/start-git.ts";

/** Nothing of the user's or the machine's git settings (hooks, signing, insteadOf) reaches these commands. */
const isolation = { GIT_CONFIG_GLOBAL: "/dev/null", GIT_CONFIG_NOSYSTEM: "1" };

/** Starts git on a repository of our own, with further environment variables. */
export function spawnGit(args: readonly string[], variables: Readonly<Record<string, string>> = {}): GitProcess {
  return startGit(args, { variables: { ...isolation, ...variables } });
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

interface UsersGitOptions extends Pick<GitStart, "folder" | "reach" | "variables"> {
  readonly timeoutSeconds?: number;
}

/** No window asks for a password either. */
const askingNobody = { GIT_ASKPASS: "true", SSH_ASKPASS: "true" };

/**
 * Runs git on something of the user's, with the user's settings: `safe.directory`, proxies, authorities.
 * @throws Error with git's own words when it fails, or is not done within the time.
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
