import { expect, test } from "vitest";
import { sha256 } from "#shared/domain/digest.ts";
import { stringifyJson } from "#shared/domain/json.ts";
import { decodeRendering, encodeRendering } from "#shared/domain/rendering.ts";

const object = { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "a" }, big: 9007199254740993n };

test("a rendering comes back digit for digit", () => {
  const { digest, bytes } = encodeRendering([object]);
  expect(stringifyJson(decodeRendering(bytes, digest))).toBe(
    '[{"apiVersion":"v1","big":9007199254740993,"kind":"ConfigMap","metadata":{"name":"a"}}]',
  );
});

test("the order of members does not count, the order of objects does", () => {
  const { big, ...rest } = object;
  expect(encodeRendering([{ big, ...rest }]).digest).toBe(encodeRendering([object]).digest);
  const other = { ...object, metadata: { name: "b" } };
  expect(encodeRendering([object, other]).digest).not.toBe(encodeRendering([other, object]).digest);
});

test("a damaged or newer rendering is refused", () => {
  const { digest, bytes } = encodeRendering([object]);
  expect(() => decodeRendering(bytes.with(3, 0x20), digest)).toThrow("was damaged in storage");
  const newer = new TextEncoder().encode('{"objects":[],"schema":2}');
  expect(() => decodeRendering(newer, sha256(newer))).toThrow("has another schema than 1");
});
