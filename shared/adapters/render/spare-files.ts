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

/** What scratch folders of this purpose are for. */
export const sparePurpose = "spare";

/** A kustomization or a chart is a few hundred files; what is above that is deleted, and made anew. */
const maxSpare = 2000;

/**
 * Files that were used before and are empty now, for those that are written next. ext4 gives the inode of a file that was
 * deleted within the last minutes to no other, and for each file that is made it looks at all of them: after two thousand
 * deletions a file takes 0.3 ms and not 0.02. A sandbox that renders a folder for a fleet would do nothing else.
 */
export class SpareFiles {
  #folder: string | undefined;
  /** Of those that are there. */
  readonly #names: string[] = [];
  #given = 0;

  get hasRoom(): boolean {
    return this.#names.length < maxSpare;
  }

  /** Makes one of them the file `target`, which must not be there. @returns false where it did not come to be. */
  take(target: string, content: Uint8Array): boolean {
    const name = this.#names.pop();
    if (name === undefined || this.#folder === undefined || existsSync(target)) return false;
    const spare = join(this.#folder, name);
    try {
      withOpen(spare, (file) => writeFileSync(file, content));
      renameSync(spare, target);
      return true;
    } catch {
      // Somebody cleans up this folder, or it is on another disk than the target: a new file says what is wrong, if anything.
      rmSync(spare, { force: true });
      return false;
    }
  }

  /** Empties a file, and takes it away from where it is. What is no file, or cannot be written, stays. */
  give(path: string): void {
    const name = String(this.#given++);
    try {
      // Emptied first: nothing of what was rendered is in the folder at any time.
      if (!withOpen(path, emptied)) return;
      renameSync(path, join(this.#makeFolder(), name));
      this.#names.push(name);
    } catch {
      // Whoever removes its folder removes it.
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

/** A program that a repository has to itself may have put a link there: it is not followed. */
function withOpen<Result>(path: string, work: (file: number) => Result): Result {
  const file = openSync(path, constants.O_WRONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  try {
    return work(file);
  } finally {
    closeSync(file);
  }
}

/** Not where it is known by another name, too: who has that would read what is written next. */
function emptied(file: number): boolean {
  const known = fstatSync(file);
  if (!known.isFile() || known.nlink !== 1) return false;
  ftruncateSync(file, 0);
  return true;
}
