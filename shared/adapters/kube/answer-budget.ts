import { hasLongNumbers, type JsonExtent } from "#shared/base/json-extent.ts";

const mebibyte = 1024 * 1024;

export interface AnswerLimit {
  readonly bytes: number;
  /** Of what it becomes when it is parsed: `{}` is 2 bytes of text and 64 of memory. */
  readonly heapBytes: number;
}

/** Of one answer. A server takes objects of up to 3 MiB; what it adds to them is about as much again. */
export const answerLimits = {
  object: { bytes: 8 * mebibyte, heapBytes: 48 * mebibyte },
  page: { bytes: 16 * mebibyte, heapBytes: 96 * mebibyte },
  discovery: { bytes: 4 * mebibyte, heapBytes: 48 * mebibyte },
} as const satisfies Readonly<Record<string, AnswerLimit>>;

/** Of one list, over all pages: what is looked at, whether it is kept or not. */
export const listLimits = { items: 100_000, pages: 1_000 } as const;

/** Of everything that one look at a Sync reads: a quarter of the function's memory. */
const checkLimits = { heapBytes: 256 * mebibyte, bytes: 1024 * mebibyte } as const;

/** Recursion of whoever reads an answer ends here; a schema of Kubernetes is some 80 deep. */
const maxDepth = 500;
/** Parsing takes time that grows faster than the number; an int64 has 19 digits. */
const maxDigits = 400;

const heapPerValue = 64;
/** Where integers may be too long for a double, the parser keeps each value's text beside it. */
const heapPerSourcedValue = 512;

/** @returns why the text is not parsed; undefined when it may be. */
export function extentProblem({ depth, longestNumber }: JsonExtent): string | undefined {
  if (depth > maxDepth) return `it is nested ${depth} deep, and ${maxDepth} is as deep as is read`;
  if (longestNumber > maxDigits) return `it has a number of ${longestNumber} digits`;
  return undefined;
}

/** What a text takes of memory when it is parsed, itself included: rather too much than too little. */
export function heapBytesOf(text: string, extent: JsonExtent): number {
  return 2 * text.length + extent.values * (hasLongNumbers(extent) ? heapPerSourcedValue : heapPerValue);
}

/**
 * What one look may read of a cluster, over all its requests. Memory is taken for what is kept, by the request that it
 * answers: the same request again takes it once.
 */
export class AnswerBudget {
  readonly #held = new Map<string, number>();
  #heapBytes = 0;
  #bytes = 0;

  /** @returns what there is too much of; undefined when there is room. */
  read(bytes: number): string | undefined {
    this.#bytes += bytes;
    if (this.#bytes <= checkLimits.bytes) return undefined;
    return `the answers to one look are more than ${inMebibytes(checkLimits.bytes)}`;
  }

  /** @returns what there is too much of; undefined when there is room, which is then taken. */
  hold(request: string, heapBytes: number): string | undefined {
    this.release(request);
    if (this.#heapBytes + heapBytes > checkLimits.heapBytes) {
      return `the answers to one look would take more than ${inMebibytes(checkLimits.heapBytes)} of memory`;
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
