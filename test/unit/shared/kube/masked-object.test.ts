import { describe, expect, test } from "vitest";
import { maskedObject, maskedPair } from "#shared/kube/masked-object.ts";

const lastApplied = "kubectl.kubernetes.io/last-applied-configuration";

describe("an object as people may be shown it", () => {
  test("has no value of a Secret, nor what kubectl keeps of it, and says which there are", () => {
    const annotations = { [lastApplied]: '{"data":{"a":"c2VjcmV0"}}', team: "shop" };
    const secret = {
      apiVersion: "v1",
      kind: "Secret",
      metadata: { name: "a", annotations },
      type: "Opaque",
      data: { a: "c2VjcmV0", b: "" },
      stringData: { c: "secret" },
    };
    const shown = maskedObject(secret);
    expect(JSON.stringify(shown)).not.toMatch(/secret|c2VjcmV0/);
    expect(shown).toEqual({
      apiVersion: "v1",
      kind: "Secret",
      metadata: { name: "a", annotations: { [lastApplied]: "***", team: "shop" } },
      type: "Opaque",
      data: { a: "***", b: "***" },
      stringData: { c: "***" },
    });
  });

  test("whose values are no map has none either", () => {
    expect(maskedObject({ apiVersion: "v1", kind: "Secret", data: "c2VjcmV0" }).data).toBe("***");
  });

  test("has nothing of a Secret's members whose names are written wrong", () => {
    const secret = { apiVersion: "v1", kind: "Secret", type: "Opaque", immutable: true };
    const [before, after] = ["hunter2-a", "hunter2-b"].map((p) => ({ ...secret, stringdata: { p }, Data: p }));
    const shown = { ...secret, stringdata: { p: "***" }, Data: "***" };
    expect(maskedObject({ ...before, metadata: { name: "a" } })).toEqual({ ...shown, metadata: { name: "a" } });
    expect(maskedPair(before ?? {}, after ?? {})).toEqual([
      { ...shown, stringdata: { p: "*** (before)" } },
      { ...shown, stringdata: { p: "*** (after)" } },
    ]);
  });

  test.each([
    { apiVersion: "v1", kind: "ConfigMap", data: { a: "plain" } },
    { apiVersion: "secrets.example.com/v1", kind: "Secret", data: { a: "plain" } },
  ])("is as it is where it is no Secret: $apiVersion $kind", (object) => {
    expect(maskedObject(object)).toBe(object);
  });
});
