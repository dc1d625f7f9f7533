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

test("a member named __proto__ is data", () => {
  expect(canonicalJson(parseJson('{"__proto__":{"x":1},"a":2}'))).toBe('{"__proto__":{"x":1},"a":2}');
});
