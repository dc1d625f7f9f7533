import {
  closeSync,
  constants,
  existsSync,
  fstatSync,
  ftruncateSync,
  mkdtempSync,
  openSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** The purpose of the scratch folder for spare files. */
export const sparePurpose = "spare";

/** A kustomization or a chart has a few hundred files. Files above this limit are deleted and created again. */
const maxSpare = 2000;

/**
 * Keeps used files, emptied, for the next files. ext4 does not reuse the inode of a file that was deleted within the
 * last minutes, and checks all of these for each new file: after two thousand deletions, a new file takes 0.3 ms
 * instead of 0.02 ms. A sandbox that renders a folder for a whole fleet would do little else.
 */
export class SpareFiles {
  #folder: string | undefined;
  /** The names of the existing spare files. */
  readonly #names: string[] = [];
  #given = 0;

  get hasRoom(): boolean {
    return this.#names.length < maxSpare;
  }

  /** Turns a spare file into the file `target`, which must not exist. @returns false when that failed. */
  take(target: string, content: Uint8Array): boolean {
    const name = this.#names.pop();
    if (name === undefined || this.#folder === undefined || existsSync(target)) return false;
    const spare = join(this.#folder, name);
    try {
      withOpen(spare, (file) => writeFileSync(file, content));
      renameSync(spare, target);
      return true;
    } catch {
      // The spare folder was cleaned, or is on another disk than the target. Writing a new file then reports any real
      // problem.
      rmSync(spare, { force: true });
      return false;
    }
  }

  /**
   * Empties a file, and moves it to the spare folder. An entry that is not a regular file, or cannot be written, stays.
   */
  give(path: string): void {
    const name = String(this.#given++);
    try {
      // It is emptied first, so that the spare folder never contains rendered content.
      if (!withOpen(path, emptied)) return;
      renameSync(path, join(this.#makeFolder(), name));
      this.#names.push(name);
    } catch {
      // The file is removed with its folder.
    }
  }

  #makeFolder(): string {
    if (this.#folder !== undefined) return this.#folder;
    const folder = mkdtempSync(join(tmpdir(), `starling-${sparePurpose}-${process.pid}-`));
    process.once("exit", () => rmSync(folder, { recursive: true, force: true }));
    this.#folder = folder;
    return folder;
  }
}

/** A program that processed a repository alone may have put a link there, which is not followed. */
function withOpen<Result>(path: string, work: (file: number) => Result): Result {
  const file = openSync(path, constants.O_WRONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  try {
    return work(file);
  } finally {
    closeSync(file);
  }
}

/** Not for a file with a second hard link, through which someone could read the next content. */
function emptied(file: number): boolean {
  const known = fstatSync(file);
  if (!known.isFile() || known.nlink !== 1) return false;
  ftruncateSync(file, 0);
  return true;
}
