import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { namespace, type World } from "#test/support/e2e-world.ts";
import { runWithoutTerminal } from "#test/support/run-without-terminal.ts";
import type { Ran } from "#test/support/started-process.ts";

export interface WorldCli {
  /** One command, in this process, as somebody without a terminal; words are parted by blanks, or given as a list. */
  run(line: string | readonly string[], input?: string): Promise<Ran>;
  /** The commands that were run, and all that they said. */
  readonly said: readonly Ran[];
  close(): void;
}

/** The `starling` command against a world, in its namespace. */
export function openWorldCli(world: Pick<World, "machine"> & Partial<Pick<World, "gitCa">>): WorldCli {
  const folder = mkdtempSync(join(tmpdir(), "starling-cli-"));
  const config = join(folder, "config.json");
  const { endpoint, region, credentials } = world.machine.api;
  writeFileSync(
    config,
    JSON.stringify({ contexts: { here: { endpoint, region, namespace, credentials } }, current: "here" }),
  );
  const authority = join(folder, "git-ca.pem");
  writeFileSync(authority, world.gitCa ?? "");
  const said: Ran[] = [];
  return {
    said,
    async run(line, input = "") {
      const words = typeof line === "string" ? line.split(" ") : line;
      const env = { GIT_SSL_CAINFO: authority };
      const ended = await runWithoutTerminal(words, { folder, input, env, patienceMs: 120_000 });
      said.push(ended);
      return ended;
    },
    close: () => rmSync(folder, { recursive: true, force: true }),
  };
}
