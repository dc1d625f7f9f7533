import { describe, expect, test } from "vitest";
import { locateHelm } from "#shared/adapters/render/helm-binary.ts";
import { HelmTemplate } from "#shared/adapters/render/helm-template.ts";
import { renderObjects } from "#shared/adapters/render/render-objects.ts";
import type { HelmRelease } from "#shared/source/helm/helm-release.ts";

const kustomize = { build: () => Promise.reject(new Error("no kustomization was expected")) };
const helm = new HelmTemplate({ helm: () => locateHelm("") });

const values = {
  s: "hunter2 s3cr3t",
  password: "hunter2-s3cr3t-hunter2",
  short: "k9q",
  pin: 13371337,
  unclosed: "{{ hunter2 s3cr3t",
  field: "{{ .hunter2.s3cr3t }}",
  fails: '{{ fail "hunter2" }}',
  place: "small/templates/hunter2.yaml:3:4: s3cr3t",
  url: "http://hunter2:s3cr3t@host:%zz",
  list: ["hunter2"],
  map: { hunter2: "s3cr3t" },
  nested: { a: "hunter2" },
  regex: "(hunter2[",
  yaml: "hunter2: !!int s3cr3t",
  percent: "%hunter2",
};
/** Texts that no message may contain: parts of the values, and the results of functions on them. */
const hidden = /hunter2|s3cr3t|1337|aHVudGVy|HUNTER/;

async function saidOf(template: string): Promise<string> {
  const files = Object.entries({
    "Chart.yaml": "apiVersion: v2\nname: small\nversion: 0.1.0\n",
    "templates/x.yaml": template,
    "config.ini": "hunter2",
  }).map(([path, text]) => ({ path, executable: false, content: new TextEncoder().encode(text) }));
  const release: HelmRelease = {
    releaseName: "web",
    namespace: "shop",
    crds: "CreateReplace",
    lookup: "Refuse",
    hooks: "Honor",
    values: JSON.stringify(values),
  };
  return renderObjects({ files, path: ".", render: { helm: release } }, { kustomize, helm }).then(
    () => "rendered",
    (error: unknown) => String(error),
  );
}

const at = (expression: string) =>
  `apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\ndata:\n  k: {{ ${expression} }}\n`;

describe("an error of a template function", () => {
  const rows: readonly (readonly [expression: string, said: string])[] = [
    [
      'mustToDate "2006-01-02" .Values.s',
      'at <mustToDate "2006-01-02" .Values.s>: error calling mustToDate: parsing time "***" as "2006-01-02": cannot parse "***" as "***"',
    ],
    [
      'semverCompare .Values.s "1.0.0"',
      'at <semverCompare .Values.s "1.0.0">: error calling semverCompare: improper constraint: ***',
    ],
    [
      "tpl .Values.unclosed .",
      'error calling tpl: cannot parse template "{{ ***": template: gotpl:1: function "***" not defined',
    ],
    ["tpl .Values.field .", "nil pointer evaluating interface {}.***"],
    ["tpl .Values.fails .", "the chart says: ***"],
    ["include .Values.s .", 'no template "***" associated with template "gotpl"'],
    ["urlParse .Values.url", "error calling urlParse: unable to parse url: parse"],
    ["fail .Values.s", "the chart says: ***"],
    ["fail .Values.place", "the chart says: ***"],
    ["required .Values.s .Values.none", "the chart says: ***"],
    ['fail (.Files.Get "config.ini")', "the chart says: ***"],
    ["range .Values.s }}{{ end", "at <.Values.s>: range can't iterate over ***"],
    ["range .Values.pin }}{{ end", "range can't iterate over ***"],
    ['index .Values.list "a"', "error calling index: cannot index slice/array with type string"],
    ["fromYaml .Values.yaml | toString | fail", "the chart says: "],
    ["fromToml .Values.s | toString | fail", "the chart says: "],
    ["mustFromJson .Values.s", "error calling mustFromJson: invalid character"],
    ['regexReplaceAll .Values.regex "a" "b"', "error parsing regexp: missing closing"],
    ["mustDateModify .Values.s now", "mustDateModify: time: invalid duration"],
    ["genSelfSignedCert .Values.s (list .Values.s) nil 365", "error calling genSelfSignedCert: error parsing ip: ***"],
    ['printf "%d" .Values.s | fail', "the chart says: "],
    ["printf .Values.s | upper | fail", "the chart says: ***"],
    ["b64enc .Values.s | fail", "the chart says: ***"],
    ["fail (toYaml .Values.map)", "the chart says: ***: ***"],
    ["fail (print .Values.pin)", "the chart says: ***"],
    ["fail .Values.s | quote", "the chart says: ***"],
    ["split 1 .Values.pin", "expected string; found 1"],
    ["call .Values.s", "error calling call: non-function .Values.s of type string"],
    ["dict .Values.s | toJson | fail", "the chart says: "],
  ];
  test.each(rows)("the error of {{ %s }} shows no part of a value", async (expression, said) => {
    const message = await saidOf(at(expression));
    expect(message).toContain(said);
    expect(message).toMatch(/templates\/x\.yaml:5/);
    expect(message).not.toMatch(hidden);
  });
});

