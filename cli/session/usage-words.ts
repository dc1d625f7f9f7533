/** Translates the messages of the command line's parser. */

/** A pattern for the parser's message, and the message that Starling prints. */
const known: readonly (readonly [RegExp, string])[] = [
  [/^error: option '(?:-\w, )?(--[\w-]+).*?' argument '(.*)' is invalid\. (.*)$/s, 'error: $1 is "$2"; $3'],
  [/^error: command-argument value '(.*)' is invalid for argument '([\w-]+)'\. (.*)$/s, 'error: $2 is "$1"; $3'],
  [/^error: required option '(?:-\w, )?(--[\w-]+).*?' not specified$/, "error: $1 is missing"],
  [/^error: option '(?:-\w, )?(--[\w-]+).*?' argument missing$/, "error: $1 needs a value"],
  [/^error: missing required argument '([\w-]+)'$/, "error: $1 is missing"],
  [/^error: unknown option '(.*)'$/s, "error: unknown flag $1"],
  [/^error: unknown command '(.*)'$/s, 'error: unknown command "$1"'],
  [
    /^error: too many arguments for '(.*)'\. Expected 1 argument but got (\d+)\.$/s,
    "error: $1 takes at most 1 argument without a flag; got $2",
  ],
  [
    /^error: too many arguments for '(.*)'\. Expected (\d+) arguments but got (\d+)\.$/s,
    "error: $1 takes at most $2 arguments without a flag; got $3",
  ],
];

/** @param said - one message of the parser. An unknown message stays as it is. */
export function usageWords(said: string): string {
  const [first = "", ...rest] = said.trimEnd().split("\n");
  const row = known.find(([pattern]) => pattern.test(first));
  const words = row === undefined ? first : first.replace(row[0], row[1]);
  const plain = words
    .replace(/Allowed choices are (.*)\.$/, "expected one of $1")
    .replace(/; expected (.*)\.$/, "; expected $1");
  return [plain, ...rest].map((line) => `${line}\n`).join("");
}
