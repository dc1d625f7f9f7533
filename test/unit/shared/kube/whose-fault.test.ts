import { expect, test } from "vitest";
import { foreignFailure } from "#shared/kube/engine/foreign-object.ts";
import { KubeError } from "#shared/kube/kube-error.ts";

const request = { method: "PATCH", path: "/apis/apps/v1/namespaces/shop/deployments/web", secret: false };

test("an object with two entries of one key is invalid, and the error names the field", () => {
  const field = '.spec.template.spec.containers[name="web"].env';
  const message = `failed to create typed patch object: ${field}: duplicate entries for key [name="A"]`;
  const error = new KubeError(request, { status: 500, reason: "InternalError", message, causes: [] });
  expect(error).toMatchObject({ class: "invalid", reason: "Invalid", verdict: { retryable: false } });
  expect(error.message).toContain(field);
});

test("any other internal error stays an error of the server", () => {
  const error = new KubeError(request, { status: 500, reason: "InternalError", message: "it broke", causes: [] });
  expect(error).toMatchObject({ class: "transient", reason: "InternalError" });
});

test.each([
  ["labels", "kustomize.toolkit.fluxcd.io/name", "label"],
  ["annotations", "argocd.argoproj.io/tracking-id", "annotation"],
  ["labels", "applyset.kubernetes.io/part-of", "label"],
])("the refusal of a foreign object names the mark to remove: %s %s", async (place, mark, word) => {
  const metadata = { name: "c", namespace: "shop", [place]: { [mark]: "another" } };
  const live = { apiVersion: "v1", kind: "ConfigMap", metadata };
  const id = { group: "", kind: "ConfigMap", namespace: "shop", name: "c" };
  const failure = await foreignFailure(id, live, { setId: "ours", adopt: [] });
  expect(failure?.message).toContain(`remove its ${word} ${mark}`);
});
