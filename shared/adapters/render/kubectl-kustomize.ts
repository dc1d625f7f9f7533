import { mkdirSync } from "node:fs";
import { join } from "node:path";
import {
  defaultBounds,
  maxErrorLength,
  type ProcessBounds,
  type ProcessEnd,
  ranOutOfMemory,
  runConfined,
} from "#shared/adapters/render/confined-process.ts";
import { foundOnce } from "#shared/adapters/render/layer-binary.ts";
import { makeScratchFolder, removeScratchFolder, writeTree } from "#shared/adapters/render/scratch-folder.ts";
import { StarlingError } from "#shared/base/errors.ts";
import { plainText } from "#shared/base/plain-text.ts";
import type { KustomizeRunner, RenderInput } from "#shared/ports.ts";
import { componentAlone, isComponent } from "#shared/source/kustomization.ts";
import { type KustomizeInputs, kustomizeInputs, maxLoadedBytes } from "#shared/source/kustomize/kustomize-inputs.ts";
import { kustomizeMessage } from "#shared/source/kustomize/kustomize-message.ts";
import { kustomizeRemedy } from "#shared/source/kustomize/kustomize-remedy.ts";
import { kustomizationRefused } from "#shared/source/kustomize/kustomize-scope.ts";

export interface KubectlKustomizeOptions extends Partial<ProcessBounds> {
  /** Returns the path of kubectl; called at the first build. */
  readonly kubectl: () => Promise<string>;
}

/**
 * The child's complete environment. HOME and similar variables are set to impossible places instead of being unset.
 * Without them, kubectl would read `.kube/kuberc` of its working directory, and a preference there can turn off the
 * load restrictor, start programs and write files. The environment is the same on every machine, so that no output
 * depends on it.
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

const remedy = "make the build smaller";

/** The defaults, written explicitly, so that they override any preference. */
const strictness = [
  "--load-restrictor=LoadRestrictionsRootOnly",
  "--enable-alpha-plugins=false",
  "--enable-helm=false",
  "--network=false",
  "--output=",
];

/**
 * Runs `kubectl kustomize` on the files of an artifact. The kustomization was checked before (see `kustomizeInputs`).
 * In addition, the child has an empty PATH, no home, no preferences, no credentials, an unreachable proxy, an empty
 * working directory, a folder with only those files, and limits of time, memory and output.
 */
export class KubectlKustomize implements KustomizeRunner {
  readonly #bounds: ProcessBounds;
  readonly #kubectl: () => Promise<string>;

  constructor({ kubectl, ...bounds }: KubectlKustomizeOptions) {
    this.#bounds = { ...defaultBounds, ...bounds };
    this.#kubectl = foundOnce(kubectl);
  }

  /** @throws ManifestError `KustomizationRefused`; StarlingError `KustomizeFailed` with kustomize's message. */
  async build({ files, path, inflate }: RenderInput): Promise<string> {
    const byPath = new Map(files.map((file) => [file.path, file]));
    const inputs = kustomizeInputs(byPath, path);
    const objects = await objectsOf(inputs, inflate);
    const kubectl = await this.#kubectl();
    const scratch = await makeScratchFolder("render");
    const folder = join(scratch, "artifact");
    const cwd = join(scratch, "empty");
    try {
      mkdirSync(cwd);
      const written = new Map([...inputs.files, ...objects]);
      writeTree(folder, written);
      const instead = isComponent(byPath, path) ? `; ${componentAlone}` : undefined;
      return await this.#run({ kubectl, folder, written, cwd, path, instead });
    } finally {
      removeScratchFolder(scratch);
    }
  }

  async #run({ kubectl, folder, written, cwd, path, instead }: Build): Promise<string> {
    const end = await runConfined({
      program: kubectl,
      args: ["kustomize", ...strictness, join(folder, path)],
      cwd,
      env: environment,
      bounds: this.#bounds,
      name: `${path}: kustomize`,
      remedy,
      code: "KustomizeFailed",
    });
    if (end.status === 0) return end.output;
    // A signal says nothing about the input, but that the machine lacked a resource.
    const said = explain(end, { folder, written });
    throw failed(
      `${path}: ${said}${instead ?? kustomizeRemedy(said)}`,
      end.signal === null ? "permanent" : "transient",
    );
  }
}

/** The objects of the charts, by path. The charts are rendered one after the other, each within the limits of one. */
async function objectsOf(
  { charts }: KustomizeInputs,
  inflate: RenderInput["inflate"],
): Promise<ReadonlyMap<string, Uint8Array>> {
  const objects = new Map<string, Uint8Array>();
  let bytes = 0;
  for (const chart of charts) {
    if (inflate === undefined) throw kustomizationRefused(chart, "inflates a chart, but Helm is not available here");
    const content = new TextEncoder().encode(await inflate(chart));
    bytes += content.length;
    if (bytes > maxLoadedBytes) {
      throw kustomizationRefused(
        chart,
        `renders, together with the charts before it, to more than ${maxLoadedBytes} bytes, the most that kustomize has memory for; render some of the charts by templates of their own`,
      );
    }
    objects.set(chart.output, content);
  }
  return objects;
}

interface Build {
  readonly kubectl: string;
  /** The folder of the artifact's files. */
  readonly folder: string;
  readonly written: ReadonlyMap<string, Uint8Array>;
  /** An empty folder at another place. */
  readonly cwd: string;
  readonly path: string;
  /** A remedy that replaces all others. */
  readonly instead: string | undefined;
}

function explain(end: ProcessEnd, { folder, written }: Pick<Build, "folder" | "written">): string {
  if (ranOutOfMemory(end)) return `kustomize ran out of memory; ${remedy}`;
  const own = end.errors
    .replaceAll(`${folder}/`, "")
    .replaceAll(folder, ".")
    .replaceAll(/^# Warning: .*\n?/gm, "")
    .replace(/^error: /, "");
  const [panicked] = /^panic: .*/.exec(own) ?? [];
  const said = kustomizeMessage((panicked ?? own).trim(), written);
  if (panicked !== undefined) return `kustomize crashed: ${plainText(said.slice(0, maxErrorLength))}`;
  if (said === "") return `kustomize ended with ${end.signal ?? `status ${end.status}`} and no message`;
  return `kustomize: ${plainText(said.slice(0, maxErrorLength))}`;
}

function failed(message: string, retry: "transient" | "permanent"): StarlingError {
  return new StarlingError(message, { code: "KustomizeFailed", retry });
}
