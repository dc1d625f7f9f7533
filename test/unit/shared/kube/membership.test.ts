import { describe, expect, test } from "vitest";
import type { JsonObject } from "#shared/base/json.ts";
import { foreignOwner, isMember, keepMark } from "#shared/kube/membership.ts";

/** The label of KEP-3659, which other tools read. */
const partOfLabel = "applyset.kubernetes.io/part-of";
const setId = "applyset-mine-v1";
const ownEntry = { manager: "starling", operation: "Apply", apiVersion: "v1", fieldsV1: {} };
const applied = (metadata: JsonObject) => ({ ...ownEntry, fieldsV1: { "f:metadata": metadata } });
const member = (metadata: JsonObject = {}): JsonObject => ({
  metadata: { labels: { [partOfLabel]: setId }, managedFields: [ownEntry], ...metadata },
});

describe("isMember", () => {
  test.each<readonly [string, JsonObject, boolean]>([
    ["label, own entry, no controller", member(), true],
    ["an owner that is no controller", member({ ownerReferences: [{ uid: "u", controller: false }] }), true],
    [
      "the label was copied",
      member({ managedFields: [{ manager: "endpoint-controller", operation: "Update" }] }),
      false,
    ],
    ["another set's label", member({ labels: { [partOfLabel]: "applyset-theirs-v1" } }), false],
    ["no label", member({ labels: {} }), false],
    ["a child of a controller", member({ ownerReferences: [{ uid: "u", controller: true }] }), false],
    ["only an update by Starling", member({ managedFields: [{ ...ownEntry, operation: "Update" }] }), false],
    ["only a subresource", member({ managedFields: [{ ...ownEntry, subresource: "scale" }] }), false],
    [
      "a child of a controller that has another owner, too",
      member({
        ownerReferences: [
          { uid: "u", controller: false },
          { uid: "v", controller: true },
        ],
      }),
      false,
    ],
    ["owners that no API server writes", member({ ownerReferences: [null, "u", 1] }), true],
    ["nothing at all", {}, false],
  ])("an object counts as a member of the set, or not: %s", (_name, object, expected) => {
    expect(isMember(object, setId)).toBe(expected);
  });
});

const labelled = (labels: JsonObject, annotations: JsonObject = {}): JsonObject => ({
  metadata: { labels, annotations },
});

describe("foreignOwner", () => {
  test.each<readonly [string, JsonObject, string | undefined]>([
    ["no owner", labelled({ app: "web" }), undefined],
    ["another set", labelled({ [partOfLabel]: "applyset-theirs-v1" }), "applyset"],
    ["the parent of a set, by any writer", labelled({ "applyset.kubernetes.io/id": setId }), "applyset"],
    ["Starling's label without its entry names no other owner", labelled({ [partOfLabel]: setId }), undefined],
    ["flux", labelled({ "kustomize.toolkit.fluxcd.io/name": "apps" }), "flux"],
    ["flux helm", labelled({ "helm.toolkit.fluxcd.io/name": "apps" }), "flux"],
    ["argo by annotation", labelled({}, { "argocd.argoproj.io/tracking-id": "app:/ConfigMap:n/x" }), "argocd"],
    ["argo by label", labelled({ "argocd.argoproj.io/instance": "app" }), "argocd"],
    ["helm", labelled({ "app.kubernetes.io/managed-by": "Helm" }, { "meta.helm.sh/release-name": "r" }), "helm"],
    ["a rendered chart", labelled({ "app.kubernetes.io/managed-by": "Helm" }), undefined],
    ["a release's name that Helm did not write", labelled({}, { "meta.helm.sh/release-name": "r" }), undefined],
    ["kapp", labelled({ "kapp.k14s.io/app": "1" }), "kapp"],
    ["cli-utils", labelled({}, { "config.k8s.io/owning-inventory": "i" }), "cli-utils"],
    ["fleet", labelled({}, { "objectset.rio.cattle.io/id": "i" }), "fleet"],
    ["kluctl", labelled({ "kluctl.io/discriminator": "i" }), "kluctl"],
    ["a member that another tool marked", member({ annotations: { "argocd.argoproj.io/tracking-id": "a" } }), "argocd"],
    [
      "a member that Flux marked",
      member({ labels: { [partOfLabel]: setId, "kustomize.toolkit.fluxcd.io/name": "apps" } }),
      "flux",
    ],
    [
      "a member whose rendering has the annotation",
      member({
        annotations: { "argocd.argoproj.io/tracking-id": "a" },
        managedFields: [applied({ "f:annotations": { "f:argocd.argoproj.io/tracking-id": {} } })],
      }),
      undefined,
    ],
    [
      "a member whose rendering has the label",
      member({
        labels: { [partOfLabel]: setId, "kapp.k14s.io/app": "1" },
        managedFields: [applied({ "f:labels": { "f:kapp.k14s.io/app": {} } })],
      }),
      undefined,
    ],
    [
      "a member whose rendering has the name as another field",
      member({
        labels: { [partOfLabel]: setId, "kapp.k14s.io/app": "1" },
        managedFields: [applied({ "f:annotations": { "f:kapp.k14s.io/app": {} } })],
      }),
      "kapp",
    ],
    [
      "a member of a rendered chart that Helm has released itself",
      member({
        labels: { [partOfLabel]: setId, "app.kubernetes.io/managed-by": "Helm" },
        annotations: { "meta.helm.sh/release-name": "r" },
        managedFields: [applied({ "f:labels": { "f:app.kubernetes.io/managed-by": {} } })],
      }),
      "helm",
    ],
    ["a member without another owner", member(), undefined],
  ])("the foreign owner of an object: %s", (_name, object, tool) => {
    expect(foreignOwner(object, setId)?.tool).toBe(tool);
  });
});

