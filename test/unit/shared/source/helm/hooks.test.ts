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

test.each([undefined, "", "crd-install"])("an object with the hook %s is applied like others", (hook) => {
  expect(siftHooks([document(hook)], "Refuse")).toEqual({ documents: [document(hook)], leftOut: [] });
});

test.each(["test", "test-success", "test,post-rollback", " Test ", "pre-delete", "post-delete"])(
  "a hook for %s is left out, and named",
  (hook) => {
    const sifted = siftHooks([document(undefined), document(hook)], "Honor");
    expect(sifted.documents).toEqual([document(undefined)]);
    expect(sifted.leftOut).toEqual([
      expect.stringMatching(/^Pod shop\/a is left out: it is a hook for .*Starling does not run$/),
    ]);
  },
);

test.each(["Skip", "PreDelete", "PreSync,Skip", "PostDelete"])("Argo CD's hook %s is left out", (hook) => {
  const sifted = siftHooks([argo(hook)], "Honor");
  expect(sifted.documents).toEqual([]);
  expect(sifted.leftOut).toHaveLength(1);
});

test.each(["pre-install", "pre-upgrade,post-install", "crd-install,pre-install"])("a hook for %s is kept", (hook) => {
  expect(siftHooks([document(hook)], "Honor")).toEqual({ documents: [document(hook)], leftOut: [] });
});

test("a hook that runs at some of its events only is reported", () => {
  const sifted = siftHooks([document("test,pre-delete,pre-upgrade")], "Honor");
  expect(sifted.documents).toEqual([document("test,pre-delete,pre-upgrade")]);
  expect(sifted.leftOut).toEqual(["Pod shop/a is a hook for test, pre-delete, too, which Starling does not run"]);
});

test.each(["no-such-event", "pre-install,post-install"])(
  "a hook for %s is refused, whatever the template says about hooks",
  (hook) => {
    for (const hooks of ["Honor", "Omit", "Refuse"] as const) {
      expect(() => siftHooks([document(hook)], hooks)).toThrow(
        'pods.yaml:1, document 1, Pod shop/a, metadata.annotations["helm.sh/hook"]: ',
      );
    }
  },
);

test("a template that refuses hooks names all of them", () => {
  const hooks = Array.from({ length: 14 }, () => document("pre-install"));
  expect(() => siftHooks([document(undefined), ...hooks], "Refuse")).toThrow(
    `is pre-install (also the hooks ${Array(10).fill("Pod shop/a").join(", ")} and 3 more), and the template has`,
  );
});

test("a template that omits hooks names each of them", () => {
  expect(siftHooks([document(undefined), document("pre-install,post-delete")], "Omit")).toEqual({
    documents: [document(undefined)],
    leftOut: ["Pod shop/a is left out: it is a hook for pre-install, post-delete"],
  });
});

test("a hook with a generated name gets the same name for the same object, and other objects do not", () => {
  const open = document("pre-install", { generateName: "migrate-" });
  const [first, again] = [siftHooks([open], "Honor"), siftHooks([open], "Honor")];
  expect(first).toEqual(again);
  expect(first.documents[0]?.object.metadata).toMatchObject({ name: expect.stringMatching(/^migrate-[0-9a-f]{7}$/) });
  expect(first.documents[0]?.object.metadata).not.toHaveProperty("generateName");
  const lasting = document(undefined, { generateName: "x-" });
  expect(siftHooks([lasting], "Honor").documents).toEqual([lasting]);
});
