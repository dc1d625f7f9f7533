import { describe, expect, test } from "vitest";
import { stringifyJson } from "#shared/base/json.ts";
import { lineFinder } from "#shared/source/yaml/line-finder.ts";
import { parseManifests } from "#shared/source/yaml/manifest-documents.ts";
import { ManifestError } from "#shared/source/yaml/manifest-error.ts";
import { parseDocuments } from "#shared/source/yaml/yaml.ts";
import { scalars } from "#test/support/yaml-scalars.ts";

/** Whole documents; the results of several documents stand one after the other. */
const documents: readonly (readonly [legend: string, text: string, json: string])[] = [
  ["keys become strings", "1: a\n1.5: b\ntrue: x", '{"1":"a","1.5":"b","true":"x"}'],
  ["YAML 1.1 booleans are keys too", "yes: 1", '{"true":1}'],
  ["a key named __proto__ is a key", "__proto__: 1", '{"__proto__":1}'],
  ["anchors expand", "a: &x {p: 1}\nb: *x", '{"a":{"p":1},"b":{"p":1}}'],
  ["a merge key gives way", "b: &b {p: 1, q: 2}\nc:\n  <<: *b\n  q: 3", '{"b":{"p":1,"q":2},"c":{"p":1,"q":3}}'],
  ["the first of merged maps wins", "c:\n  <<: [{p: 1},{p: 2, r: 3}]", '{"c":{"p":1,"r":3}}'],
  ["blocks", "a: |\n  x\n   y\nb: >\n  p\n  q\n", '{"a":"x\\n y\\n","b":"p q\\n"}'],
  ["a tab after the colon", "a:\t1", '{"a":1}'],
  ["a byte order mark", "\uFEFFa: 1", '{"a":1}'],
  ["Windows line ends", "a: 1\r\nb:\r\n- x\r\n", '{"a":1,"b":["x"]}'],
  ["a list", "- 1\n- 2", "[1,2]"],
  ["a single-quoted text over lines", "a: 'x\n  y'", '{"a":"x y"}'],
  [
    "several documents, empty ones skipped",
    "---\n---\n# only a comment\n---\na: 1\n--- {b: 2}\n---\nnull",
    '{"a":1}{"b":2}',
  ],
  ["nothing at all", "", ""],
  [
    "JSON with surrogate escapes",
    '{"a": "\\ud83d\\ude00",\n\t"b": 12345678901234567890}',
    '{"a":"😀","b":12345678901234567890}',
  ],
];

const refused: readonly (readonly [legend: string, text: string, message: string])[] = [
  ["a duplicate key", "a: 1\nb: 1\na: 2", "f.yaml:3:1: duplicate key"],
  ["a nested duplicate key", "a: {b: 1, b: 2}", "f.yaml:1:11: duplicate key"],
  ["keys that are equal as strings", "1: a\n'1': b", "f.yaml:2:2: duplicate key"],
  ["a null key", "~: x", "f.yaml:1:1: unsupported map key: null"],
  ["a surrogate escape", 'a: "\\ud83d\\ude00"', "f.yaml:1:5: invalid Unicode escape"],
  ["not a number", "a: 1\nb: [.NaN]", "f.yaml:2:5: unsupported value: .NaN"],
  ["an anchor that contains itself", "a: &a [*a]", "f.yaml:1:9: anchor a contains itself"],
  ["YAML 1.2 by name", "%YAML 1.2\n---\na: 1", "f.yaml:1:1: %YAML 1.2 is not the version that kubectl reads"],
  [
    "an unknown alias",
    "a: *b",
    "* refers to an anchor, but no anchor of this name comes before it; put a text that begins with * in quotes (unidentified alias)",
  ],
  ["depth without end", `a: ${"[".repeat(200)}`, "nesting exceeded maxDepth"],
  ["an unclosed quote", 'a: "b\n', 'f.yaml:2:1: unclosed " in line 1: deficient indentation'],
  ["an unclosed brace", "a: 1 # {\nb: '['\nc: {d: \"}\", e: [1]\nf: 2\n", "f.yaml:4:1: unclosed { in line 3: "],
  ["an unclosed bracket of JSON", '{"a": [1, ', "unclosed [ in line 1: "],
];

function decode(text: string): string {
  return parseDocuments(text, "f.yaml")
    .map((document) => stringifyJson(document.value))
    .join("");
}

describe("scalars as kubectl decodes them", () => {
  test.each(scalars)("the scalar %s is read as %s", (scalar, json) => {
    if (json === "ERR") expect(() => decode(`k: ${scalar}`)).toThrow(ManifestError);
    else expect(decode(`k: ${scalar}`)).toBe(`{"k":${json}}`);
  });
});

describe("documents as kubectl decodes them", () => {
  test.each(documents)('the document "%s" is read as kubectl reads it', (_legend, text, json) => {
    expect(decode(text)).toBe(json);
  });

  test.each(refused)("a document with %s is refused, with its place", (_legend, text, message) => {
    expect(() => decode(text)).toThrow(message);
  });

  test("an alias bomb is refused before it is written out", () => {
    const levels = Array.from({ length: 9 }, (_, n) => `l${n + 1}: &l${n + 1} [${Array(9).fill(`*l${n}`).join(",")}]`);
    expect(() => decode(["l0: &l0 [x]", ...levels].join("\n"))).toThrow("aliases would expand to more than");
  });

  test("every document has its number and line", () => {
    const places = parseManifests("# head\na: 1\n---\n---\nb: 1\n", "f.yaml");
    expect(places).toEqual([
      { object: { a: 1 }, file: "f.yaml", document: 1, line: 2 },
      { object: { b: 1 }, file: "f.yaml", document: 3, line: 5 },
    ]);
  });

  test("a document that is not a map is refused", () => {
    expect(() => parseManifests("a: 1\n---\n- 1", "f.yaml")).toThrow("f.yaml:3, document 2: got a list");
    expect(() => parseManifests("hello", "f.yaml")).toThrow('got the string "hello"');
  });
});

describe("lineFinder", () => {
  const text =
    "kind: A\nspec:\n  git:\n    url: x\n    ref: {semver: y}\n  list:\n  - a: 1\n    b: 2\n  - c\n---\nkind: X\nspec:\n  x: 1\n";
  const rows: readonly (readonly [document: number, path: readonly (string | number)[], line: number])[] = [
    [1, [], 1],
    [1, ["spec", "git", "ref", "semver"], 5],
    [1, ["spec", "git", "missing"], 3],
    [1, ["spec", "list", 0, "b"], 8],
    [1, ["spec", "list", 1], 9],
    [2, ["spec", "x"], 13],
    [2, ["status"], 11],
  ];
  test.each(rows)("document %i %j is on line %i", (document, path, line) => {
    expect(lineFinder(text)(document, path)).toBe(line);
  });
});
