import { execFile } from "node:child_process";
import { cpSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { promisify } from "node:util";
import { mutatedFile, type RunMutant } from "#test/nightly/mutants/mutant-text.ts";

const run = promisify(execFile);
const copied = ["functions", "shared", "package.json", "tsconfig.json"];
const maxOutputBytes = 64 * 1024 * 1024;

/**
 * Finds the living mutants that `npm run types` refuses, because nobody could land one. Each mutant becomes a file of its
 * own beside its original, so that one run of the compiler judges them all.
 */
export async function refusedByTypes(mutants: readonly RunMutant[], root: string): Promise<ReadonlySet<RunMutant>> {
  if (mutants.length === 0) return new Set();
  const folder = join(root, ".starling", "mutants", "types");
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  for (const name of copied) cpSync(join(root, name), join(folder, name), { recursive: true });
  symlinkSync(join(root, "node_modules"), join(folder, "node_modules"));
  const files = mutants.map((mutant, index) => {
    const file = relative(root, mutant.fileName).replace(/\.ts$/, `.mutant-${index}.ts`);
    writeFileSync(join(folder, file), mutatedFile(mutant));
    return file;
  });
  writeFileSync(join(folder, "mutants.json"), JSON.stringify({ extends: "./tsconfig.json", include: files }));
  const errors = await compilerErrors(folder);
  const strange = errors.filter((error) => !/^[^(]+\.mutant-\d+\.ts\(/.test(error));
  if (strange.length > 0) throw new Error(`the sources do not compile as they are: ${strange[0]}`);
  return new Set(mutants.filter((_, index) => errors.some((error) => error.startsWith(`${files[index]}(`))));
}

async function compilerErrors(folder: string): Promise<readonly string[]> {
  const compiler = join(folder, "node_modules", ".bin", "tsc");
  try {
    await run(compiler, ["--noEmit", "-p", "mutants.json"], { cwd: folder, maxBuffer: maxOutputBytes });
    return [];
  } catch (error) {
    const { stdout = "" } = error as { readonly stdout?: string };
    const errors = stdout.split("\n").filter((line) => line.includes(": error TS"));
    // Without such a line the compiler did not even start.
    if (errors.length === 0) throw error;
    return errors;
  }
}
