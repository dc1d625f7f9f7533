import { type InputType, inflateSync, type ZlibOptions } from "node:zlib";
import { malformedGitAnswer } from "#shared/adapters/git/git-limits.ts";

/** Node's result with `info`, which its types do not contain. */
interface Inflated {
  readonly buffer: Buffer;
  readonly engine: { readonly bytesWritten: number };
}
const inflateWithInfo = inflateSync as unknown as (bytes: InputType, options: ZlibOptions) => Inflated;

const minChunkBytes = 64;

/**
 * Inflates the data at `start`, which must have exactly `size` bytes. No more bytes are produced.
 * @returns the bytes, and where the compressed data ends.
 */
export function inflateExactly(
  pack: Buffer,
  start: number,
  size: number,
): { readonly bytes: Buffer; readonly end: number } {
  const wrong = `an object of the pack does not inflate to the ${size} bytes it announces`;
  let inflated: Inflated;
  try {
    inflated = inflateWithInfo(pack.subarray(start), {
      info: true,
      maxOutputLength: Math.max(size, 1),
      // One chunk with one more byte, because a full chunk would request another one.
      chunkSize: Math.max(size + 1, minChunkBytes),
    });
  } catch (error) {
    throw malformedGitAnswer(wrong, error);
  }
  if (inflated.buffer.length !== size) throw malformedGitAnswer(wrong);
  return { bytes: inflated.buffer, end: start + inflated.engine.bytesWritten };
}
