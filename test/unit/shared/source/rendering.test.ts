import { expect, test } from "vitest";
import { canonicalJson } from "#shared/base/json.ts";
import { decodeRendering, encodeRendering, everyObject } from "#shared/source/rendering.ts";

const object = { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "a" }, big: 9007199254740993n };
const named = (name: string) => ({ ...object, metadata: { name } });
const [other, later] = [named("b"), named("c")];

test("a rendering is a list of objects, digit for digit", () => {
  expect(new TextDecoder().decode(encodeRendering([object]).bytes)).toBe(
    '[{"apiVersion":"v1","big":9007199254740993,"kind":"ConfigMap","metadata":{"name":"a"}}]',
  );
});

test("the order of members does not count, the order of objects does", () => {
  const { big, ...rest } = object;
  expect(encodeRendering([{ big, ...rest }]).digest).toBe(encodeRendering([object]).digest);
  expect(encodeRendering([object, other]).digest).not.toBe(encodeRendering([other, object]).digest);
});

test("what both events have is stored once, and each has what is for it", () => {
  const { bytes, digest } = encodeRendering([object, other], [other, later]);
  const text = new TextDecoder().decode(bytes);
  expect(text).toBe(
    `{"both":[${canonicalJson(other)}],"install":[${canonicalJson(object)}],"upgrade":[${canonicalJson(later)}]}`,
  );
  expect(decodeRendering(text)).toEqual({ install: [other, object], upgrade: [other, later] });
  expect(everyObject(decodeRendering(text))).toEqual([other, object, later]);
  expect(digest).not.toBe(encodeRendering([object, other], [other]).digest);
});

test("what is the same for both is the list alone", () => {
  const alike = encodeRendering([object, other], [{ ...object }, { ...other }]);
  expect(alike.digest).toBe(encodeRendering([object, other]).digest);
  const { install, upgrade } = decodeRendering(new TextDecoder().decode(alike.bytes));
  expect(upgrade).toBe(install);
});