describe("a value that a function cuts, rewrites or hashes", () => {
  const rows: readonly (readonly [expression: string, said: string])[] = [
    ["trunc 6 .Values.password", "the chart says: ***"],
    ["substr 1 9 .Values.password", "the chart says: ***"],
    ["abbrev 9 .Values.password", "the chart says: ***..."],
    ['printf "%.5s" .Values.password', "the chart says: ***"],
    ['printf "%x" .Values.password', "the chart says: ***"],
    ['regexFind "[0-9].*" .Values.password', "the chart says: ***"],
    ['wrapWith 5 "\\n" .Values.password', "the chart says: ***"],
    ['replace "-" "_" .Values.password', "the chart says: ***"],
    ["camelcase .Values.password", "the chart says: ***"],
    ["snakecase .Values.password", "the chart says: ***"],
    ["title .Values.password", "the chart says: ***"],
    ["swapcase .Values.password", "the chart says: ***"],
    ["nospace .Values.s", "the chart says: ***"],
    ["initials .Values.s", "the chart says: ***"],
    ['b64enc (print "user:" .Values.password)', "the chart says: ***"],
    ["b32enc .Values.password", "the chart says: ***===="],
    ["sha256sum (print .Values.password .Values.pin)", "the chart says: ***"],
    ["adler32sum .Values.password", "the chart says: ***"],
    ['htpasswd "u" .Values.password', "the chart says: u:***"],
    ["int .Values.pin | add 1 | print", "the chart says: ***"],
    ["print .Values.short", "the chart says: ***"],
  ];
  test.each(rows)("the result of {{ %s }} is hidden in an error", async (expression, said) => {
    const message = await saidOf(at(`${expression} | fail`));
    // A hash may end with a dot, which is never hidden.
    expect([said, `${said}.`].some((end) => message.endsWith(end))).toBe(true);
  });
});

