import { at, type Chart, chartRefused, hasTemplate } from "#shared/source/helm/chart.ts";
import { chartFile } from "#shared/source/helm/chart-folders.ts";
import { withoutWordsOfValues } from "#shared/source/helm/helm-words.ts";
import { fileOf } from "#shared/source/helm/rendered-output.ts";
import { ManifestError, type ManifestPlace } from "#shared/source/yaml/manifest-error.ts";

const maxReasonLength = 1500;
/** A place in a template, in each of the forms that Helm writes. The last match is the innermost place. */
const places = /(?:^|[(\s])([^\s()"<>]+\/templates\/[^()"<>\n]*?):(\d+)(?::(\d+))?(?=[):\s]|$)/gm;

/** A call through a template that replaces a function. It is not a file of the chart. */
const fixedFrames =
  /(?:error calling include:\s*)?(?:template: )?[^\s()"<>]+\/templates\/_starling\.fixed\.tpl:\d+:\d+:?\s+executing "[^"]*" at <.*?>:\s*/g;

/** Turns Helm's output into an error with the file of the artifact, the line, and what to do. */
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
  const reason = adviceOn(reasonOf(text)) ?? withRemedy(shownReason(chart, text));
  return new ManifestError(
    "ChartFailed",
    place ?? { file: at(chart.folder, chartFile) },
    reason.slice(0, maxReasonLength),
  );
}

function shownReason(chart: Chart, text: string): string {
  const reason = reasonOf(text);
  const whose = reason.startsWith(chartSays) ? "chart" : "helm";
  const shown = withoutWordsOfValues(chart, reason.slice(whose === "chart" ? chartSays.length : 0), whose);
  return whose === "chart" ? chartSays + shown : shown;
}

/**
 * The last place that names a template of the chart. A text can contain something that looks like a place but is a
 * value.
 */
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

/**
 * `lookup` is replaced by a call of `fail` that always fails, so that Helm itself reports when a template reaches it.
 */
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
    "calls lookup, which finds nothing while Starling renders: a chart that keeps a password in the cluster would create a new one each time. " +
      "Set the values with which the chart needs no lookup, such as the name of an existing Secret, or set render.helm.lookup: Empty if an empty result is right",
  );
}

/** A call of a replaced function inside a text that `tpl` evaluates. */
function hiddenIn(text: string, place: ManifestPlace | undefined): ManifestError | undefined {
  const [, name] = /\bstarling\.hidden\.(\w+)/.exec(text) ?? [];
  if (name === undefined || place === undefined) return undefined;
  return chartRefused(
    place,
    `evaluates with tpl a text that calls ${name}: the result would change with each rendering, and Starling cannot fix it there. ` +
      "Put the call into a template, or write the value instead of the text",
  );
}

/** The reason behind the places, which the error shows separately. */
function reasonOf(text: string): string {
  const byTemplate = /^execution error at \([^)]*\): ([\s\S]*)$/.exec(text);
  if (byTemplate !== null) return `${chartSays}${byTemplate[1]}`;
  const parse = /^parse error at \([^)]*\): ([\s\S]*)$/.exec(text);
  if (parse !== null) return `is not a valid template: ${parse[1]}`;
  const invalid = /^YAML parse error on [^\n]+?: (?:error converting YAML to JSON: )?([\s\S]*)$/.exec(text);
  if (invalid !== null) return `renders to invalid YAML: ${invalid[1]}`;
  const frames = [...text.matchAll(/executing "[^"]*" at (<[\s\S]*?>):\s+/g)].at(-1);
  if (frames !== undefined) return `at ${frames[1]}: ${text.slice(frames.index + frames[0].length)}`;
  return text;
}

const chartSays = "the chart says: ";

/** The messages of a schema that show no value, because any value can be a secret. */
const withoutValue =
  /^(?:got [a-z]+, want [a-z ,]+|(?:min|max)(?:Length|Items|Properties): got \d+, want \d+|missing propert.*|additional properties .* not allowed|properties .* required, if .* exists|items at \d+ and \d+ are equal|no items match contains schema|false schema|'[A-Za-z]+' failed(?:, subschemas [\d, ]+ matched)?)$/;
const oneSaid = /^(\s*- at '(?:[^'\\]|\\.)*'(?: \[[^\]\n]*\])?: )(.*)$/gm;

/** The places where values do not meet a schema, and the requirements, without the values themselves. */
function withoutValues(reason: string): string {
  return reason.replaceAll(oneSaid, (_line, at: string, said: string) => {
    if (withoutValue.test(said)) return at + said;
    const [, limit, desired] = /^([A-Za-z]+): got .*, want (.*)$/.exec(said) ?? [];
    if (limit !== undefined) return `${at}${limit}: want ${desired}`;
    const [, rule] = /^.*((?:does not match pattern|value must be) .*)$/.exec(said) ?? [];
    return at + (rule ?? "does not match the schema");
  });
}

/** The fields of a template's outermost dot. Inside `with` and `range` the dot is their argument. */
const top = "(?:Values|Release|Chart|Capabilities|Files|Template)";
const otherDot = "inside with and range the dot is their argument: write $ before it, such as $.Values.name";
/** Pairs of a message of Helm's and its remedy. The first match counts. */
const remedies: readonly (readonly [RegExp, string])[] = [
  [new RegExp(`^at <\\.${top}\\.([\\w-]+)[^>]*>: nil pointer evaluating [^\\n]*\\.\\1$`), otherDot],
  [new RegExp(`^at <\\.${top}[.>][^\\n]*: can't evaluate field ${top} in type `), otherDot],
  [
    /^at <[^>]*\.Values\.[^\n]*: nil pointer evaluating interface \{\}\.([\w-]+)$/,
    "the value before .$1 is not set: set it in render.helm.values or in a file of render.helm.valuesFrom",
  ],
  [
    /: no template "[^"]*" associated with template /,
    "define it in a template, or commit the chart that defines it to charts/",
  ],
  [/^is not a valid template: unexpected EOF/, "an if, range, with or define has no {{ end }}"],
  [/: range can't iterate over /, "its argument must be a list or a map"],
  [
    /: wrong type for value; expected string; got (?:float64|int64|int|bool)$/,
    "put the value in quotes, or use toString",
  ],
  [/^renders to invalid YAML: yaml: [^\n]*unknown anchor /, "put a value that begins with * in quotes: use quote"],
  [
    /^renders to invalid YAML: yaml: [^\n]*mapping values are not allowed/,
    'put a value that contains ": " in quotes (use quote), or indent the output of toYaml like the lines around it (use nindent)',
  ],
  [
    /^renders to invalid YAML: yaml: [^\n]*(?:cannot start any token|found a tab character)/,
    "put a value that begins with %, @ or ` in quotes (use quote), and indent with spaces, not with tabs",
  ],
];

function withRemedy(reason: string): string {
  for (const [said, remedy] of remedies) {
    const found = said.exec(reason);
    if (found !== null) return `${reason}; ${remedy.replace("$1", () => found[1] ?? "")}`;
  }
  return reason;
}

/** The remedy for a problem of the whole chart; undefined for a problem in a template. */
function adviceOn(reason: string): string | undefined {
  if (reason.startsWith("chart requires kubeVersion"))
    return `${reason}; set render.helm.kubeVersion to the clusters' version`;
  if (reason.startsWith("values don't meet"))
    return `${withoutValues(reason)}; correct render.helm.values or a file of render.helm.valuesFrom`;
  return undefined;
}
