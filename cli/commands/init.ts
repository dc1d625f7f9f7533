import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, relative, resolve } from "node:path";
import { CliFailure, type ExitReason, usageFailure } from "#cli/session/failure.ts";
import type { Session } from "#cli/session/session.ts";
import { nameSchema } from "#shared/fleet/kinds/metadata.ts";
import { partPath } from "#shared/fleet/kinds/source.ts";
import { checkGitUrl } from "#shared/source/git-url.ts";

const files = ["source.yaml", "clusters.yaml", "sync-group.yaml"] as const;
const examples = new URL("../../examples/fleet/", import.meta.url);

export interface InitOptions {
  readonly source?: string;
  readonly path?: string;
}

/** Writes the example fleet with the caller's repository, folder and namespace. Nothing that is there is overwritten. */
export async function init(session: Session, folder: string | undefined, options: InitOptions): Promise<ExitReason> {
  const namespace = session.options.namespace ?? "shop";
  checkArguments(namespace, options);
  const target = resolve(session.io.cwd, folder ?? "starling");
  const present = files.map((file) => join(target, file)).filter((file) => existsSync(file));
  if (present.length > 0) {
    const names = present.map((file) => relative(session.io.cwd, file)).join(", ");
    throw new CliFailure(`${names} is there already, and init overwrites nothing`, {
      exit: "wrongInput",
      next: "starling init OTHER-FOLDER",
    });
  }
  mkdirSync(target, { recursive: true });
  const shown = relative(session.io.cwd, target) || ".";
  for (const file of files) {
    writeFileSync(join(target, file), adapted(readFileSync(new URL(file, examples), "utf8"), { namespace, options }));
    session.io.out(`${join(shown, file)} written\n`);
  }
  session.note(`
Next:
  1. name your clusters in ${join(shown, "clusters.yaml")}, by their ARNs, or by an address and a secret that holds it and a token
  2. ${options.source === undefined ? `name your repository in ${join(shown, "source.yaml")}` : `see that ${join(shown, "sync-group.yaml")} names the folder you want`}
  3. starling validate -f ${shown}
  4. starling apply -f ${shown}
  5. starling rollout status shop -n ${namespace} -w`);
  return "done";
}

function checkArguments(namespace: string, options: InitOptions): void {
  const name = nameSchema.safeParse(namespace);
  if (!name.success)
    throw usageFailure(`-n is "${namespace}"; it ${name.error.issues[0]?.message}`, "starling init -n NAME");
  const url = options.source === undefined ? undefined : checkGitUrl(options.source);
  if (url !== undefined) throw usageFailure(`--source ${url}`, "starling init --source https://HOST/PATH");
  const path = options.path === undefined ? undefined : partPath.safeParse(options.path);
  if (path?.success === false)
    throw usageFailure(`--path ${path.error.issues[0]?.message}`, "starling init --path deploy");
}

function adapted(text: string, { namespace, options }: { namespace: string; options: InitOptions }): string {
  let adapted = text.replaceAll(/^ {2}namespace: shop$/gm, `  namespace: ${namespace}`);
  if (options.source !== undefined)
    adapted = adapted.replace(/^( {4}url: ).*$/m, `$1${JSON.stringify(options.source)}`);
  if (options.path !== undefined) {
    const path = JSON.stringify(options.path);
    adapted = adapted.replace(/^( {2}paths: ).*$/m, `$1[${path}]`).replace(/^( {6}path: ).*$/m, `$1${path}`);
  }
  return adapted;
}
