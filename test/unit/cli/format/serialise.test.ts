import { expect, test } from "vitest";
import { serialise } from "#cli/format/serialise.ts";
import { parseJson } from "#shared/base/json.ts";
import { parseDocuments } from "#shared/source/yaml/yaml.ts";

test("an integer that a double cannot hold keeps all its digits in JSON and YAML", () => {
  const value = parseJson('{"b": 9007199254740993, "a": [18446744073709551615, -9223372036854775808, 1, 1.5]}');
  expect(serialise(value, "yaml")).toBe(
    "a:\n  - 18446744073709551615\n  - -9223372036854775808\n  - 1\n  - 1.5\nb: 9007199254740993\n",
  );
  expect(parseDocuments(serialise(value, "yaml"), "out")[0]?.value).toEqual(value);
  expect(serialise(value, "json")).toContain('"b": 9007199254740993');
});
