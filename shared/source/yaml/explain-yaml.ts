import { unclosedIn } from "#shared/source/yaml/unclosed.ts";

/** How the parser's messages begin when an end is missing. */
const misses = /^(?:deficient indentation|unexpected end of the (?:stream|document) within|missed comma between flow)/;

/** Pairs of the beginning of a parser's message (js-yaml) and its explanation for the author of the file. */
const known: readonly (readonly [string, string])[] = [
  ["duplicated mapping key", "duplicate key in a map; kubectl would silently keep the last one: remove one of them"],
  [
    "bad indentation of a mapping entry",
    'a key is not indented like its neighbours, or a value that contains ": " needs quotes',
  ],
  ["bad indentation of a sequence entry", "an item of a list is not indented like its neighbours"],
  ["deficient indentation", "a line is indented less than the block that it belongs to"],
  ["tab characters must not be used in indentation", "a line is indented with a tab; YAML allows only spaces"],
  [
    "can not read a block mapping entry",
    'a line without ":" is among lines that have one; begin a text of several lines with | or >',
  ],
  ["expected ':' after a mapping key", 'a key has no ":" after it'],
  ["a whitespace character is expected after the key-value separator", 'a ":" has no space after it'],
  ["missed comma between flow collection entries", "a comma is missing between two items of a [list] or a {map}"],
  [
    "unknown escape sequence",
    "a backslash in double quotes begins no escape that YAML knows; write it twice, or use single quotes",
  ],
  [
    "end of the stream or a document separator is expected",
    "a line belongs to nothing before it; check its indentation, or add the missing ---",
  ],
  ["undeclared tag handle", 'a text begins with "!"; put it in quotes'],
  ["unexpected end of the", "the file ends inside a quoted text, a list or a map"],
  [
    "the stream contains non-printable characters",
    "the file contains a control character; it may be a binary file, or not in UTF-8",
  ],
];

/**
 * The names of aliases and tags are the text after a * or ! without quotes, which can be a password such as
 * `*swordfish`.
 */
const quotedText = / ?"[\s\S]*"/;

/**
 * The parser's message without the texts that it quotes, after an explanation that names the remedy.
 * @param position - the place of the problem in the text; absent when the parser does not give it.
 */
export function explainYaml(said: string, text: string, position: number | undefined): string {
  const reason = said.replace(quotedText, "");
  const unclosed = misses.test(reason) ? unclosedIn(text.slice(0, position)) : undefined;
  const expression = ofExpression(reason, { text, position, line: unclosed?.line });
  if (expression !== undefined) return `${expression} (${reason})`;
  if (unclosed !== undefined) return `unclosed ${unclosed.opener} in line ${unclosed.line}: ${reason}`;
  const words =
    ofCharacter(reason, text[position ?? text.length]) ?? known.find(([begins]) => reason.startsWith(begins))?.[1];
  if (words === undefined) return reason;
  return reason === "duplicated mapping key" ? words : `${words} (${reason})`;
}

interface Mistake {
  readonly text: string;
  readonly position: number | undefined;
  /** The line of the opening character that has no end. */
  readonly line: number | undefined;
}

const plainExpression = /^(?:[^"'#]*[\s:])?\{\{/;

/** Explains a template expression of a chart, which YAML reads as a map. */
function ofExpression(reason: string, { text, position, line }: Mistake): string | undefined {
  const lines = text.split("\n");
  const isAnywhere = reason.startsWith("unsupported map key: a list or a map");
  const marked = line ?? text.slice(0, position).split("\n").length;
  const index = lines.findIndex((each, at) => (isAnywhere || at === marked - 1) && plainExpression.test(each));
  if (index < 0) return undefined;
  return `{{ in line ${index + 1} begins a map inside a map; put a text that contains {{ in quotes, or move the template of a chart into a chart`;
}

/** Explains characters with which a text without quotes cannot begin. */
function ofCharacter(reason: string, character = ""): string | undefined {
  if (reason === "unidentified alias")
    return "* refers to an anchor, but no anchor of this name comes before it; put a text that begins with * in quotes";
  const isUnread = reason === "bad indentation of a mapping entry" && "@`%".includes(character) && character !== "";
  return isUnread ? `a text without quotes must not begin with ${character}; put it in quotes` : undefined;
}
