import { type InputType, inflateSync, type ZlibOptions } from "node:zlib";
import { malformedGitAnswer } from "#shared/adapters/git/git-limits.ts";

/** What Node gives for `info`; its types do not have it. */
interface Inflated {
  readonly buffer: Buffer;
  readonly engine: { readonly bytesWritten: number };
}
const inflateWithInfo = inflateSync as unknown as (bytes: InputType, options: ZlibOptions) => Inflated;

const minChunkBytes = 64;

/**
 * Inflates what begins at `start`, which must be `size` bytes: not one more is made of it.
 * @returns the bytes, and where the compressed ones end.
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
      // All at once, and one more byte: a full chunk would ask for another one.
      chunkSize: Math.max(size + 1, minChunkBytes),
    });
  } catch (error) {
    throw malformedGitAnswer(wrong, error);
  }
  if (inflated.buffer.length !== size) throw malformedGitAnswer(wrong);
  return { bytes: inflated.buffer, end: start + inflated.engine.bytesWritten };
}
