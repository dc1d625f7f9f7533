import { describe, expect, test } from "vitest";
import { canonicalJson, parseJson, stringifyJson } from "#shared/base/json.ts";

describe("integers keep every digit", () => {
  const texts = [
    '{"a":9007199254740993}',
    '{"a":[-9223372036854775808,18446744073709551615]}',
    '{"a":"9007199254740993","b":1.5,"c":1e21}',
  ];
  test.each(texts)("%s survives a round trip", (text) => {
    expect(parseJson(stringifyJson(parseJson(text)))).toEqual(parseJson(text));
  });
  test("an unsafe integer is a bigint and is written as it was", () => {
    expect(parseJson('{"a":9007199254740993}')).toEqual({ a: 9007199254740993n });
    expect(stringifyJson(parseJson('{"a":9007199254740993}'))).toBe('{"a":9007199254740993}');
  });
  test("a digit string is no number", () => {
    expect(parseJson('{"a":"9007199254740993"}')).toEqual({ a: "9007199254740993" });
  });
});

test("canonical text does not depend on member order", () => {
  expect(canonicalJson({ b: [{ d: 1, c: 2n }], a: null })).toBe('{"a":null,"b":[{"c":2,"d":1}]}');
});

test.each([
  ["in order", '{"a":{"b":1,"c":[{"d":1,"e":{}}]},"f":null}', '{"a":{"b":1,"c":[{"d":1,"e":{}}]},"f":null}'],
  ["out of order at the top alone", '{"f":null,"a":{"b":1}}', '{"a":{"b":1},"f":null}'],
  ["out of order far down alone", '{"a":{"b":[1,{"d":1,"c":{}}]},"f":[]}', '{"a":{"b":[1,{"c":{},"d":1}]},"f":[]}'],
  ["out of order after what is in order", '{"a":1,"b":{"y":1,"x":2},"c":3}', '{"a":1,"b":{"x":2,"y":1},"c":3}'],
  ["a capital before, a letter beyond ASCII behind", '{"b":1,"é":2,"B":3}', '{"B":3,"b":1,"é":2}'],
])("canonical text of members %s", (_what, text, expected) => {
  const value = parseJson(text);
  expect(canonicalJson(value)).toBe(expected);
  expect(stringifyJson(value)).toBe(text);
});

test("a member named __proto__ is data", () => {
  expect(canonicalJson(parseJson('{"__proto__":{"x":1},"a":2}'))).toBe('{"__proto__":{"x":1},"a":2}');
  expect(canonicalJson(parseJson('{"a":2,"__proto__":{"y":1,"x":1}}'))).toBe('{"__proto__":{"x":1,"y":1},"a":2}');
});
