import { fileURLToPath } from "node:url";
import { type StartedProcess, startNode } from "#test/support/started-process.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));

/** Runs `node scripts/run.mjs demo …` in the repository's folder, with its own temporary folder. */
export function startDemo(
  args: readonly string[],
  options: { readonly tmp: string; readonly path?: string },
): StartedProcess {
  return startNode(["scripts/run.mjs", "demo", ...args], {
    cwd: root,
    env: { ...process.env, INIT_CWD: root, TMPDIR: options.tmp, PATH: options.path ?? process.env.PATH },
  });
}
