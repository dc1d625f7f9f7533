import { at, type Chart, chartRefused, hasTemplate } from "#shared/source/helm/chart.ts";
import { chartFile } from "#shared/source/helm/chart-folders.ts";
import { withoutWordsOfValues } from "#shared/source/helm/helm-words.ts";
import { fileOf } from "#shared/source/helm/rendered-output.ts";
import { ManifestError, type ManifestPlace } from "#shared/source/yaml/manifest-error.ts";

const maxReasonLength = 1500;
/** A place in a template, in each way that Helm writes one; the innermost is the last. */
const places = /(?:^|[(\s])([^\s()"<>]+\/templates\/[^()"<>\n]*?):(\d+)(?::(\d+))?(?=[):\s]|$)/gm;

/** Where a call came to a template that stands in the place of a function: no file of the chart. */
const fixedFrames =
  /(?:error calling include:\s*)?(?:template: )?[^\s()"<>]+\/templates\/_starling\.fixed\.tpl:\d+:\d+:?\s+executing "[^"]*" at <.*?>:\s*/g;

/** What Helm said of a chart, as an error with the file of the artifact, the line, and what to do. */
export function explainHelm(chart: Chart, said: string): ManifestError {
  const text = said
    .replace(/^(?:level=.*\n)*Error: /, "")
    .replace(/\n*Use --debug flag to render out invalid YAML\s*$/, "")
    .replaceAll(fixedFrames, "")
    .replaceAll(/<include "starling\.fixed\.(\w+)">/g, "<$1>")
    .trim();
  const place = innermost(chart, text);
  const lookup = lookupAt(chart, text, place) ?? hiddenIn(text, place);
  if (lookup !== undefined) return lookup;
  const reason = adviceOn(reasonOf(text)) ?? withRemedy(toldOf(chart, text));
  return new ManifestError(
    "ChartFailed",
    place ?? { file: at(chart.folder, chartFile) },
    reason.slice(0, maxReasonLength),
  );
}

function toldOf(chart: Chart, text: string): string {
  const reason = reasonOf(text);
  const whose = reason.startsWith(chartSays) ? "chart" : "helm";
  const told = withoutWordsOfValues(chart, reason.slice(whose === "chart" ? chartSays.length : 0), whose);
  return whose === "chart" ? chartSays + told : told;
}

/** A text may hold what looks like a place, and be a value: files of the chart are meant. */
function innermost(chart: Chart, text: string): ManifestPlace | undefined {
  const found = [...text.matchAll(places)].findLast(([, file = ""]) => hasTemplate(chart, file));
  if (found !== undefined) {
    const [, file = "", line, column] = found;
    const where = { file: fileOf(chart, file), line: Number(line) };
    return column === undefined ? where : { ...where, column: Number(column) };
  }
  const invalid = /^YAML parse error on ([^\n]+?): /.exec(text);
  return invalid === null ? undefined : { file: `${fileOf(chart, invalid[1] ?? "")} (as rendered)` };
}

/** In place of `lookup` stands a function that fails for what it is given: that a template came to it is Helm's word. */
function lookupAt(chart: Chart, text: string, place: ManifestPlace | undefined): ManifestError | undefined {
  if (place === undefined || !/ at <fail>:\s+wrong number of args for fail/.test(text)) return undefined;
  const isLookup = chart.watched.some(
    ({ helmPath, calls }) =>
      at(chart.folder, helmPath) === place.file &&
      calls.some(({ name, line }) => name === "lookup" && line === place.line),
  );
  if (!isLookup) return undefined;
  return chartRefused(
    place,
    "calls lookup, which would find nothing here: a chart that keeps a password in the cluster would make another one each time. " +
      "Set the values by which the chart asks for nothing, as the name of an existing Secret, or say render.helm.lookup: Empty where nothing found is right",
  );
}

/** What was found in a text when it was evaluated. */
function hiddenIn(text: string, place: ManifestPlace | undefined): ManifestError | undefined {
  const [, name] = /\bstarling\.hidden\.(\w+)/.exec(text) ?? [];
  if (name === undefined || place === undefined) return undefined;
  return chartRefused(
    place,
    `evaluates a text with tpl that calls ${name}: what it is answered cannot be fixed there, and would be another each time. ` +
      "Put the call into a template, or the value in the place of the text",
  );
}

/** What is said behind the places, for these are told already. */
function reasonOf(text: string): string {
  const byTemplate = /^execution error at \([^)]*\): ([\s\S]*)$/.exec(text);
  if (byTemplate !== null) return `${chartSays}${byTemplate[1]}`;
  const parse = /^parse error at \([^)]*\): ([\s\S]*)$/.exec(text);
  if (parse !== null) return `is no template: ${parse[1]}`;
  const invalid = /^YAML parse error on [^\n]+?: (?:error converting YAML to JSON: )?([\s\S]*)$/.exec(text);
  if (invalid !== null) return `renders to no YAML: ${invalid[1]}`;
  const frames = [...text.matchAll(/executing "[^"]*" at (<[\s\S]*?>):\s+/g)].at(-1);
  if (frames !== undefined) return `at ${frames[1]}: ${text.slice(frames.index + frames[0].length)}`;
  return text;
}

const chartSays = "the chart says: ";

/** What a schema says of values without showing one of them: any may be a secret. */
const withoutValue =
  /^(?:got [a-z]+, want [a-z ,]+|(?:min|max)(?:Length|Items|Properties): got \d+, want \d+|missing propert.*|additional properties .* not allowed|properties .* required, if .* exists|items at \d+ and \d+ are equal|no items match contains schema|false schema|'[A-Za-z]+' failed(?:, subschemas [\d, ]+ matched)?)$/;
const oneSaid = /^(\s*- at '(?:[^'\\]|\\.)*'(?: \[[^\]\n]*\])?: )(.*)$/gm;

