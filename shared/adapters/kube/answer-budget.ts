import { unsafeDigits } from "#shared/base/json.ts";

const mebibyte = 1024 * 1024;

export interface AnswerLimit {
  readonly bytes: number;
  /** The memory after parsing: `{}` has 2 bytes of text and takes 64 bytes of memory. */
  readonly heapBytes: number;
}

/** The limits of one answer. A server accepts objects of up to 3 MiB, and adds about as much. */
export const answerLimits = {
  object: { bytes: 8 * mebibyte, heapBytes: 48 * mebibyte },
  page: { bytes: 16 * mebibyte, heapBytes: 96 * mebibyte },
  discovery: { bytes: 4 * mebibyte, heapBytes: 48 * mebibyte },
} as const satisfies Readonly<Record<string, AnswerLimit>>;

/** The limits of one list with all its pages, for all items, kept or not. */
export const listLimits = { items: 100_000, pages: 1_000 } as const;

/** The limits of everything that one check of a Sync reads: a quarter of the function's memory. */
const checkLimits = { heapBytes: 256 * mebibyte, bytes: 1024 * mebibyte } as const;

/** The limit for recursive readers of an answer. A schema of Kubernetes is about 80 levels deep. */
const maxDepth = 500;

/** The parsing time grows faster than the number's length. An int64 has 19 digits. */
const maxDigits = 400;

const heapPerValue = 64;

/** For integers that are too long for a double, the parser keeps the text of each value. */
const heapPerSourcedValue = 512;

/** @returns why the text is not parsed; undefined when it can be. */
export function extentProblem({ depth, longestNumber }: JsonExtent): string | undefined {
  if (depth > maxDepth) return `it is nested ${depth} levels deep, more than the limit of ${maxDepth}`;
  if (longestNumber > maxDigits)
    return `it has a number with ${longestNumber} digits, more than the limit of ${maxDigits}`;
  return undefined;
}

/** An upper estimate of the memory of a parsed text, including the text. */
export function heapBytesOf(text: string, extent: JsonExtent): number {
  return 2 * text.length + extent.values * (hasLongNumbers(extent) ? heapPerSourcedValue : heapPerValue);
}

/**
 * The limit of what one check may read of a cluster, over all its requests. Memory is reserved for what is kept, by
 * request, so that the same request reserves it only once.
 */
export class AnswerBudget {
  readonly #held = new Map<string, number>();
  #heapBytes = 0;
  #bytes = 0;

  /** @returns which limit is exceeded; undefined when there is room. */
  read(bytes: number): string | undefined {
    this.#bytes += bytes;
    if (this.#bytes <= checkLimits.bytes) return undefined;
    return `the answers to one check have more than ${inMebibytes(checkLimits.bytes)}`;
  }

  /** Reserves memory. @returns which limit is exceeded; undefined when there was room. */
  hold(request: string, heapBytes: number): string | undefined {
    this.release(request);
    if (this.#heapBytes + heapBytes > checkLimits.heapBytes) {
      return `the answers to one check would take more than ${inMebibytes(checkLimits.heapBytes)} of memory`;
    }
    this.#held.set(request, heapBytes);
    this.#heapBytes += heapBytes;
    return undefined;
  }

  release(request: string): void {
    this.#heapBytes -= this.#held.get(request) ?? 0;
    this.#held.delete(request);
  }
}

export function inMebibytes(bytes: number): string {
  return `${bytes / mebibyte} MiB`;
}

const blockBytes = 64 * 1024;

/** Collects bytes in blocks. A list of chunks would need a hundred bytes for each chunk of one byte. */
export class AnswerBody {
  readonly #blocks: Buffer[] = [];
  #block = Buffer.alloc(0);
  #used = 0;
  #size = 0;
  #pieces = 0;

  /** @returns the number of bytes so far. */
  add(chunk: Buffer): number {
    this.#pieces += 1;
    this.#size += chunk.length;
    for (let rest = chunk; rest.length > 0; ) {
      if (this.#used === this.#block.length) {
        // Most answers have one chunk.
        const isFirst = this.#blocks.length === 0;
        this.#block = Buffer.allocUnsafe(isFirst ? Math.min(rest.length, blockBytes) : blockBytes);
        this.#used = 0;
        this.#blocks.push(this.#block);
      }
      const copied = rest.copy(this.#block, this.#used);
      this.#used += copied;
      rest = rest.subarray(copied);
    }
    return this.#size;
  }

  get pieces(): number {
    return this.#pieces;
  }

  text(): string {
    const whole =
      this.#blocks.length === 1 ? this.#block.subarray(0, this.#size) : Buffer.concat(this.#blocks, this.#size);
    return whole.toString("utf8");
  }
}

/** Measures what a JSON text would become, from its bytes and without parsing it. */
interface JsonExtent {
  /** An upper bound of the number of lists, maps and members. */
  readonly values: number;
  readonly depth: number;
  /** The digits of the longest number. */
  readonly longestNumber: number;
}

const quote = 0x22;

const comma = 0x2c;

const zero = 0x30;

const nine = 0x39;

const openList = 0x5b;

const backslash = 0x5c;

const closeList = 0x5d;

const openMap = 0x7b;

const closeMap = 0x7d;

/** Whether the text may contain integers that must be read digit by digit. */
export function hasLongNumbers({ longestNumber }: JsonExtent): boolean {
  return longestNumber >= unsafeDigits;
}

export function jsonExtent(text: string): JsonExtent {
  let values = 1;
  let depth = 0;
  let deepest = 0;
  let digits = 0;
  let longestNumber = 0;
  for (let index = 0; index < text.length; index += 1) {
    const unit = text.charCodeAt(index);
    if (unit >= zero && unit <= nine) {
      digits += 1;
      if (digits > longestNumber) longestNumber = digits;
      continue;
    }
    digits = 0;
    if (unit === quote) index = endOfString(text, index);
    else if (unit === comma) values += 1;
    else if (unit === openMap || unit === openList) {
      values += 1;
      depth += 1;
      if (depth > deepest) deepest = depth;
    } else if (unit === closeMap || unit === closeList) depth -= 1;
  }
  return { values, depth: deepest, longestNumber };
}

/** The index of the closing quote, or of the end of a text that lacks it. */
function endOfString(text: string, start: number): number {
  let index = start + 1;
  for (; index < text.length; index += 1) {
    const unit = text.charCodeAt(index);
    if (unit === quote) return index;
    if (unit === backslash) index += 1;
  }
  return index;
}
