import { mkdirSync } from "node:fs";
import { dirname, join } from "node:path";
import {
  defaultBounds,
  type ProcessBounds,
  ranOutOfMemory,
  runConfined,
} from "#shared/adapters/render/confined-process.ts";
import { foundOnce } from "#shared/adapters/render/layer-binary.ts";
import { makeScratchFolder, removeScratchFolder, writeTree } from "#shared/adapters/render/scratch-folder.ts";
import { StarlingError } from "#shared/base/errors.ts";
import type { HelmAnswer, HelmInput, HelmRunner } from "#shared/ports.ts";
import type { HelmRelease } from "#shared/source/helm/helm-release.ts";

export interface HelmTemplateOptions extends Partial<ProcessBounds> {
  /** Returns the path of helm; called at the first chart. */
  readonly helm: () => Promise<string>;
}

/** The limit of each rendering. All renderings together take less than the function's time. */
const timeoutSeconds = 30;
const remedy = "make the chart render less: check for a range or a text that grows with the values";
/** The part of that limit when upgrades are rendered, too. Then there are four renderings instead of three. */
const apartPart = 0.7;

/**
 * Runs `helm template` on the files of a chart that was checked before (see `readChart`). All input is in a folder of
 * its own that is removed afterwards. Helm has an empty PATH, no plugins, no credentials, no cluster, an unreachable
 * proxy, and limits of time, memory and output.
 */
export class HelmTemplate implements HelmRunner {
  readonly #bounds: ProcessBounds;
  readonly #helm: () => Promise<string>;

  constructor({ helm, ...bounds }: HelmTemplateOptions) {
    this.#bounds = { ...defaultBounds, timeoutSeconds, ...bounds };
    this.#helm = foundOnce(helm);
  }

  async template({ chart, instead, values, release, upgrade }: HelmInput): Promise<HelmAnswer> {
    const program = await this.#helm();
    const scratch = await makeScratchFolder("chart");
    const [folder, given, cwd] = [join(scratch, "chart"), join(scratch, "values"), join(scratch, "empty")];
    try {
      mkdirSync(cwd);
      writeTree(folder, chart);
      writeTree(given, new Map(values.map((text, index) => [fileOf(index), new TextEncoder().encode(text)])));
      const files = values.map((_text, index) => join(given, fileOf(index)));
      const named = [...flagsOf(release, files), "--", release.releaseName, folder];
      const isApart = upgrade === "apart";
      const timeout = isApart ? { timeoutSeconds: this.#bounds.timeoutSeconds * apartPart } : {};
      const install: Run = {
        program,
        args: ["template", ...named],
        cwd,
        folder,
        bounds: { ...this.#bounds, ...timeout },
      };
      const upgraded: Run = { ...install, args: ["template", "--is-upgrade", ...named] };
      const first = await this.#run(install);
      const after = isApart && !("refusal" in first) ? await this.#run(upgraded) : first;
      if ("refusal" in first) return first;
      if ("refusal" in after) return after;
      writeTree(folder, instead, "w");
      const second = await this.#run(install);
      if ("refusal" in second) return second;
      const outputs = [first.output, second.output] as const;
      if (after.output === first.output) return { outputs };
      const again = await this.#run(upgraded);
      return "refusal" in again ? again : { outputs, upgrade: [after.output, again.output] };
    } finally {
      removeScratchFolder(scratch);
    }
  }

  async #run({ folder, ...run }: Run): Promise<{ output: string } | { refusal: string }> {
    const end = await runConfined({ ...run, env: environmentIn(run.cwd), name: "helm", remedy, code: "HelmFailed" });
    if (end.status === 0) return { output: end.output };
    if (ranOutOfMemory(end)) throw failed(`helm ran out of memory; ${remedy}`, "permanent");
    // A signal says nothing about the chart, but that the machine lacked a resource.
    if (end.signal !== null) throw failed(`helm ended with ${end.signal}`, "transient");
    const said = end.errors.replaceAll(`${folder}/`, "").replaceAll(dirname(folder), "").trim();
    return { refusal: said === "" ? `helm ended with status ${end.status} and no message` : said };
  }
}

interface Run {
  readonly program: string;
  readonly args: readonly string[];
  /** An empty folder. */
  readonly cwd: string;
  /** The folder of the chart. */
  readonly folder: string;
  readonly bounds: ProcessBounds;
}

function flagsOf(release: HelmRelease, valuesFiles: readonly string[]): readonly string[] {
  const { namespace, crds, kubeVersion, apiVersions = [] } = release;
  return [
    "--color=never",
    `--namespace=${namespace}`,
    ...(crds === "Skip" ? ["--skip-crds"] : ["--include-crds"]),
    ...(kubeVersion === undefined ? [] : [`--kube-version=${kubeVersion}`]),
    ...(apiVersions.length === 0 ? [] : [`--api-versions=${apiVersions.join(",")}`]),
    ...valuesFiles.map((file) => `--values=${file}`),
  ];
}

function fileOf(index: number): string {
  return `${index}.yaml`;
}

/** Helm requires a home folder, which is empty here. */
function environmentIn(home: string): Readonly<Record<string, string>> {
  return {
    PATH: "",
    HOME: home,
    TMPDIR: home,
    TZ: "UTC",
    XDG_CONFIG_HOME: home,
    XDG_CACHE_HOME: home,
    XDG_DATA_HOME: home,
    HELM_CONFIG_HOME: home,
    HELM_CACHE_HOME: home,
    HELM_DATA_HOME: home,
    HELM_PLUGINS: home,
    HELM_NO_PLUGINS: "1",
    KUBECONFIG: "/dev/null",
    HTTP_PROXY: "http://127.0.0.1:9",
    HTTPS_PROXY: "http://127.0.0.1:9",
  };
}

function failed(message: string, retry: "transient" | "permanent"): StarlingError {
  return new StarlingError(message, { code: "HelmFailed", retry });
}
