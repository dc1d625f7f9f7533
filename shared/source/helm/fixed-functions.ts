/**
 * Replaces the functions that read the clock or draw random values by fixed answers. The second rendering gets other
 * answers, which differ from the first ones in every part. So a rendering does not depend on when and where it is made,
 * and a difference between both is certain, not a matter of luck. Functions whose answer is always new, such as `genCA`
 * and `htpasswd`, stay.
 */
import type { Instead } from "#shared/source/helm/template-calls.ts";

export type Version = "first" | "second";

interface Fixed {
  /** It differs from the other version's in every part, from the year to the second. */
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

/** The name of the template that answers for a function. */
const templateOf = (name: string) => `starling.fixed.${name}`;
/** The file of these templates. No chart has it. */
export const fixedFile = "templates/_starling.fixed.tpl";

/** Begins the message with which `tpl` refuses a text; the name of the called function follows. */
const hiddenCall = "starling.hidden.";

/** Passes the arguments, written or piped, to a template. A template answers with a text, as the function does. */
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
    // Go's order of a map's keys changes with each rendering.
    ["keys", { name: "keys", into: "sortAlpha" }],
    ...["tpl", ...ofClock, ...ofLot].map((name) => [name, byTemplate(name)] as const),
  ]);
}

function momentOf(version: Version): string {
  return `(toDate "2006-01-02T15:04:05Z07:00" "${fixed[version].moment}")`;
}

/** Functions whose call is not visible until the text is evaluated. */
const hidden = ["now", "uuidv4", "randInt", ...ofClock, ...ofLot, "tpl"];

/** In RE2, inside an action: a string, a quoted character, a comment, or any other character. Each is matched whole. */
const passed = String.raw`"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|\x60[^\x60]*\x60|/\*.*?\*/|\}[^}]|[^}"'\x60/]`;
/** In RE2: a call in an action, up to the name of the function. A name after a dot or `$` is a field or a variable. */
const callOf = (names: string) => String.raw`(?s)(\{\{(?:(?:${passed})*?[^.$\w"\x60/}])?)(?:${names})\b`;
/** The usual forms of a text and a context. */
const operands = String.raw`\s+(\([^()]*\)|[.$][\w.$]*|"[^"]*")\s+([.$][\w.$]*)`;

/**
 * The templates that answer. The template for `tpl` checks the text at the moment of its evaluation: a call of a
 * replaced function in the text is refused. A call of `tpl` itself is replaced, in the usual forms of its arguments.
 */
export function fixedTemplates(version: Version, { lookup }: { readonly lookup: "Refuse" | "Empty" }): string {
  const { letter, digit, shuffled } = fixed[version];
  const moment = momentOf(version);
  const isTime = (value: string) => `(or (typeIs "time.Time" ${value}) (typeIs "*time.Time" ${value}))`;
  const isSeconds = (value: string) =>
    `(or (kindIs "int" ${value}) (kindIs "int32" ${value}) (kindIs "int64" ${value}))`;
  // To these functions, any other value means the present time.
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
