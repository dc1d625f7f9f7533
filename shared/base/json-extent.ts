import { unsafeDigits } from "#shared/base/json.ts";

/** Measures what a JSON text would become, from its bytes and without parsing it. */
export interface JsonExtent {
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
