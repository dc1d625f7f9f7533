import { runCli } from "#cli/run.ts";
import type { Ran } from "#test/support/started-process.ts";

export interface Surroundings {
  /** The home and working folder. Its `config.json` contains the contexts. */
  readonly folder: string;
  readonly input?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly aheadSeconds?: number;
  readonly patienceMs: number;
}

/** Runs one command in this process, without a terminal, like a script. */
export async function runWithoutTerminal(
  words: readonly string[],
  { folder, input = "", env = {}, aheadSeconds = 0, patienceMs }: Surroundings,
): Promise<Ran & { readonly code: number }> {
  const ran = { out: "", err: "" };
  const code = await runCli(words, {
    out: (text) => {
      ran.out += text;
    },
    err: (text) => {
      ran.err += text;
    },
    outIsTerminal: false,
    canAsk: false,
    columns: 200,
    env: { STARLING_CONFIG: `${folder}/config.json`, HOME: folder, ...env },
    cwd: folder,
    readInput: async () => input,
    ask: async () => "",
    now: () => new Date(Date.now() + aheadSeconds * 1000),
    interrupted: AbortSignal.timeout(patienceMs),
  });
  return { ...ran, code };
}
