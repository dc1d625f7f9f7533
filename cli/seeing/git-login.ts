import { once } from "node:events";
import { text } from "node:stream/consumers";
import type { CliIo } from "#cli/session/io.ts";
import { startGit } from "#shared/adapters/git/start-git.ts";
import type { GitCredentials } from "#shared/ports.ts";

const patienceMs = 20_000;

/**
 * What the caller's own git would send to this address, by its credential helpers; asked for nothing at a terminal.
 * @returns undefined where git has none for it, or there is no git.
 */
export async function gitLogin({ env }: Pick<CliIo, "env">, address: string): Promise<GitCredentials | undefined> {
  const { protocol, host, pathname } = new URL(address);
  const desired = `protocol=${protocol.slice(0, -1)}\nhost=${host}\npath=${pathname.slice(1)}\n\n`;
  const asking = startGit(["credential", "fill"], { env, reach: "remotes" });
  asking.stderr.resume();
  const timer = setTimeout(() => asking.kill(), patienceMs);
  // A git that is gone before it has read is one that gives nothing.
  asking.stdin.on("error", () => undefined).end(desired);
  const [answer] = await Promise.all([text(asking.stdout), once(asking, "close")])
    .catch(() => [""] as const)
    .finally(() => clearTimeout(timer));
  const told = new Map(answer.split("\n").map((line) => [line.split("=", 1)[0], line.slice(line.indexOf("=") + 1)]));
  const [username, password] = [told.get("username"), told.get("password")];
  return username === undefined || password === undefined ? undefined : { kind: "basic", username, password };
}
