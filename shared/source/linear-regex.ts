/** Regular expressions that people write into documents, in RE2's syntax: each is matched in linear time, whatever it says. */
import { RE2JS, RE2JSSyntaxException } from "re2js";

/** Largest number of steps of a compiled expression. The expressions that people write have fewer than 50, and the time of a match grows with them. */
const maxProgram = 500;

/** Whether the expression matches: anywhere in a text, or the whole of it. */
export type LinearRegex = (text: string) => boolean;

/**
 * @param how.isWhole - whether the expression must match the whole text.
 * @returns what is wrong with the expression, to follow the name of its field, if it is none.
 */
export function parseLinearRegex(
  text: string,
  { isWhole = false }: { readonly isWhole?: boolean } = {},
): LinearRegex | string {
  const regex = compileLinearRegex(text);
  if (typeof regex === "string") return regex;
  return isWhole ? (each) => regex.testExact(each) : (each) => regex.test(each);
}

/** @returns what is wrong with the expression, to follow the name of its field, if it is none. */
export function compileLinearRegex(text: string): RE2JS | string {
  try {
    const regex = RE2JS.compile(text);
    return regex.programSize() > maxProgram ? "is too large when its repetitions are written out; repeat less" : regex;
  } catch (error) {
    if (!(error instanceof RE2JSSyntaxException)) throw error;
    const problem = error.message.replace("error parsing regexp: ", "");
    return `is no regular expression: ${problem}; write it in the syntax of RE2, which has no lookahead and no backreference`;
  }
}
