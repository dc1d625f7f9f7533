import { createHash } from "node:crypto";
import { gitTooLarge, malformedGitAnswer, splitRepository } from "#shared/adapters/git/git-limits.ts";
import { applyDelta } from "#shared/adapters/git/pack-delta.ts";
import { inflateExactly } from "#shared/adapters/git/pack-inflate.ts";
import { type ObjectType, type PackedObject, type PackReading, scanPack } from "#shared/adapters/git/pack-scan.ts";

/** A resolved object of a pack. A delta is resolved after its base. */
interface KnownObject {
  readonly oid: string;
  readonly packed: PackedObject;
  readonly type: ObjectType;
  readonly base: KnownObject | undefined;
  /** The number of deltas that lead to it. */
  readonly depth: number;
}

interface KnownContent {
  readonly base: KnownObject;
  readonly content: Buffer;
}

/** The limit of cached contents, which other objects are made of or which are read soon. */
const cacheBytes = 64 * 1024 * 1024;

/**
 * The objects of one pack by their ids. Ids are computed from the contents, so that a commit's id always means that
 * commit, whatever the server sent. Contents are made on demand.
 */
export class PackObjects {
  readonly #pack: Buffer;
  readonly #reading: PackReading;
  readonly #known = new Map<string, KnownObject>();
  readonly #cache = new ContentCache(cacheBytes);

  private constructor(pack: Buffer, reading: PackReading) {
    this.#pack = pack;
    this.#reading = reading;
  }

  /** @throws StarlingError `GitTooLarge`, or `GitOperationFailed` for an invalid pack. */
  static async open(pack: Buffer, reading: PackReading): Promise<PackObjects> {
    const objects = new PackObjects(pack, reading);
    await objects.#index();
    return objects;
  }

  has(oid: string): boolean {
    return this.#known.has(oid);
  }

  typeOf(oid: string): ObjectType | undefined {
    return this.#known.get(oid)?.type;
  }

  /** @throws StarlingError `GitOperationFailed` when it is not in the pack, or of another type. */
  async read(oid: string, type: ObjectType): Promise<Buffer> {
    const known = this.#known.get(oid);
    if (known === undefined) throw malformedGitAnswer(`the git server did not send the ${type} ${oid}`);
    if (known.type !== type) throw malformedGitAnswer(`${oid} is a ${known.type}, but a ${type} is expected`);
    const content = await this.#contentOf(known);
    const { maxTextBytes } = this.#reading.limits;
    if (content.length > maxTextBytes && (type === "commit" || type === "tag")) {
      const found = `the ${type} ${oid} is ${content.length} bytes of text`;
      throw gitTooLarge(`${found}; at most ${maxTextBytes} are read`, `make one with a shorter message`);
    }
    return content;
  }

  async #index(): Promise<void> {
    const bases: KnownObject[] = [];
    const waiting = new Map<number | string, PackedObject[]>();
    let open = 0;
    await scanPack(this.#pack, this.#reading, (packed, bytes) => {
      if (packed.type !== undefined) {
        bases.push(this.#know({ packed, type: packed.type, base: undefined, depth: 0 }, bytes));
        return;
      }
      open += 1;
      const base = packed.base ?? "";
      const siblings = waiting.get(base);
      if (siblings === undefined) waiting.set(base, [packed]);
      else siblings.push(packed);
    });
    // Each delta is resolved once, after its base. Deltas that wait for each other are never resolved.
    for (let base = bases.pop(); base !== undefined; base = bases.pop()) {
      for (const name of [base.packed.offset, base.oid]) {
        const deltas = waiting.get(name);
        if (deltas === undefined) continue;
        waiting.delete(name);
        // The content is made once for all its deltas. A content that is too large for the cache would otherwise be
        // made again for each.
        const content = await this.#contentOf(base);
        for (const packed of deltas) bases.push(await this.#resolve(packed, { base, content }));
        open -= deltas.length;
      }
    }
    if (open > 0) throw malformedGitAnswer(`the pack has ${open} deltas without their base`);
  }

  async #resolve(packed: PackedObject, { base, content: from }: KnownContent): Promise<KnownObject> {
    const { limits, pace } = this.#reading;
    if (pace.isDue()) await pace.rest();
    const depth = base.depth + 1;
    if (depth > limits.maxDeltaDepth) {
      throw gitTooLarge(`the pack has a chain of more than ${limits.maxDeltaDepth} deltas`, splitRepository);
    }
    const { bytes } = inflateExactly(this.#pack, packed.dataAt, packed.size);
    return this.#know({ packed, type: base.type, base, depth }, applyDelta(bytes, from));
  }

  #know(object: Omit<KnownObject, "oid">, content: Buffer): KnownObject {
    const oid = createHash("sha1").update(`${object.type} ${content.length}\0`).update(content).digest("hex");
    const known = { ...object, oid };
    this.#known.set(oid, known);
    this.#cache.set(object.packed.offset, content);
    return known;
  }

  /** Makes contents from the nearest cached one to this one, and holds two of them at a time. */
  async #contentOf(object: KnownObject): Promise<Buffer> {
    const { pace } = this.#reading;
    const chain: KnownObject[] = [];
    let content: Buffer | undefined;
    for (let each: KnownObject | undefined = object; each !== undefined && content === undefined; each = each.base) {
      content = this.#cache.get(each.packed.offset);
      if (content === undefined) chain.push(each);
    }
    for (let each = chain.pop(); each !== undefined; each = chain.pop()) {
      if (pace.isDue()) await pace.rest();
      const { bytes } = inflateExactly(this.#pack, each.packed.dataAt, each.packed.size);
      content = content === undefined ? bytes : applyDelta(bytes, content);
      this.#cache.set(each.packed.offset, content);
    }
    if (content === undefined) throw malformedGitAnswer("an object of the pack has no content");
    return content;
  }
}

/** Forgets the least recently used contents when it is full. */
class ContentCache {
  readonly #maxBytes: number;
  readonly #contents = new Map<number, Buffer>();
  #bytes = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  get(offset: number): Buffer | undefined {
    const content = this.#contents.get(offset);
    if (content === undefined) return undefined;
    this.#contents.delete(offset);
    this.#contents.set(offset, content);
    return content;
  }

  set(offset: number, content: Buffer): void {
    if (content.length > this.#maxBytes / 4 || this.#contents.has(offset)) return;
    this.#contents.set(offset, content);
    this.#bytes += content.length;
    for (const [oldest, old] of this.#contents) {
      if (this.#bytes <= this.#maxBytes) return;
      this.#contents.delete(oldest);
      this.#bytes -= old.length;
    }
  }
}
