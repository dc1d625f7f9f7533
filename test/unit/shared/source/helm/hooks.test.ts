import { expect, test } from "vitest";
import { siftHooks } from "#shared/source/helm/hooks.ts";
import type { ManifestDocument } from "#shared/source/yaml/manifest-documents.ts";

function document(hook: string | undefined): ManifestDocument {
  const annotations = hook === undefined ? {} : { "helm.sh/hook": hook };
  const metadata = { name: "a", namespace: "shop", annotations };
  return { object: { apiVersion: "v1", kind: "Pod", metadata }, file: "pods.yaml", document: 1, line: 1 };
}

test.each([undefined, "", "crd-install"])("an object with %s is one like others", (hook) => {
  expect(siftHooks([document(hook)], "Refuse")).toEqual({ documents: [document(hook)], leftOut: [] });
});

test.each(["test", "test-success", "test,post-rollback", " Test "])("one for %s is left out, by name", (hook) => {
  const sifted = siftHooks([document(undefined), document(hook)], "Refuse");
  expect(sifted.documents).toEqual([document(undefined)]);
  expect(sifted.leftOut).toEqual([expect.stringMatching(/^Pod shop\/a is left out: it is a hook of Helm's for /)]);
});

test.each(["pre-install", "post-delete", "test,pre-upgrade", "crd-install,pre-install", "no-such-event"])(
  "one for %s is refused, wherever it is from",
  (hook) => {
    expect(() => siftHooks([document(hook)], "Refuse")).toThrow(
      'pods.yaml:1, document 1, Pod shop/a, metadata.annotations["helm.sh/hook"]: is ',
    );
  },
);

test("those that are refused are all named", () => {
  const hooks = Array.from({ length: 14 }, () => document("pre-install"));
  expect(() => siftHooks([document(undefined), ...hooks], "Refuse")).toThrow(
    `is pre-install (so are the hooks ${Array(10).fill("Pod shop/a").join(", ")} and 3 more); hooks of Helm's are not run yet`,
  );
});

test("whoever does without has them left out, by name", () => {
  expect(siftHooks([document(undefined), document("pre-install,post-delete")], "Omit")).toEqual({
    documents: [document(undefined)],
    leftOut: ["Pod shop/a is left out: it is a hook of Helm's for pre-install, post-delete, which is not run here"],
  });
});
