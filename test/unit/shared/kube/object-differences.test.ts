import { expect, test } from "vitest";
import { objectDifferences } from "#shared/kube/object-differences.ts";

const id = (kind: string, name: string) => ({ apiVersion: "v1", kind, metadata: { name, namespace: "shop" } });
const named = (kind: string, name: string) => ({ group: "", kind, namespace: "shop", name });

test("differences are created, deleted and changed objects with their fields; named items are found by name", () => {
  const pod = (image: string, args: readonly string[], extra: Readonly<Record<string, string>> = {}) => ({
    ...id("Pod", "web"),
    spec: {
      containers: [
        { name: "side", image: "s" },
        { name: "web", image, args, ...extra },
      ],
    },
  });
  expect(
    objectDifferences(
      [pod("web:1", ["a", "b"]), id("ConfigMap", "same"), id("ConfigMap", "old")],
      [id("ConfigMap", "new"), id("ConfigMap", "same"), pod("web:2", ["a", "c"], { "a.b/c": "x" })],
    ),
  ).toEqual([
    { id: named("ConfigMap", "new"), how: "created", fields: [] },
    { id: named("ConfigMap", "old"), how: "deleted", fields: [] },
    {
      id: named("Pod", "web"),
      how: "changed",
      fields: [
        { field: 'spec.containers[web]["a.b/c"]', after: "x" },
        { field: "spec.containers[web].args", before: ["a", "b"], after: ["a", "c"] },
        { field: "spec.containers[web].image", before: "web:1", after: "web:2" },
      ],
    },
  ]);
});

test("the difference of a changed Secret names the keys and no values", () => {
  const secret = (data: Readonly<Record<string, string>>) => ({ ...id("Secret", "s"), data });
  const found = objectDifferences(
    [secret({ same: "b25l", other: "b25l", gone: "b25l" })],
    [secret({ same: "b25l", other: "dHdv", came: "dHdv" })],
  );
  expect(JSON.stringify(found)).not.toMatch(/b25l|dHdv/);
  expect(found[0]?.fields).toEqual([
    { field: "data.came", after: "*** (after)" },
    { field: "data.gone", before: "*** (before)" },
    { field: "data.other", before: "*** (before)", after: "*** (after)" },
  ]);
});

test("integers that a double cannot tell apart are different", () => {
  const value = (data: bigint) => ({ ...id("Widget", "w"), spec: { data } });
  expect(objectDifferences([value(9007199254740993n)], [value(9007199254740992n)])[0]?.fields).toHaveLength(1);
  expect(objectDifferences([value(9007199254740993n)], [value(9007199254740993n)])).toEqual([]);
});