describe("the name of the owner in a mark", () => {
  const long = "x".repeat(121);
  const cut = `${"x".repeat(119)}…`;
  test.each<readonly [string, JsonObject, string]>([
    ["a set's parent", labelled({ "applyset.kubernetes.io/id": "applyset-theirs-v1" }), "applyset-theirs-v1"],
    ["a set", labelled({ [partOfLabel]: "applyset-theirs-v1" }), "applyset-theirs-v1"],
    ["another tool", labelled({ "kapp.k14s.io/app": "17" }), "17"],
    ["an empty mark", labelled({ "kapp.k14s.io/app": "" }), ""],
    [
      "a release of Helm",
      labelled({ "app.kubernetes.io/managed-by": "Helm" }, { "meta.helm.sh/release-name": "shop" }),
      "shop",
    ],
    ["a long text", labelled({}, { "objectset.rio.cattle.io/id": long }), cut],
  ])("the name of the owner in a mark: %s", (_name, object, owner) => {
    expect(foreignOwner(object, setId)?.owner).toBe(owner);
  });
});

describe("keepMark", () => {
  test.each<readonly [JsonObject, string | undefined]>([
    [{}, undefined],
    [{ "starling.dev/prune": "disabled" }, "starling.dev/prune: disabled"],
    [{ "kustomize.toolkit.fluxcd.io/prune": "Disabled" }, "kustomize.toolkit.fluxcd.io/prune: Disabled"],
    [{ "kustomize.toolkit.fluxcd.io/ssa": "IfNotPresent" }, undefined],
    [{ "kustomize.toolkit.fluxcd.io/ssa": "Ignore" }, "kustomize.toolkit.fluxcd.io/ssa: Ignore"],
    [{ "helm.sh/resource-policy": "keep" }, "helm.sh/resource-policy: keep"],
    [
      { "argocd.argoproj.io/sync-options": "Validate=false, Prune=false" },
      "argocd.argoproj.io/sync-options: Prune=false",
    ],
    [{ "argocd.argoproj.io/sync-options": "Validate=false" }, undefined],
    [{ "kluctl.io/skip-delete": "true" }, "kluctl.io/skip-delete: true"],
    [{ "kluctl.io/skip-delete": "false" }, undefined],
    [{ "starling.dev/prune": "enabled" }, undefined],
    [{ "kustomize.toolkit.fluxcd.io/reconcile": "disabled" }, "kustomize.toolkit.fluxcd.io/reconcile: disabled"],
    [{ "client.lifecycle.config.k8s.io/deletion": "detach" }, "client.lifecycle.config.k8s.io/deletion: detach"],
    [{ "cli-utils.sigs.k8s.io/on-remove": "keep" }, "cli-utils.sigs.k8s.io/on-remove: keep"],
    [{ "helm.sh/resource-policy": "delete" }, undefined],
    [{ "argocd.argoproj.io/sync-options": "Delete=false" }, "argocd.argoproj.io/sync-options: Delete=false"],
    [{ "argocd.argoproj.io/sync-options": "Prune=confirm" }, "argocd.argoproj.io/sync-options: Prune=confirm"],
    [{ "argocd.argoproj.io/sync-options": "Delete=confirm" }, "argocd.argoproj.io/sync-options: Delete=confirm"],
    [{ "kapp.k14s.io/delete-strategy": "orphan" }, "kapp.k14s.io/delete-strategy: orphan"],
  ])("the annotations %j keep the object because of %s", (annotations, mark) => {
    expect(keepMark({ metadata: { annotations } })).toBe(mark);
  });

  test("a label keeps an object, too", () => {
    expect(keepMark(labelled({ "starling.dev/prune": "false" }))).toBe("starling.dev/prune: false");
  });

  test("an annotation with spaces keeps an object despite a label with another value", () => {
    const name = "kustomize.toolkit.fluxcd.io/ssa";
    const metadata = { labels: { [name]: "Override" }, annotations: { [name]: " Ignore " } };
    expect(keepMark({ metadata })).toBe(`${name}: Ignore`);
  });
});
