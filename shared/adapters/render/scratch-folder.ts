import { existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join, sep } from "node:path";
import { isMainThread } from "node:worker_threads";
import { SpareFiles, sparePurpose } from "#shared/adapters/render/spare-files.ts";
import { StarlingError } from "#shared/base/errors.ts";
import { excerpt } from "#shared/base/excerpt.ts";

/** By purpose: what a process that was killed has left is removed once, before the first of this process is made. */
const swept = new Map<string, Promise<void>>();

/** Of this process. */
const spare = new SpareFiles();

/**
 * A new, empty folder for one piece of work; whoever makes it removes it by `removeScratchFolder`. A process that is killed cannot: on Lambda its
 * folders, with what another tenant rendered, would be there for the next one in the same sandbox. Its id is in their
 * names, so that of many processes on one machine none takes away what another one uses.
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

/** Removes it with all that is in it; of the files, empty, others are made. */
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
    // Another user's, or somebody was faster: it is not in the way.
    await rm(join(parent, name), { recursive: true, force: true }).catch(() => {});
  }
}

/** Process ids come again, on Lambda often the same one: what has this one's was made by one before it. */
function isInUse(pid: number): boolean {
  if (pid === process.pid) return !isMainThread;
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== "ESRCH";
  }
}

/** What Linux takes of a name, and of a path with what is before it. */
const maxNameBytes = 255;
const maxPathBytes = 3000;

/**
 * Writes files below a folder of its own; a flag of `wx` has each be a new one. It returns when all are written: on a thread
 * of the pool each small file waits eight times as long for its turn as it takes.
 * @throws StarlingError `PathRefused` for a name that leaves it, that is too long, or that is a file and a folder.
 */
export function writeTree(folder: string, files: ReadonlyMap<string, Uint8Array>, flag: "w" | "wx" = "wx"): void {
  const targets = [...files].map(([name, content]) => ({ target: join(folder, name), name, content }));
  for (const { target, name } of targets) {
    const problem = target.startsWith(folder + sep) ? nameProblem(name, files) : "leaves the artifact";
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
    return `has a part of more than ${maxNameBytes} bytes, which no file is called by; rename it`;
  if (Buffer.byteLength(name) > maxPathBytes)
    return `has more than ${maxPathBytes} bytes; give its folders shorter names`;
  const folders = parts.slice(1).map((_, index) => parts.slice(0, index + 1).join("/"));
  const both = folders.find((path) => files.has(path));
  return both === undefined ? undefined : `is in "${excerpt(both)}", which is a file, too; rename one of them`;
}