describe("the remedy in an error of a chart", () => {
  const top = "inside with and range the dot is their argument: write $ before it, such as $.Values.name";
  const rows: readonly (readonly [expression: string, said: string])[] = [
    ["with .Values.map }}{{ .Values.s }}{{ end", `at <.Values.s>: nil pointer evaluating interface {}.s; ${top}`],
    [
      "range .Values.list }}{{ .Release.Name }}{{ end",
      `at <.Release.Name>: can't evaluate field Release in type interface {}; ${top}`,
    ],
    [
      ".Values.none.tag",
      "at <.Values.none.tag>: nil pointer evaluating interface {}.tag; the value before .tag is not set: set it in render.helm.values or in a file of render.helm.valuesFrom",
    ],
    [
      'include "small.name" .',
      'no template "small.name" associated with template "gotpl"; define it in a template, or commit the chart that defines it to charts/',
    ],
    ["range .Values.pin }}{{ end", "range can't iterate over ***; its argument must be a list or a map"],
    [
      "b64enc .Values.pin",
      "at <.Values.pin>: wrong type for value; expected string; got float64; put the value in quotes, or use toString",
    ],
  ];
  test.each(rows)("the error of {{ %s }} says how to correct it", async (expression, said) => {
    const message = await saidOf(at(expression));
    expect(message).toMatch(/templates\/x\.yaml:5/);
    expect(message.endsWith(said)).toBe(true);
  });

  const templates: readonly (readonly [template: string, said: string])[] = [
    [
      "{{ if .Values.s }}\nkind: A\n",
      "x.yaml:3: is not a valid template: unexpected EOF; an if, range, with or define has no {{ end }}",
    ],
    [
      "kind: A\nname: {{ .Values.yaml }}\n",
      'renders to invalid YAML: yaml: line 2: mapping values are not allowed in this context; put a value that contains ": " in quotes (use quote), or indent the output of toYaml like the lines around it (use nindent)',
    ],
    ["kind: *{{ first .Values.list }}", "referenced; put a value that begins with * in quotes: use quote"],
    [
      "kind: A\nname: {{ .Values.percent }}\n",
      "put a value that begins with %, @ or ` in quotes (use quote), and indent with spaces, not with tabs",
    ],
  ];
  test.each(templates)("the error of the document %j says how to correct it", async (template, said) => {
    const message = await saidOf(template);
    expect(message).toContain("templates/x.yaml");
    expect(message.slice(-said.length)).toBe(said);
  });
});

describe("an error in a rendered document", () => {
  const rows: readonly (readonly [template: string, said: string])[] = [
    ["kind: *{{ first .Values.list }}", "yaml: unknown anchor '***' referenced"],
    ["kind: {{ toJson .Values.map }}", "cannot unmarshal object into Go struct field SimpleHead.kind of type string"],
    ["kind: A\napiVersion: v1\nmetadata: {name: x, labels: {a: [{{ .Values.s }}]}}", "labels"],
    ["kind: A\napiVersion: v1\nmetadata: {name: x, annotations: {{ .Values.s }}}", "annotations"],
    ["kind: A\napiVersion: v1\nmetadata: {name: x}\ndata: {{ .Values.s }}\n  a: b", "yaml: line 5: mapping values"],
    ["kind: A\napiVersion: v1\nmetadata: {name: x}\na: !!int {{ .Values.s }}", "int"],
    ["kind: A\napiVersion: v1\nmetadata: {name: x}\na: !!binary {{ .Values.s }}", "binary"],
  ];
  test.each(rows)("the error of the document %j shows no part of a value", async (template, said) => {
    const message = await saidOf(template);
    expect(message).toContain(said);
    expect(message).not.toMatch(hidden);
  });
});

describe("a message of a chart's author", () => {
  const rows: readonly (readonly [expression: string, said: string])[] = [
    [
      'fail "Set host: it\'s required, e.g. host=a.example.com (see https://example.com/docs#host)."',
      "the chart says: Set host: it's required, e.g. host=a.example.com (see https://example.com/docs#host).",
    ],
    ['required "say which host" .Values.host', "the chart says: say which host"],
    ['fail (printf "password %s is too short" .Values.s)', "the chart says: password *** is too short"],
    ['fail (printf "mode %q: unknown, got:%d" .Values.s 12)', 'the chart says: mode "***": unknown, got:12'],
    ['fail "one\\ntwo\\tthree"', "the chart says: one\ntwo\tthree"],
    ['fail "größer als \\"null\\""', 'the chart says: größer als "null"'],
  ];
  test.each(rows)("the message of {{ %s }} is shown, with *** for values", async (expression, said) => {
    expect(await saidOf(at(expression))).toContain(said);
  });
});
