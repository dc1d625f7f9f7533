import { spawn } from "node:child_process";
import { mkdir, rm, writeFile } from "node:fs/promises";
import { dirname, join, sep } from "node:path";
import { makeScratchFolder } from "#shared/adapters/render/scratch-folder.ts";
import { StarlingError } from "#shared/base/errors.ts";
import type { KustomizeRunner, RenderInput } from "#shared/ports.ts";
import { kustomizeInputs } from "#shared/source/kustomize/kustomize-inputs.ts";

export interface KubectlKustomizeOptions {
  /** Gives the path of kubectl; asked at the first build. */
  readonly kubectl: () => Promise<string>;
  readonly timeoutSeconds?: number;
  readonly maxOutputBytes?: number;
  /**
   * Memory that the child writes to. Its address space would say nothing: Go reserves about 1.5 GB of it and touches 50 MB.
   * Less than half of its function's, which holds the artifact and the output beside it.
   */
  readonly maxMemoryBytes?: number;
}

const mebibyte = 1024 ** 2;
const maxErrorLength = 2000;

/**
 * What the child sees, and nothing else. HOME and its like are places that cannot exist, rather than unset: kubectl then
 * takes `.kube/kuberc` of its working directory, and a preference can turn the load restrictor off, start programs and
 * write files. The same on every machine, so that no output depends on it.
 */
const environment = {
  PATH: "",
  HOME: "/dev/null",
  XDG_CONFIG_HOME: "/dev/null",
  XDG_CACHE_HOME: "/dev/null",
  XDG_DATA_HOME: "/dev/null",
  KUSTOMIZE_PLUGIN_HOME: "/dev/null",
  KUBECONFIG: "/dev/null",
  KUBERC: "off",
  KUBECTL_KUBERC: "false",
  HTTP_PROXY: "http://127.0.0.1:9",
  HTTPS_PROXY: "http://127.0.0.1:9",
};

/** The defaults, said aloud: what stands here wins over any preference. */
const strictness = [
  "--load-restrictor=LoadRestrictionsRootOnly",
  "--enable-alpha-plugins=false",
  "--enable-helm=false",
  "--network=false",
  "--output=",
];

/**
 * `kubectl kustomize` on the files of an artifact. The kustomization was checked before (see `kustomizeInputs`); on
 * top of that the child has an empty PATH, no home, no preferences, no credentials, a proxy that is not there, an empty
 * working directory, a folder with nothing but those files, and bounds on time, memory
 * and output.
 */
export class KubectlKustomize implements KustomizeRunner {
  readonly #options: Required<KubectlKustomizeOptions>;
  #kubectl: Promise<string> | undefined;

  constructor(options: KubectlKustomizeOptions) {
    this.#options = { timeoutSeconds: 60, maxOutputBytes: 64 * mebibyte, maxMemoryBytes: 768 * mebibyte, ...options };
  }

  /** @throws ManifestError `KustomizationRefused`; StarlingError `KustomizeFailed` with what kustomize said. */
  async build({ files, path }: RenderInput): Promise<string> {
    const inputs = kustomizeInputs(new Map(files.map((file) => [file.path, file])), path);
    const kubectl = await this.#locate();
    const scratch = await makeScratchFolder("render");
    const folder = join(scratch, "artifact");
    const cwd = join(scratch, "empty");
    try {
      await mkdir(cwd);
      for (const [name, content] of inputs) {
        const target = join(folder, name);
        if (!target.startsWith(folder + sep)) throw failed(`"${name}" leaves the artifact`, "permanent");
        await mkdir(dirname(target), { recursive: true });
        await writeFile(target, content, { flag: "wx" });
      }
      return await this.#run({ kubectl, folder, cwd, path });
    } finally {
      await rm(scratch, { recursive: true, force: true });
    }
  }

  /** A kubectl that could not be found is looked for again: a disk may have been full. */
  #locate(): Promise<string> {
    this.#kubectl ??= this.#options.kubectl().catch((error: unknown) => {
      this.#kubectl = undefined;
      throw error;
    });
    return this.#kubectl;
  }

  #run(build: Build): Promise<string> {
    const { timeoutSeconds, maxOutputBytes, maxMemoryBytes } = this.#options;
    const { kubectl, folder, cwd, path } = build;
    const limit = `ulimit -d ${Math.floor(maxMemoryBytes / 1024)} && exec "$0" "$@"`;
    const child = spawn("/bin/sh", ["-c", limit, kubectl, "kustomize", ...strictness, join(folder, path)], {
      cwd,
      // Collects garbage before the limit is met, and not at twice of what is in use.
      env: { ...environment, GOMEMLIMIT: `${Math.floor((maxMemoryBytes / mebibyte) * 0.8)}MiB` },
      // A group of its own: what it may have started ends with it.
      detached: true,
      stdio: ["ignore", "pipe", "pipe"],
    });
    return new Promise((resolve, reject) => {
      const output: Buffer[] = [];
      let size = 0;
      let errors = "";
      let stopped: StarlingError | undefined;
      const stop = (reason: StarlingError): void => {
        stopped ??= reason;
        killGroup(child.pid);
      };
      const timer = setTimeout(
        () => stop(failed(`kustomize took longer than ${timeoutSeconds} s`, "transient")),
        timeoutSeconds * 1000,
      );
      child.stdout.on("data", (chunk: Buffer) => {
        size += chunk.length;
        if (size > maxOutputBytes) stop(failed(`kustomize wrote more than ${maxOutputBytes} bytes`, "permanent"));
        else output.push(chunk);
      });
      child.stderr.on("data", (chunk: Buffer) => {
        if (errors.length < maxErrorLength * 4) errors += chunk.toString();
      });
      child.on("error", (error) => stop(failed(`kubectl could not be started: ${error.message}`, "transient")));
      child.on("exit", () => killGroup(child.pid));
      child.on("close", (status, signal) => {
        clearTimeout(timer);
        if (stopped !== undefined) reject(stopped);
        else if (status === 0) resolve(Buffer.concat(output).toString());
        // A signal is not kustomize's word about the input: the machine was short of something.
        else reject(failed(explain({ errors, folder, status, signal }), signal === null ? "permanent" : "transient"));
      });
    });
  }
}

interface Build {
  readonly kubectl: string;
  /** Of the artifact's files. */
  readonly folder: string;
  /** An empty folder elsewhere. */
  readonly cwd: string;
  readonly path: string;
}

/** The child and what it started; nothing when all of it is gone, or never was. */
function killGroup(pid: number | undefined): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, "SIGKILL");
  } catch {
    // It is over.
  }
}

function explain(end: {
  readonly errors: string;
  readonly folder: string;
  readonly status: number | null;
  readonly signal: string | null;
}): string {
  if (/out of memory|cannot allocate memory/.test(end.errors))
    return "kustomize ran out of memory; make the build smaller";
  const said = end.errors
    .replaceAll(`${end.folder}/`, "")
    .replaceAll(end.folder, ".")
    .replace(/^error: /, "")
    .trim();
  if (said === "") return `kustomize ended with ${end.signal ?? `status ${end.status}`} and said nothing`;
  return `kustomize: ${said.slice(0, maxErrorLength)}`;
}

function failed(message: string, retry: "transient" | "permanent"): StarlingError {
  return new StarlingError(message, { code: "KustomizeFailed", retry });
}
