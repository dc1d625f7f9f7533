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
  /** Gives the path of kubectl; asked at the first build. */
  readonly kubectl: () => Promise<string>;
}

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

const remedy = "make the build smaller";

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
  readonly #bounds: ProcessBounds;
  readonly #kubectl: () => Promise<string>;

  constructor({ kubectl, ...bounds }: KubectlKustomizeOptions) {
    this.#bounds = { ...defaultBounds, ...bounds };
    this.#kubectl = foundOnce(kubectl);
  }

  /** @throws ManifestError `KustomizationRefused`; StarlingError `KustomizeFailed` with what kustomize said. */
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
    // A signal is not kustomize's word about the input: the machine was short of something.
    const said = explain(end, { folder, written });
    throw failed(
      `${path}: ${said}${instead ?? kustomizeRemedy(said)}`,
      end.signal === null ? "permanent" : "transient",
    );
  }
}

/** Of the charts, by path: one after the other, each within the bounds of one. */
async function objectsOf(
  { charts }: KustomizeInputs,
  inflate: RenderInput["inflate"],
): Promise<ReadonlyMap<string, Uint8Array>> {
  const objects = new Map<string, Uint8Array>();
  let bytes = 0;
  for (const chart of charts) {
    if (inflate === undefined) throw kustomizationRefused(chart, "inflates a chart, and there is no Helm here");
    const content = new TextEncoder().encode(await inflate(chart));
    bytes += content.length;
    if (bytes > maxLoadedBytes) {
      throw kustomizationRefused(
        chart,
        `comes, with those before it, to more than ${maxLoadedBytes} bytes, which kustomize cannot hold; use templates of their own`,
      );
    }
    objects.set(chart.output, content);
  }
  return objects;
}

interface Build {
  readonly kubectl: string;
  /** Of the artifact's files. */
  readonly folder: string;
  readonly written: ReadonlyMap<string, Uint8Array>;
  /** An empty folder elsewhere. */
  readonly cwd: string;
  readonly path: string;
  /** What to do whatever is wrong. */
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
  if (panicked !== undefined) return `kustomize broke down: ${plainText(said.slice(0, maxErrorLength))}`;
  if (said === "") return `kustomize ended with ${end.signal ?? `status ${end.status}`} and said nothing`;
  return `kustomize: ${plainText(said.slice(0, maxErrorLength))}`;
}

function failed(message: string, retry: "transient" | "permanent"): StarlingError {
  return new StarlingError(message, { code: "KustomizeFailed", retry });
}
