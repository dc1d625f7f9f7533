import { expect, test } from "vitest";
import { siftHooks } from "#shared/source/helm/hooks.ts";
import type { ManifestDocument } from "#shared/source/yaml/manifest-documents.ts";

function document(hook: string | undefined, name: Readonly<Record<string, string>> = { name: "a" }): ManifestDocument {
  const annotations = hook === undefined ? {} : { "helm.sh/hook": hook };
  const metadata = { ...name, namespace: "shop", annotations };
  return { object: { apiVersion: "v1", kind: "Pod", metadata }, file: "pods.yaml", document: 1, line: 1 };
}

function argo(hook: string): ManifestDocument {
  const metadata = { name: "a", annotations: { "argocd.argoproj.io/hook": hook } };
  return { object: { apiVersion: "v1", kind: "Pod", metadata }, file: "pods.yaml", document: 1, line: 1 };
}

test.each([undefined, "", "crd-install"])("an object with %s is one like others", (hook) => {
  expect(siftHooks([document(hook)], "Refuse")).toEqual({ documents: [document(hook)], leftOut: [] });
});

test.each(["test", "test-success", "test,post-rollback", " Test ", "pre-delete", "post-delete"])(
  "one for %s is left out, by name",
  (hook) => {
    const sifted = siftHooks([document(undefined), document(hook)], "Honor");
    expect(sifted.documents).toEqual([document(undefined)]);
    expect(sifted.leftOut).toEqual([
      expect.stringMatching(/^Pod shop\/a is left out: it is a hook for .*Starling does not run$/),
    ]);
  },
);

test.each(["Skip", "PreDelete", "PreSync,Skip", "PostDelete"])("so is Argo CD's %s", (hook) => {
  const sifted = siftHooks([argo(hook)], "Honor");
  expect(sifted.documents).toEqual([]);
  expect(sifted.leftOut).toHaveLength(1);
});

test.each(["pre-install", "pre-upgrade,post-install", "crd-install,pre-install"])("one for %s is kept", (hook) => {
  expect(siftHooks([document(hook)], "Honor")).toEqual({ documents: [document(hook)], leftOut: [] });
});

test("one that is run at some of its times is told of", () => {
  const sifted = siftHooks([document("test,pre-delete,pre-upgrade")], "Honor");
  expect(sifted.documents).toEqual([document("test,pre-delete,pre-upgrade")]);
  expect(sifted.leftOut).toEqual(["Pod shop/a is a hook for test, pre-delete, too, which Starling does not run"]);
});

test.each(["no-such-event", "pre-install,post-install"])("one for %s is refused, wherever it is from", (hook) => {
  for (const hooks of ["Honor", "Omit", "Refuse"] as const) {
    expect(() => siftHooks([document(hook)], hooks)).toThrow(
      'pods.yaml:1, document 1, Pod shop/a, metadata.annotations["helm.sh/hook"]: ',
    );
  }
});

test("where they are refused, all are named", () => {
  const hooks = Array.from({ length: 14 }, () => document("pre-install"));
  expect(() => siftHooks([document(undefined), ...hooks], "Refuse")).toThrow(
    `is pre-install (also the hooks ${Array(10).fill("Pod shop/a").join(", ")} and 3 more), and the template has`,
  );
});

test("whoever does without has them left out, by name", () => {
  expect(siftHooks([document(undefined), document("pre-install,post-delete")], "Omit")).toEqual({
    documents: [document(undefined)],
    leftOut: ["Pod shop/a is left out: it is a hook for pre-install, post-delete"],
  });
});

test("one that leaves its name open has the same for the same content, and nothing else may", () => {
  const open = document("pre-install", { generateName: "migrate-" });
  const [first, again] = [siftHooks([open], "Honor"), siftHooks([open], "Honor")];
  expect(first).toEqual(again);
  expect(first.documents[0]?.object.metadata).toMatchObject({ name: expect.stringMatching(/^migrate-[0-9a-f]{7}$/) });
  expect(first.documents[0]?.object.metadata).not.toHaveProperty("generateName");
  const lasting = document(undefined, { generateName: "x-" });
  expect(siftHooks([lasting], "Honor").documents).toEqual([lasting]);
});
