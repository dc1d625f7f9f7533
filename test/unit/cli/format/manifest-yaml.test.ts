import { describe, expect, test } from "vitest";
import { manifestYaml } from "#cli/format/manifest-yaml.ts";
import { parseManifests } from "#shared/source/yaml/manifest-documents.ts";

function read(text: string): unknown {
  return parseManifests(text, "out.yaml")[0]?.object.value;
}

/** What YAML 1.1, or Go's reading of it, takes for something else where it stands bare. */
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
];

describe("YAML that the command prints is read as what was printed", () => {
  test.each([...words, ...marks, 9007199254740993n, -9223372036854775808n, 7, 1.5, true, null, [], {}])(
    "%s",
    (value) => {
      expect(read(manifestYaml({ value }))).toEqual(value);
    },
  );

  test.each([...words, ...marks])("as a key: %s", (key) => {
    expect(read(manifestYaml({ value: { [key]: 1 } }))).toEqual({ [key]: 1 });
  });
});
