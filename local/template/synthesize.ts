import { execFile } from "node:child_process";
import { createHash, randomUUID } from "node:crypto";
import { mkdir, mkdtemp, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import type { Stacks, Template } from "#local/template/cloudformation.ts";

const repository = fileURLToPath(new URL("../..", import.meta.url));
const appFile = "infra/bin/starling.ts";
const cacheFolder = join(repository, "node_modules/.cache/starling");
const templateSuffix = ".template.json";

const run = promisify(execFile);
const synthesizing = new Map<string, Promise<Stacks>>();

/**
 * The templates of the CDK app, as `cdk synth` makes them, but without the functions' bundles. They take seconds in
 * another process, so they are cached below node_modules/.cache until the app's sources change. @param context - the
 * context of the app in addition to cdk.json: see infra/starling-app.ts. @throws Error with the app's own message when
 * it does not synthesize.
 */
export function synthesize(context: Readonly<Record<string, string>> = {}): Promise<Stacks> {
  const key = JSON.stringify(context);
  const known = synthesizing.get(key);
  if (known !== undefined) return known;
  const made = cached(context);
  synthesizing.set(key, made);
  made.catch(() => synthesizing.delete(key));
  return made;
}

async function cached(context: Readonly<Record<string, string>>): Promise<Stacks> {
  const file = join(cacheFolder, `templates-${await digestOf(context)}.json`);
  const kept = await readStacks(file);
  if (kept !== undefined) return kept;
  const stacks = await runApp(context);
  await keep(file, stacks);
  return stacks;
}

/** A digest of everything that the templates depend on. */
async function digestOf(context: Readonly<Record<string, string>>): Promise<string> {
  const hash = createHash("sha256").update(JSON.stringify(context));
  for (const file of ["cdk.json", "package-lock.json"]) hash.update(await readFile(join(repository, file)));
  for (const [file, text] of [...(await sourcesOf(appFile))].sort()) hash.update(`${file}\n${text}\n`);
  return hash.digest("hex").slice(0, 32);
}

/** The texts of a source file and of all files of this repository that it imports. */
async function sourcesOf(file: string, texts = new Map<string, string>()): Promise<ReadonlyMap<string, string>> {
  if (texts.has(file)) return texts;
  const text = await readFile(join(repository, file), "utf8");
  texts.set(file, text);
  for (const [, imported = ""] of text.matchAll(/from "#([^"]+)"/g)) await sourcesOf(imported, texts);
  return texts;
}

async function readStacks(file: string): Promise<Stacks | undefined> {
  try {
    return JSON.parse(await readFile(file, "utf8")) as Stacks;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}

/** Writes the cache in one step, so that readers see all of it or nothing. */
async function keep(file: string, stacks: Stacks): Promise<void> {
  const draft = `${file}.${randomUUID()}`;
  try {
    await mkdir(cacheFolder, { recursive: true });
    await writeFile(draft, JSON.stringify(stacks));
    await rename(draft, file);
  } catch (error) {
    // If the folder of the dependencies is read-only, each process synthesizes again.
    if (!["EACCES", "EPERM", "EROFS"].includes((error as NodeJS.ErrnoException).code ?? "")) throw error;
  }
}

async function runApp(context: Readonly<Record<string, string>>): Promise<Stacks> {
  const { app, context: own } = JSON.parse(await readFile(join(repository, "cdk.json"), "utf8")) as {
    readonly app: string;
    readonly context: Readonly<Record<string, unknown>>;
  };
  const outdir = await mkdtemp(join(tmpdir(), "starling-synth-"));
  try {
    const [program = "", ...args] = app.split(" ");
    await run(join(repository, program), args, {
      cwd: repository,
      // The protocol between the CDK's command line and an app.
      env: {
        CDK_OUTDIR: outdir,
        CDK_CONTEXT_JSON: JSON.stringify({ ...own, ...context, "aws:cdk:bundling-stacks": [] }),
      },
    });
    const files = (await readdir(outdir)).filter((name) => name.endsWith(templateSuffix));
    const templates = files.map(async (name) => {
      const template = JSON.parse(await readFile(join(outdir, name), "utf8")) as Template;
      return [name.slice(0, -templateSuffix.length), template] as const;
    });
    return Object.fromEntries(await Promise.all(templates));
  } finally {
    await rm(outdir, { recursive: true, force: true });
  }
}
