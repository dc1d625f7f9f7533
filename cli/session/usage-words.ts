/** What is wrong with a line that was typed, in our own words. */

/** Legend: what the parser of the command line says, and what we do. */
const known: readonly (readonly [RegExp, string])[] = [
  [/^error: option '(?:-\w, )?(--[\w-]+).*?' argument '(.*)' is invalid\. (.*)$/s, 'error: $1 is "$2"; $3'],
  [/^error: command-argument value '(.*)' is invalid for argument '([\w-]+)'\. (.*)$/s, 'error: $2 is "$1"; $3'],
  [/^error: required option '(?:-\w, )?(--[\w-]+).*?' not specified$/, "error: $1 is missing"],
  [/^error: option '(?:-\w, )?(--[\w-]+).*?' argument missing$/, "error: $1 lacks its value"],
  [/^error: missing required argument '([\w-]+)'$/, "error: $1 is missing"],
  [/^error: unknown option '(.*)'$/s, "error: there is no flag $1"],
  [/^error: unknown command '(.*)'$/s, 'error: there is no verb "$1"'],
  [
    /^error: too many arguments for '(.*)'\. Expected (\d+) arguments? but got (\d+)\.$/s,
    "error: $1 takes $2 of what has no flag; got $3",
  ],
];

/** @param said - one message; of what is not known it stays as it is. */
export function usageWords(said: string): string {
  const [first = "", ...rest] = said.trimEnd().split("\n");
  const row = known.find(([pattern]) => pattern.test(first));
  const words = row === undefined ? first : first.replace(row[0], row[1]);
  const plain = words
    .replace(/Allowed choices are (.*)\.$/, "expected one of $1")
    .replace(/; expected (.*)\.$/, "; expected $1");
  return [plain, ...rest].map((line) => `${line}\n`).join("");
}
