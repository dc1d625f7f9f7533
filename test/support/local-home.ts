/** A person at a terminal who has a git repository and runs Starling on one machine. */

import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, vi } from "vitest";
import { locateKubectl } from "#shared/adapters/render/kubectl-binary.ts";
import { defined } from "#shared/base/defined.ts";
import { type Ran, ranTo, type StartedProcess, startNode } from "#test/support/started-process.ts";

const run = promisify(execFile);
const starling = fileURLToPath(new URL("../../cli/starling.mjs", import.meta.url));

/** A command line that is split at its spaces, or a list of arguments. */
type Line = string | readonly string[];

/** The output of `local status -o json`. */
interface MachineStatus {
  readonly pid: number;
  readonly endpoint: string;
  readonly repository: {
    readonly url: string;
    readonly credentials: { readonly secret: string; readonly kind: string };
    readonly config: string;
  };
}

export interface LocalHome {
  /** The working directory of every command, and its HOME. */
  readonly folder: string;
  /** Runs `starling LINE` to its end. */
  cli(line: Line): Promise<Ran>;
  /** Starts `starling LINE` in the background of the test. */
  start(line: Line): StartedProcess;
  /** @param state - the folder of the machine. The default is the default folder. */
  status(state?: string): Promise<MachineStatus>;
  /** @returns the output of `local status` as soon as it contains the text. @throws Error after 90 seconds. */
  untilStatus(text: string, state?: string): Promise<string>;
  /** @returns the output. @throws Error when the command fails. */
  kubectl(kubeconfig: string, line: Line): Promise<string>;
  /** Writes files to the repository, the folder `shop`, and commits them. @returns the commit id. */
  commit(files: Readonly<Record<string, string>>): Promise<string>;
  /** Pushes the repository to the one that the machine serves. */
  push(state?: string): Promise<void>;
  /** Removes all files. The machines must be stopped before. */
  remove(): void;
}

/** A temporary folder with an empty repository `shop`, whose branch is `main`. */
export async function makeLocalHome(): Promise<LocalHome> {
  const folder = mkdtempSync(join(tmpdir(), "starling-local-"));
  const repository = join(folder, "shop");
  const { PATH = "", KUBEBUILDER_ASSETS } = process.env;
  const env = {
    PATH,
    HOME: folder,
    TMPDIR: join(folder, "tmp"),
    GIT_AUTHOR_NAME: "ana",
    GIT_AUTHOR_EMAIL: "ana@example.com",
    GIT_COMMITTER_NAME: "ana",
    GIT_COMMITTER_EMAIL: "ana@example.com",
    ...defined({ KUBEBUILDER_ASSETS }),
  };
  for (const each of [repository, env.TMPDIR]) mkdirSync(each);

  const argumentsOf = (line: Line) => (typeof line === "string" ? line.split(" ") : line);
  const start: LocalHome["start"] = (line) => startNode([starling, ...argumentsOf(line)], { cwd: folder, env });
  const cli: LocalHome["cli"] = (line) => ranTo(start(line));
  async function git(args: readonly string[]): Promise<string> {
    return (await run("git", args, { cwd: repository, env })).stdout;
  }
  const statusOf = (state?: string) => ["local", "status", ...(state === undefined ? [] : ["--state", state])];
  async function status(state?: string): Promise<MachineStatus> {
    return JSON.parse((await cli([...statusOf(state), "-o", "json"])).out);
  }

  await git(["init", "-q", "-b", "main", "."]);
  return {
    folder,
    cli,
    start,
    status,
    async untilStatus(text, state) {
      let out = "";
      const read = async () => {
        out = (await cli(statusOf(state))).out;
        expect(out).toContain(text);
      };
      await vi.waitFor(read, { timeout: 90_000, interval: 500 });
      return out;
    },
    async kubectl(kubeconfig, line) {
      const args = ["--kubeconfig", kubeconfig, ...argumentsOf(line)];
      return (await run(await locateKubectl(PATH), args, { env })).stdout;
    },
    async commit(files) {
      for (const [name, text] of Object.entries(files)) {
        mkdirSync(dirname(join(repository, name)), { recursive: true });
        writeFileSync(join(repository, name), text);
      }
      await git(["add", "."]);
      await git(["commit", "-qm", `Change ${Object.keys(files).join(", ")}`]);
      return (await git(["rev-parse", "HEAD"])).trim();
    },
    async push(state) {
      const { url, config } = (await status(state)).repository;
      await git(["-c", `include.path=${config}`, "push", "-q", url, "main"]);
    },
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}

/** A ConfigMap `settings`. Without a namespace it gets the set's. */
export function settings(value: string, namespace?: string): string {
  const metadata = namespace === undefined ? "{name: settings}" : `{name: settings, namespace: ${namespace}}`;
  return `apiVersion: v1\nkind: ConfigMap\nmetadata: ${metadata}\ndata: {value: "${value}"}\n`;
}
