import { unclosedIn } from "#shared/source/yaml/unclosed.ts";

/** What the parser says when it misses the end of something. */
const misses = /^(?:deficient indentation|unexpected end of the (?:stream|document) within|missed comma between flow)/;

/** Legend: how the parser (js-yaml) begins, and what it means to who wrote the file. */
const known: readonly (readonly [string, string])[] = [
  ["duplicated mapping key", "duplicate key in a map; kubectl would silently keep the last one: remove one of them"],
  [
    "bad indentation of a mapping entry",
    'a key that is not indented as those beside it, or a value with ": " that is to be in quotes',
  ],
  ["bad indentation of a sequence entry", "an item of a list that is not indented as those beside it"],
  ["deficient indentation", "a line that is indented less than what it belongs to"],
  ["tab characters must not be used in indentation", "a tab where blanks are wanted: YAML is indented with blanks"],
  [
    "can not read a block mapping entry",
    'a line without ":" between lines with one; a text of several lines begins with | or >',
  ],
  ["expected ':' after a mapping key", 'a key without ":" after it'],
  ["a whitespace character is expected after the key-value separator", 'a ":" without a blank after it'],
  ["missed comma between flow collection entries", "a comma is missing between two items of a [list] or a {map}"],
  [
    "unknown escape sequence",
    "a backslash in double quotes that begins nothing YAML knows; double it, or use single quotes",
  ],
  [
    "end of the stream or a document separator is expected",
    "something that belongs to nothing before it; is it indented right, or is a --- missing?",
  ],
  ["undeclared tag handle", 'a text that begins with "!"; put it in quotes'],
  ["unexpected end of the", "the file ends in the middle of something"],
  [
    "the stream contains non-printable characters",
    "a character that no text has; is it a binary file, or not in UTF-8?",
  ],
];

/** Names of aliases and tags are what follows a * or a ! in a text without quotes, as the password `*swordfish`. */
const quotedText = / ?"[\s\S]*"/;

/**
 * What the parser said, without the texts that it quotes, in words that name what to do; its own stay behind them.
 * @param position - in the text, where it was found; absent where the parser does not say.
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
  /** Of what is not closed. */
  readonly line: number | undefined;
}

const plainExpression = /^(?:[^"'#]*[\s:])?\{\{/;

/** What a template of a chart is to YAML. */
function ofExpression(reason: string, { text, position, line }: Mistake): string | undefined {
  const lines = text.split("\n");
  const isAnywhere = reason.startsWith("unsupported map key: a list or a map");
  const marked = line ?? text.slice(0, position).split("\n").length;
  const index = lines.findIndex((each, at) => (isAnywhere || at === marked - 1) && plainExpression.test(each));
  if (index < 0) return undefined;
  return `{{ in line ${index + 1} begins a map in a map; a text with {{ is to be in quotes, and the template of a chart belongs into one`;
}

/** A plain text may not begin with everything. */
function ofCharacter(reason: string, character = ""): string | undefined {
  if (reason === "unidentified alias")
    return "* begins the name of an anchor, and none of this name is before it; a text that begins with * is to be in quotes";
  const isUnread = reason === "bad indentation of a mapping entry" && "@`%".includes(character) && character !== "";
  return isUnread ? `a text may not begin with ${character}; put it in quotes` : undefined;
}
