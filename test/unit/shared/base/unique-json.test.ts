import { expect, test } from "vitest";
import { parseUniqueJson } from "#shared/base/unique-json.ts";

test.each([
  '{"a":1,"b":{"a":[{"a":2},{"a":3}]}}',
  '"a:b"',
  '{"a":"\\":"}',
  '{"__proto__":1}',
  "[]",
  '{" a ":{"":""}}',
  "1",
])("%s is read as JSON.parse reads it", (text) => {
  expect(parseUniqueJson(text)).toEqual(JSON.parse(text));
});

test.each(['{"a":1,"a":1}', '[{"b":{"c":1 , "c" : 2}}]', '{"a":1,"\\u0061":2}', '{"__proto__":1,"__proto__":2}'])(
  "%s is refused because a member stands twice",
  (text) => {
    expect(() => parseUniqueJson(text)).toThrow("an object has a member twice");
  },
);

test("deep nesting ends as JSON.parse ends it", () => {
  const text = `${"[".repeat(100_000)}${"]".repeat(100_000)}`;
  expect(() => parseUniqueJson(text)).not.toThrow(/stack/);
});
