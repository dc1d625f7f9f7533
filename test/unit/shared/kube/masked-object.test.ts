import { describe, expect, test } from "vitest";
import { maskedObject, maskedPair } from "#shared/kube/masked-object.ts";

const lastApplied = "kubectl.kubernetes.io/last-applied-configuration";

describe("an object as Starling shows it to people", () => {
  test("a Secret is shown with its keys and without its values, also in kubectl's annotation", () => {
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

  test("a Secret whose data is not a map is shown without it", () => {
    expect(maskedObject({ apiVersion: "v1", kind: "Secret", data: "c2VjcmV0" }).data).toBe("***");
  });

  test("misspelled fields of a Secret are shown without their values", () => {
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
  ])("an object that is not a Secret is not changed: $apiVersion $kind", (object) => {
    expect(maskedObject(object)).toBe(object);
  });
});
