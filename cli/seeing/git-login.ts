import { once } from "node:events";
import { text } from "node:stream/consumers";
import type { CliIo } from "#cli/session/io.ts";
import { startGit } from "#shared/adapters/git/start-git.ts";
import type { SourceCredentials } from "#shared/ports.ts";

const patienceMs = 20_000;

/**
 * The credentials that the caller's own git has for this address, from its credential helpers. Git does not prompt.
 * @returns undefined when git has no credentials for it, or git is not installed.
 */
export async function gitLogin({ env }: Pick<CliIo, "env">, address: string): Promise<SourceCredentials | undefined> {
  const { protocol, host, pathname } = new URL(address);
  const desired = `protocol=${protocol.slice(0, -1)}\nhost=${host}\npath=${pathname.slice(1)}\n\n`;
  const asking = startGit(["credential", "fill"], { env, reach: "remotes" });
  asking.stderr.resume();
  const timer = setTimeout(() => asking.kill(), patienceMs);
  // A git that ends before it has read its input gives no credentials.
  asking.stdin.on("error", () => undefined).end(desired);
  const [answer] = await Promise.all([text(asking.stdout), once(asking, "close")])
    .catch(() => [""] as const)
    .finally(() => clearTimeout(timer));
  const reported = new Map(
    answer.split("\n").map((line) => [line.split("=", 1)[0], line.slice(line.indexOf("=") + 1)]),
  );
  const [username, password] = [reported.get("username"), reported.get("password")];
  return username === undefined || password === undefined ? undefined : { kind: "basic", username, password };
}
