import { describe, expect, test } from "vitest";
import { manifestYaml } from "#cli/output/manifest-yaml.ts";
import { plainText } from "#shared/base/plain-text.ts";
import { parseManifests } from "#shared/source/yaml/manifest-documents.ts";

function read(text: string): unknown {
  return parseManifests(text, "out.yaml")[0]?.object.value;
}

/** Texts that YAML 1.1, or Go's parser of it, takes for another type when they stand without quotes. */
const words = [
  "yes",
  "on",
  "n",
  "1_000",
  "0x1F",
  "0o7",
  "012",
  "0b1",
  "1e3",
  ".5",
  "+1",
  "~",
  "null",
  "true",
  "<<",
  "=",
];
const marks = [
  "",
  " a",
  "a: b",
  "#",
  "-",
  "a\nb\n",
  "\ta",
  "a\r\nb",
  "'",
  '"',
  "\u2028",
  "\ufeff",
  "12:30:45",
  "2001-01-01",
  "a\u202eb",
  "\u2066a\u2069: b\nc\n",
  "\u200f",
  "obeyed-0- \u061c obeyed",
  "\\u202e \u202d\u0007",
];

describe("YAML that the command prints", () => {
  test.each([...words, ...marks, 9007199254740993n, -9223372036854775808n, 7, 1.5, true, null, [], {}])(
    "a parser reads back the same value: %s",
    (value) => {
      expect(read(manifestYaml({ value }))).toEqual(value);
    },
  );

  test("printed YAML has no control character that a terminal obeys", () => {
    const texts = [...marks, "\u0085", "\u001b[2J", "x\u009b31m\n".repeat(3)];
    const yaml = manifestYaml({ texts, map: Object.fromEntries(texts.map((text) => [text, { text }])) });
    expect(plainText(yaml)).toBe(yaml);
    expect(manifestYaml({ a: "b\u202ec\u202c" })).toBe('a: "b\\u202ec\\u202c"\n');
  });

  test.each([...words, ...marks])("a parser reads back the same key: %s", (key) => {
    expect(read(manifestYaml({ value: { [key]: 1 } }))).toEqual({ [key]: 1 });
  });
});
