import { spawn } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Readable, type Stream } from "node:stream";
import { text } from "node:stream/consumers";
import { locateKubectl } from "#shared/adapters/render/kubectl-binary.ts";
import { stringifyJson } from "#shared/base/json.ts";
import type { ManifestObject } from "#shared/kube/kube-object.ts";
import type { ClusterAddress } from "#test/bench/children.ts";

export interface TimedRun {
  readonly ms: number;
  /** The user and system time of the program and its children. */
  readonly cpuMs: number;
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** kubectl for one cluster. It keeps its discovery cache, as on a person's machine. */
export class Kubectl {
  readonly #binary: string;
  /** The folder of its files. */
  readonly folder: string;

  private constructor(binary: string, folder: string) {
    this.#binary = binary;
    this.folder = folder;
  }

  /** @param folder - an empty folder for its files. */
  static async prepare({ server, caData, token }: ClusterAddress, folder: string): Promise<Kubectl> {
    const binary = await locateKubectl(process.env.PATH ?? "");
    const config = {
      apiVersion: "v1",
      kind: "Config",
      "current-context": "bench",
      contexts: [{ name: "bench", context: { cluster: "bench", user: "bench" } }],
      clusters: [{ name: "bench", cluster: { server, "certificate-authority-data": caData } }],
      users: [{ name: "bench", user: { token } }],
    };
    await writeFile(join(folder, "kubeconfig"), JSON.stringify(config), { mode: 0o600 });
    return new Kubectl(binary, folder);
  }

  /** @returns a file with all objects, for `-f`. */
  async write(name: string, objects: readonly ManifestObject[]): Promise<string> {
    const file = join(this.folder, `${name}.yaml`);
    await writeFile(file, objects.map((object) => stringifyJson(object)).join("\n---\n"));
    return file;
  }

  /** The number of requests of a command. This runs the command with a log of requests, which takes additional time. */
  async requestsOf(args: readonly string[], expected?: readonly number[]): Promise<number> {
    const { stderr } = await this.run([...args, "-v=6"], expected);
    return [...stderr.matchAll(/ verb="[A-Z]+" url="/g)].length;
  }

  /** @throws Error for an unexpected exit code. */
  async run(args: readonly string[], expected: readonly number[] = [0]): Promise<TimedRun> {
    const flags = [`--kubeconfig=${join(this.folder, "kubeconfig")}`, `--cache-dir=${join(this.folder, "cache")}`];
    const ended = await runTimed([this.#binary, ...flags, ...args], this.folder);
    if (!expected.includes(ended.code))
      throw new Error(`kubectl ${args[0]} ended with ${ended.code}: ${ended.stderr.slice(0, 1000)}`);
    return ended;
  }
}

/** Runs a program to its end. */
export async function runTimed(words: readonly string[], cwd: string): Promise<TimedRun> {
  // The shell's `times` is the simplest way to read a child's processor time. Its second line is about the children.
  const script = '"$0" "$@"; code=$?; times >&3; exit $code';
  const started = performance.now();
  const child = spawn("sh", ["-c", script, ...words], {
    stdio: ["ignore", "pipe", "pipe", "pipe"],
    cwd,
  });
  const [, out, err, clock] = child.stdio;
  const [stdout, stderr, times, code] = await Promise.all([
    read(out),
    read(err),
    read(clock),
    new Promise<number>((resolve, reject) => {
      child.on("error", reject);
      child.on("close", (exitCode) => resolve(exitCode ?? -1));
    }),
  ]);
  const ms = performance.now() - started;
  return { ms, cpuMs: childrenMs(times), code, stdout, stderr };
}

async function read(stream: Stream | null | undefined): Promise<string> {
  return stream instanceof Readable ? text(stream) : "";
}

/** Reads a second line such as `0m0.010s 0m0.000s`. */
function childrenMs(times: string): number {
  const [, children = ""] = times.split("\n");
  let ms = 0;
  for (const [, minutes = "0", seconds = "0"] of children.matchAll(/(\d+)m([\d.]+)s/g)) {
    ms += Number(minutes) * 60_000 + Number(seconds) * 1000;
  }
  return ms;
}
