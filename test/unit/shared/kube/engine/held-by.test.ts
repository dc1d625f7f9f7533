import { expect, test } from "vitest";
import { defined } from "#shared/base/defined.ts";
import { heldBy } from "#shared/kube/engine/held-by.ts";
import type { KubeObject } from "#shared/kube/kube-object.ts";

const object = (finalizers?: readonly string[]): KubeObject => ({
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: { name: "c", ...defined({ finalizers }) },
});

test.each([
  [undefined, ""],
  [[], ""],
  [["a"], ", held by a"],
  [["a", "b", "c", "d"], ", held by a, b, c and 1 more"],
])("the finalizers %j are shown as %j", (finalizers, words) => {
  expect(heldBy(object(finalizers))).toBe(words);
});
