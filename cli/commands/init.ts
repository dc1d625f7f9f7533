import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, relative, resolve } from "node:path";
import { serialise } from "#cli/format/serialise.ts";
import { CliFailure, type ExitReason, usageFailure } from "#cli/session/failure.ts";
import type { Session } from "#cli/session/session.ts";
import { everySchema } from "#shared/fleet/kinds/described-schema.ts";
import { partPath } from "#shared/fleet/kinds/part-path.ts";
import { checkGitUrl } from "#shared/source/git-url.ts";

const files = ["source.yaml", "clusters.yaml", "sync-group.yaml"] as const;
const schemaFile = "starling.schema.json";
/** A comment for YAML language servers. Its path is relative to the file. */
const schemaLine = `# yaml-language-server: $schema=./${schemaFile}\n`;
const examples = new URL("../../examples/fleet/", import.meta.url);

export interface InitOptions {
  readonly source?: string;
  readonly path?: string;
  readonly local?: boolean;
}

/** Writes the example fleet with the caller's repository, folder and namespace. Overwrites no file. */
export async function init(session: Session, folder: string | undefined, options: InitOptions): Promise<ExitReason> {
  const namespace = session.options.namespace ?? "shop";
  checkArguments(options);
  const texts = files.map((file): [string, string] => [
    file,
    adapted(readFileSync(new URL(file, examples), "utf8"), { namespace, options }),
  ]);
  const shown = writeDocuments(session, folder, new Map(texts));
  session.note(`
Next:
  1. enter your clusters in ${join(shown, "clusters.yaml")}: ARNs of EKS clusters, or an address and a secret with the address and a token
  2. ${options.source === undefined ? `enter your repository in ${join(shown, "source.yaml")}` : `check the folder in ${join(shown, "sync-group.yaml")}`}
  3. starling validate -f ${shown}
  4. starling apply -f ${shown}
  5. starling rollout status shop -n ${namespace} -w`);
  return "done";
}

/**
 * Writes documents into a folder, each with a line for editors, and the schema that the line names.
 * @param texts - by file name. @returns the folder, relative to the working folder.
 * @throws CliFailure when one of the files exists.
 */
export function writeDocuments(
  session: Session,
  folder: string | undefined,
  texts: ReadonlyMap<string, string>,
): string {
  const target = resolve(session.io.cwd, folder ?? "starling");
  const present = [...texts.keys(), schemaFile].map((file) => join(target, file)).filter((file) => existsSync(file));
  if (present.length > 0) {
    const names = present.map((file) => relative(session.io.cwd, file)).join(", ");
    throw new CliFailure(`init overwrites no file; existing: ${names}`, {
      exit: "wrongInput",
      next: "starling init OTHER-FOLDER",
    });
  }
  mkdirSync(target, { recursive: true });
  const shown = relative(session.io.cwd, target) || ".";
  for (const [file, text] of texts) {
    writeFileSync(join(target, file), `${schemaLine}${text}`);
    session.io.out(`${join(shown, file)} written\n`);
  }
  writeFileSync(join(target, schemaFile), serialise(everySchema(), "json"));
  session.io.out(`${join(shown, schemaFile)} written; editors use it to complete and explain fields\n`);
  return shown;
}

function checkArguments(options: InitOptions): void {
  const url = options.source === undefined ? undefined : sourceProblem(options.source);
  if (url !== undefined) throw usageFailure(`--source ${url}`, "starling init --source https://HOST/PATH");
  const path = options.path === undefined ? undefined : partPath.safeParse(options.path);
  if (path?.success === false)
    throw usageFailure(`--path ${path.error.issues[0]?.message}`, "starling init --path deploy");
}

/** A folder that was just written passes `starling validate`, and the name of a secret is not known here. */
function sourceProblem(text: string): string | undefined {
  const isSsh = text.startsWith("ssh:") && checkGitUrl(text) === undefined;
  return isSsh
    ? "is an SSH address, which needs spec.git.credentials; start without --source, and write both into the Source"
    : checkGitUrl(text);
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
