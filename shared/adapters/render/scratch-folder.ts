import { existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join, sep } from "node:path";
import { isMainThread } from "node:worker_threads";
import { SpareFiles, sparePurpose } from "#shared/adapters/render/spare-files.ts";
import { StarlingError } from "#shared/base/errors.ts";
import { excerpt } from "#shared/base/excerpt.ts";

/** By purpose: the removal of folders of killed processes, done once before this process makes its first folder. */
const swept = new Map<string, Promise<void>>();

/** The spare files of this process. */
const spare = new SpareFiles();

/**
 * A new, empty folder for one piece of work. Its user removes it with `removeScratchFolder`. A killed process cannot do
 * that, and on Lambda the next invocation in the same sandbox would find the folders with what another tenant rendered.
 * The folder's name contains the process id, so that no process removes the folders of another one.
 */
export async function makeScratchFolder(purpose: string): Promise<string> {
  const parent = tmpdir();
  for (const one of [purpose, sparePurpose]) {
    const sweeping = swept.get(one) ?? sweep(parent, one);
    swept.set(one, sweeping);
    await sweeping;
  }
  return mkdtemp(join(parent, `starling-${purpose}-${process.pid}-`));
}

/** Removes the folder with everything in it. Its files are emptied and kept for later. */
export function removeScratchFolder(folder: string): void {
  const entries = existsSync(folder) ? readdirSync(folder, { recursive: true, withFileTypes: true }) : [];
  for (const entry of entries) {
    if (!spare.hasRoom) break;
    if (entry.isFile()) spare.give(join(entry.parentPath, entry.name));
  }
  rmSync(folder, { recursive: true, force: true });
}

async function sweep(parent: string, purpose: string): Promise<void> {
  const prefix = `starling-${purpose}-`;
  const names = await readdir(parent).catch(() => []);
  for (const name of names) {
    const pid = name.startsWith(prefix) ? /^(\d+)-/.exec(name.slice(prefix.length))?.[1] : undefined;
    if (pid === undefined || isInUse(Number(pid))) continue;
    // The folder belongs to another user, or another process removed it first.
    await rm(join(parent, name), { recursive: true, force: true }).catch(() => {});
  }
}

/**
 * Process ids are reused, on Lambda often the same id. A folder with this process's id comes from an earlier process.
 */
function isInUse(pid: number): boolean {
  if (pid === process.pid) return !isMainThread;
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== "ESRCH";
  }
}

/** Linux' limit of a name, and a limit of a path that leaves space for the folder before it. */
const maxNameBytes = 255;
const maxPathBytes = 3000;

/**
 * Writes files below their own folder. With the flag `wx`, each must be new. It is synchronous, because on a thread of
 * the pool each small file waits for its turn eight times as long as it takes.
 * @throws StarlingError `PathRefused` for a name that leads out of the folder, is too long, or is both a file and a
 * folder.
 */
export function writeTree(folder: string, files: ReadonlyMap<string, Uint8Array>, flag: "w" | "wx" = "wx"): void {
  const targets = [...files].map(([name, content]) => ({ target: join(folder, name), name, content }));
  for (const { target, name } of targets) {
    const problem = target.startsWith(folder + sep) ? nameProblem(name, files) : "leads out of the artifact";
    if (problem === undefined) continue;
    throw new StarlingError(`"${excerpt(name)}" ${problem}`, { code: "PathRefused", retry: "permanent" });
  }
  for (const parent of new Set(targets.map(({ target }) => dirname(target)))) mkdirSync(parent, { recursive: true });
  for (const { target, content } of targets) {
    if (flag === "wx" && spare.take(target, content)) continue;
    writeFileSync(target, content, { flag });
  }
}

function nameProblem(name: string, files: ReadonlyMap<string, Uint8Array>): string | undefined {
  const parts = name.split("/");
  if (parts.some((part) => Buffer.byteLength(part) > maxNameBytes))
    return `has a part of more than ${maxNameBytes} bytes, more than a file name may have; rename it`;
  if (Buffer.byteLength(name) > maxPathBytes)
    return `has more than ${maxPathBytes} bytes; give its folders shorter names`;
  const folders = parts.slice(1).map((_, index) => parts.slice(0, index + 1).join("/"));
  const both = folders.find((path) => files.has(path));
  return both === undefined ? undefined : `is in "${excerpt(both)}", which is a file, too; rename one of them`;
}
