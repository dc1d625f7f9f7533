/**
 * What a chart gets in the place of the functions that read the clock or draw by lot: fixed answers, others for the second
 * rendering, of which no part is the same. So nothing of a rendering depends on when and where it was made, and a difference
 * is no matter of luck. Functions that always answer otherwise, such as `genCA` and `htpasswd`, are left as they are.
 */
import type { Instead } from "#shared/source/helm/template-calls.ts";

export type Version = "first" | "second";

interface Fixed {
  /** No part, from the year to the second, is that of the other. */
  readonly moment: string;
  readonly uuid: string;
  readonly letter: string;
  readonly digit: string;
  readonly integer: string;
  readonly shuffled: string;
}

const fixed: Readonly<Record<Version, Fixed>> = {
  first: {
    moment: "2021-02-03T04:05:06Z",
    uuid: "00000000-0000-4000-8000-000000000000",
    letter: "a",
    digit: "1",
    integer: "min",
    shuffled: "index . 0",
  },
  second: {
    moment: "2018-07-13T17:28:37Z",
    uuid: "ffffffff-ffff-4fff-bfff-ffffffffffff",
    letter: "b",
    digit: "2",
    integer: "max",
    shuffled: 'index . 0 | splitList "" | reverse | join ""',
  },
};

/** The name of a template that answers for a function. */
const templateOf = (name: string) => `starling.fixed.${name}`;
/** Its file, which no chart has. */
export const fixedFile = "templates/_starling.fixed.tpl";

/** What a text that is given to `tpl` is refused with, before the name of the function that it calls. */
const hiddenCall = "starling.hidden.";

/** Arguments, as they are written or piped, to a template: what it answers is a text, as the function's answer is. */
const byTemplate = (name: string): Instead => ({ name: "list", into: `include "${templateOf(name)}"` });

const ofClock = ["date", "dateInZone", "date_in_zone", "htmlDate", "htmlDateInZone", "ago", "durationRound"];
const ofLot = ["randAlpha", "randAlphaNum", "randAscii", "randNumeric", "randBytes", "shuffle"];

/** By the name of a function, what stands in its place. */
export function fixedFunctions(version: Version): ReadonlyMap<string, Instead> {
  const { uuid, integer } = fixed[version];
  return new Map<string, Instead>([
    ["now", { name: momentOf(version) }],
    ["uuidv4", { name: `"${uuid}"` }],
    ["randInt", { name: integer }],
    // In the order of a map of Go's, which is another each time.
    ["keys", { name: "keys", into: "sortAlpha" }],
    ...["tpl", ...ofClock, ...ofLot].map((name) => [name, byTemplate(name)] as const),
  ]);
}

function momentOf(version: Version): string {
  return `(toDate "2006-01-02T15:04:05Z07:00" "${fixed[version].moment}")`;
}

/** Where what is called in a text is not seen before it is evaluated. */
const hidden = ["now", "uuidv4", "randInt", ...ofClock, ...ofLot, "tpl"];

/** In RE2, in an action: a text, a letter in its quotes, a comment, or whatever else is neither, each whole. */
const passed = String.raw`"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|\x60[^\x60]*\x60|/\*.*?\*/|\}[^}]|[^}"'\x60/]`;
/** In RE2: a call in an action, as far as its name. What is behind a dot or a `$` is a field or a variable. */
const callOf = (names: string) => String.raw`(?s)(\{\{(?:(?:${passed})*?[^.$\w"\x60/}])?)(?:${names})\b`;
/** What a text and a context are mostly written as. */
const operands = String.raw`\s+(\([^()]*\)|[.$][\w.$]*|"[^"]*")\s+([.$][\w.$]*)`;

/**
 * The templates that answer. What is given to `tpl` is looked at when it is known: a call of a fixed function in it is
 * refused, but for `tpl` itself, in the forms that it is written in.
 */
export function fixedTemplates(version: Version, { lookup }: { readonly lookup: "Refuse" | "Empty" }): string {
  const { letter, digit, shuffled } = fixed[version];
  const moment = momentOf(version);
  const isTime = (value: string) => `(or (typeIs "time.Time" ${value}) (typeIs "*time.Time" ${value}))`;
  const isSeconds = (value: string) =>
    `(or (kindIs "int" ${value}) (kindIs "int32" ${value}) (kindIs "int64" ${value}))`;
  // What is neither is the present time to these functions.
  const timeAt = (index: number) => {
    const value = `(index . ${index})`;
    return `(ternary ${value} ${moment} (or ${isTime(value)} ${isSeconds(value)}))`;
  };
  const names = lookup === "Refuse" ? [...hidden, "lookup"] : hidden;
  const bodies: Readonly<Record<string, string>> = {
    date: `date (index . 0) ${timeAt(1)}`,
    dateInZone: `dateInZone (index . 0) ${timeAt(1)} (index . 2)`,
    date_in_zone: `dateInZone (index . 0) ${timeAt(1)} (index . 2)`,
    htmlDate: `htmlDate ${timeAt(0)}`,
    htmlDateInZone: `htmlDateInZone ${timeAt(0)} (index . 1)`,
    ago: [
      `if ${isTime("(index . 0)")}`,
      `duration (sub (unixEpoch ${moment}) (unixEpoch (index . 0)))`,
      `else if ${isSeconds("(index . 0)")}`,
      `duration (sub (unixEpoch ${moment}) (index . 0))`,
      "else",
      "duration 0",
      "end",
    ].join(" -}}{{- "),
    durationRound: [
      `if ${isTime("(index . 0)")}`,
      `durationRound (mul 1000000000 (sub (unixEpoch ${moment}) (unixEpoch (index . 0))))`,
      "else",
      "durationRound (index . 0)",
      "end",
    ].join(" -}}{{- "),
    randAlpha: `repeat (int (index . 0)) "${letter}"`,
    randAlphaNum: `repeat (int (index . 0)) "${letter}"`,
    randAscii: `repeat (int (index . 0)) "${letter}"`,
    randNumeric: `repeat (int (index . 0)) "${digit}"`,
    randBytes: `repeat (int (index . 0)) "${letter}" | b64enc`,
    shuffle: shuffled,
    tpl: [
      `$text := regexReplaceAll \`${callOf("tpl")}${operands}\` (index . 0) \`\${1}include "${templateOf("tpl")}" (list \${2} \${3})\``,
      `$call := regexFind \`${callOf(names.join("|"))}\` $text`,
      "if $call",
      `fail (printf "${hiddenCall}%s" (regexFind \`\\w+$\` $call))`,
      "end",
      "tpl $text (index . 1)",
    ].join(" -}}{{- "),
  };
  return Object.entries(bodies)
    .map(([name, body]) => `{{- define "${templateOf(name)}" -}}{{- ${body} -}}{{- end -}}\n`)
    .join("");
}
