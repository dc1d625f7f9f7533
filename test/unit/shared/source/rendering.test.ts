import { expect, test } from "vitest";
import { canonicalJson } from "#shared/base/json.ts";
import { decodeRendering, encodeRendering, everyObject } from "#shared/source/rendering.ts";

const object = { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "a" }, big: 9007199254740993n };
const named = (name: string) => ({ ...object, metadata: { name } });
const [other, later] = [named("b"), named("c")];

test("a rendering is a list of objects, and keeps every digit", () => {
  expect(new TextDecoder().decode(encodeRendering([object]).bytes)).toBe(
    '[{"apiVersion":"v1","big":9007199254740993,"kind":"ConfigMap","metadata":{"name":"a"}}]',
  );
});

test("the digest of a rendering depends on the order of objects, and not on the order of members", () => {
  const { big, ...rest } = object;
  expect(encodeRendering([{ big, ...rest }]).digest).toBe(encodeRendering([object]).digest);
  expect(encodeRendering([object, other]).digest).not.toBe(encodeRendering([other, object]).digest);
});

test("objects for both install and upgrade are stored once", () => {
  const { bytes, digest } = encodeRendering([object, other], [other, later]);
  const text = new TextDecoder().decode(bytes);
  expect(text).toBe(
    `{"both":[${canonicalJson(other)}],"install":[${canonicalJson(object)}],"upgrade":[${canonicalJson(later)}]}`,
  );
  expect(decodeRendering(text)).toEqual({ install: [other, object], upgrade: [other, later] });
  expect(everyObject(decodeRendering(text))).toEqual([other, object, later]);
  expect(digest).not.toBe(encodeRendering([object, other], [other]).digest);
});

test("a rendering that is the same for install and upgrade is stored as one list", () => {
  const alike = encodeRendering([object, other], [{ ...object }, { ...other }]);
  expect(alike.digest).toBe(encodeRendering([object, other]).digest);
  const { install, upgrade } = decodeRendering(new TextDecoder().decode(alike.bytes));
  expect(upgrade).toBe(install);
});
