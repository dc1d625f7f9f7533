import { expect, test } from "vitest";
import { encodeRendering } from "#shared/source/rendering.ts";

const object = { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "a" }, big: 9007199254740993n };

test("a rendering is a list of objects, digit for digit", () => {
  expect(new TextDecoder().decode(encodeRendering([object]).bytes)).toBe(
    '[{"apiVersion":"v1","big":9007199254740993,"kind":"ConfigMap","metadata":{"name":"a"}}]',
  );
});

test("the order of members does not count, the order of objects does", () => {
  const { big, ...rest } = object;
  expect(encodeRendering([{ big, ...rest }]).digest).toBe(encodeRendering([object]).digest);
  const other = { ...object, metadata: { name: "b" } };
  expect(encodeRendering([object, other]).digest).not.toBe(encodeRendering([other, object]).digest);
});
