import { expect, test } from "vitest";
import { objectWarnings } from "#functions/apply/steps/object-reports.ts";
import type { AppliedObject } from "#shared/kube/engine/apply-object.ts";

function applied(kind: string, name: string, warnings: readonly string[], group = ""): AppliedObject {
  const id = { group, kind, namespace: "shop", name };
  const entry = { id, version: "v1", uid: name, resourceVersion: "1", generation: 0, ownedHash: "", valuesHash: "" };
  return { id, outcome: "created", entry, health: { status: "Current", message: "" }, warnings };
}

test("each warning is reported once with its first object, and warnings about Secrets are withheld", () => {
  const objects = [
    applied("Service", "a", ["old", "odd"]),
    applied("Service", "b", ["old"]),
    applied("Service", "c", ["old"]),
    applied("Secret", "s", ["the value hunter2 is weak", "so is hunter3"]),
    applied("Secret", "quiet", []),
    applied("ConfigMap", "fine", []),
    applied("Secret", "v", ["of another kind"], "vault.example.com"),
  ];
  expect(objectWarnings({ objects })).toEqual([
    { object: "Service shop/a and 2 more", message: "old" },
    { object: "Service shop/a", message: "odd" },
    { object: "Secret shop/s", message: "the server's words about a Secret are withheld" },
    { object: "Secret.vault.example.com shop/v", message: "of another kind" },
  ]);
});
