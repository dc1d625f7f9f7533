import type { UploadPack } from "#shared/adapters/git/fetch-pack.ts";
import { type GitLimits, gitTooLarge, splitRepository } from "#shared/adapters/git/git-limits.ts";
import { PackObjects } from "#shared/adapters/git/pack-objects.ts";
import type { ObjectType, PackReading } from "#shared/adapters/git/pack-scan.ts";
import { missingFiles } from "#shared/adapters/git/read-files.ts";
import { errorCode } from "#shared/base/errors.ts";
import { inParts } from "#shared/base/in-parts.ts";

export interface DesiredPart {
  /** The commit, or an annotated tag of it. */
  readonly oid: string;
  readonly paths: readonly string[];
  readonly ignore: string | undefined;
  readonly reading: PackReading;
  /** Id of the tree of the commit to which `oid` leads. */
  treeIn(objects: FetchedObjects): Promise<string>;
}

/** The files `.sourceignore`, and a link to a link, three times. More of them are rare, and a whole commit has them all. */
const maxRounds = 5;
/** A want has 50 bytes, and a proxy may take no more than 1 MB. */
const idsAtOnce = 10_000;

/**
 * Fetches a commit with all its trees, but only with the files below `paths` and those to which links lead from there.
 * @returns undefined when only the whole commit has what is needed: the server gives no object by its id, or links lead
 * through too many others.
 */
export async function fetchPart(
  remote: UploadPack,
  { oid, paths, ignore, reading, treeIn }: DesiredPart,
): Promise<FetchedObjects | undefined> {
  const objects = new FetchedObjects(reading);
  await objects.add(await remote.fetch({ commit: oid, depth: "trees" }));
  const tree = await treeIn(objects);
  for (let round = 0; round < maxRounds; round++) {
    const missing = await missingFiles({ objects, tree, paths, ignore, reading });
    if (missing.size === 0) return objects;
    try {
      for (const part of inParts([...missing], idsAtOnce)) await objects.add(await remote.fetch({ objects: part }));
    } catch (error) {
      if (errorCode(error) === "GitRefNotFound") return undefined;
      throw error;
    }
  }
  return undefined;
}

/** The objects of the packs of one commit. Together they keep within the limits of one pack. */
export class FetchedObjects {
  readonly #reading: PackReading;
  readonly #packs: PackObjects[] = [];
  #bytes = 0;

  constructor(reading: PackReading) {
    this.#reading = reading;
  }

  /** @throws StarlingError `GitTooLarge`, or `GitOperationFailed` for an invalid pack. */
  async add(pack: Buffer): Promise<void> {
    const { maxPackBytes }: GitLimits = this.#reading.limits;
    this.#bytes += pack.length;
    if (this.#bytes > maxPackBytes) {
      throw gitTooLarge(`the git server sends more than ${maxPackBytes} bytes for one commit`, splitRepository);
    }
    this.#packs.push(await PackObjects.open(pack, this.#reading));
  }

  has(oid: string): boolean {
    return this.#packs.some((pack) => pack.has(oid));
  }

  typeOf(oid: string): ObjectType | undefined {
    return this.#with(oid).typeOf(oid);
  }

  /** @throws StarlingError `GitOperationFailed` when it is in no pack, or of another type. */
  read(oid: string, type: ObjectType): Promise<Buffer> {
    return this.#with(oid).read(oid, type);
  }

  #with(oid: string): PackObjects {
    const [first, ...others] = this.#packs;
    if (first === undefined) throw new Error("no pack has been fetched");
    return others.find((pack) => pack.has(oid)) ?? first;
  }
}
