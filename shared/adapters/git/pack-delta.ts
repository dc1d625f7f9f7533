import { malformedGitAnswer } from "#shared/adapters/git/git-limits.ts";

export interface DeltaSizes {
  readonly baseBytes: number;
  readonly resultBytes: number;
  /** Where the instructions begin. */
  readonly at: number;
}

/** The sizes that a delta declares, read before anything is unpacked. */
export function deltaSizes(delta: Buffer): DeltaSizes {
  const base = sizeAt(delta, 0);
  const result = sizeAt(delta, base.at);
  return { baseBytes: base.size, resultBytes: result.size, at: result.at };
}

/** Enough bits for a size of 2^53. */
const maxShift = 49;

function sizeAt(delta: Buffer, start: number): { readonly size: number; readonly at: number } {
  let size = 0;
  let at = start;
  for (let shift = 0; shift <= maxShift; shift += 7) {
    const byte = delta[at++];
    if (byte === undefined) break;
    size += (byte & 0x7f) * 2 ** shift;
    if ((byte & 0x80) === 0) return { size, at };
  }
  throw malformedGitAnswer("a delta of the pack has no size");
}

/** An instruction without a length copies 64 KB. */
const wholeCopy = 0x10000;

/**
 * The object that the delta makes from its base (gitformat-pack). Each instruction makes at least one byte, so that the
 * number of steps is at most the size of the result. The caller checks that size.
 */
export function applyDelta(delta: Buffer, base: Buffer): Buffer {
  const sizes = deltaSizes(delta);
  if (sizes.baseBytes !== base.length) throw malformedGitAnswer("a delta of the pack belongs to another object");
  const result = Buffer.allocUnsafeSlow(sizes.resultBytes);
  let made = 0;
  let at = sizes.at;

  function operand(opcode: number, bits: readonly number[]): number {
    let value = 0;
    for (const [index, bit] of bits.entries()) {
      if ((opcode & bit) === 0) continue;
      value += (delta[at++] ?? Number.NaN) * 2 ** (index * 8);
    }
    return value;
  }

  while (at < delta.length) {
    const opcode = delta[at++] ?? 0;
    const isCopy = (opcode & 0x80) !== 0;
    const from = isCopy ? operand(opcode, [0x01, 0x02, 0x04, 0x08]) : at;
    const length = isCopy ? operand(opcode, [0x10, 0x20, 0x40]) || wholeCopy : opcode;
    const source = isCopy ? base : delta;
    // The comparisons are false for NaN, which stands for missing operands.
    const fits = length > 0 && from + length <= source.length && made + length <= result.length;
    if (!fits) throw malformedGitAnswer("a delta of the pack does not fit its object");
    source.copy(result, made, from, from + length);
    made += length;
    if (!isCopy) at += length;
  }
  if (made !== result.length) throw malformedGitAnswer("a delta of the pack ends too early");
  return result;
}