/** Where values do not meet a schema and what it wants, and not what it got. */
function withoutValues(reason: string): string {
  return reason.replaceAll(oneSaid, (_line, at: string, said: string) => {
    if (withoutValue.test(said)) return at + said;
    const [, limit, desired] = /^([A-Za-z]+): got .*, want (.*)$/.exec(said) ?? [];
    if (limit !== undefined) return `${at}${limit}: want ${desired}`;
    const [, rule] = /^.*((?:does not match pattern|value must be) .*)$/.exec(said) ?? [];
    return at + (rule ?? "is not what the schema asks for");
  });
}

/** What a template sees at its top, and not in `with` and `range`, where the dot is what they are given. */
const top = "(?:Values|Release|Chart|Capabilities|Files|Template)";
const otherDot = "inside of with and range the dot is what they are given: write $ before it, as $.Values.name";
/** Legend: what Helm says, and what to do about it. The first one counts. */
const remedies: readonly (readonly [RegExp, string])[] = [
  [new RegExp(`^at <\\.${top}\\.([\\w-]+)[^>]*>: nil pointer evaluating [^\\n]*\\.\\1$`), otherDot],
  [new RegExp(`^at <\\.${top}[.>][^\\n]*: can't evaluate field ${top} in type `), otherDot],
  [
    /^at <[^>]*\.Values\.[^\n]*: nil pointer evaluating interface \{\}\.([\w-]+)$/,
    "what is before .$1 is not set: set it in render.helm.values, or in a file of valuesFrom",
  ],
  [
    /: no template "[^"]*" associated with template /,
    "define it in a template, or commit to charts/ the chart that does",
  ],
  [/^is no template: unexpected EOF/, "an if, range, with or define has no {{ end }}"],
  [/: range can't iterate over /, "what it goes through is neither a list nor a map"],
  [
    /: wrong type for value; expected string; got (?:float64|int64|int|bool)$/,
    "put the value in quotes, or say toString",
  ],
  [/^renders to no YAML: yaml: [^\n]*unknown anchor /, "a value that begins with * is to be in quotes: say quote"],
  [
    /^renders to no YAML: yaml: [^\n]*mapping values are not allowed/,
    'a value with ": " is to be in quotes (say quote), or what toYaml gives has another indentation than what it stands in (say nindent)',
  ],
  [
    /^renders to no YAML: yaml: [^\n]*(?:cannot start any token|found a tab character)/,
    "a value that begins with %, @ or ` is to be in quotes (say quote), and a tab is no indentation",
  ],
];

function withRemedy(reason: string): string {
  for (const [said, remedy] of remedies) {
    const found = said.exec(reason);
    if (found !== null) return `${reason}; ${remedy.replace("$1", () => found[1] ?? "")}`;
  }
  return reason;
}

/** Of the chart as a whole; absent for what a template says. */
function adviceOn(reason: string): string | undefined {
  if (reason.startsWith("chart requires kubeVersion"))
    return `${reason}; set render.helm.kubeVersion to what the clusters run`;
  if (reason.startsWith("values don't meet"))
    return `${withoutValues(reason)}; correct render.helm.values or a file of render.helm.valuesFrom`;
  return undefined;
}
