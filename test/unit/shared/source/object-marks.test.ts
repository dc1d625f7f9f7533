/** Labels and annotations that tell a tool how to apply an object: Starling ignores none of them silently. */
import { describe, expect, test } from "vitest";
import { readManifests } from "#shared/source/manifests.ts";
import { readMarks } from "#shared/source/object-marks.ts";
import type { ManifestDocument } from "#shared/source/yaml/manifest-documents.ts";

interface Marks {
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
}

function marksOf(...objects: readonly Marks[]): readonly string[] {
  const documents = objects.map((marks, index): ManifestDocument => {
    const metadata = { name: `web-${index}`, namespace: "shop", ...marks };
    return { object: { apiVersion: "v1", kind: "ConfigMap", metadata }, file: "app.yaml", document: 1, line: 1 };
  });
  return readMarks(readManifests(documents));
}

function annotated(name: string, value: string): Marks {
  return { annotations: { [name]: value } };
}

describe("marks that are carried out", () => {
  test.each([
    ["kustomize.toolkit.fluxcd.io/prune", "Disabled"],
    ["kustomize.toolkit.fluxcd.io/substitute", "disabled"],
    ["kustomize.toolkit.fluxcd.io/ssa", "Override"],
    ["kustomize.toolkit.fluxcd.io/ssa", "IfNotPresent"],
    ["kustomize.toolkit.fluxcd.io/ssa", "ignore"],
    ["kustomize.toolkit.fluxcd.io/ssa", "Merge"],
    ["kustomize.toolkit.fluxcd.io/reconcile", "disabled"],
    ["starling.dev/apply", "IfNotPresent"],
    ["argocd.argoproj.io/sync-options", "Prune=false, SkipDryRunOnMissingResource=true"],
    ["argocd.argoproj.io/compare-options", "IgnoreExtraneous"],
    ["helm.sh/resource-policy", "keep"],
    ["client.lifecycle.config.k8s.io/deletion", "detach"],
    ["cli-utils.sigs.k8s.io/on-remove", "keep"],
    ["kapp.k14s.io/delete-strategy", "orphan"],
    ["kluctl.io/skip-delete", "true"],
    ["starling.dev/prune", "disabled"],
    ["argocd.argoproj.io/sync-wave", "5"],
    ["argocd.argoproj.io/hook", "PreSync"],
    ["config.kubernetes.io/depends-on", "apps/namespaces/shop/Deployment/db"],
    ["example.com/whatever", "x"],
    ["constructor", "x"],
  ])("the mark %s: %s is carried out or needs nothing, so that there is no remark", (name, value) => {
    expect(marksOf(annotated(name, value))).toEqual([]);
  });
});

describe("marks that are ignored", () => {
  test.each([
    ["argocd.argoproj.io/hook-delete-policy", "HookSucceeded"],
    ["helm.sh/hook-weight", "5"],
    ["argocd.argoproj.io/sync-options", "Prune=false,Replace=true"],
    ["argocd.argoproj.io/sync-options", "Vaildate=true"],
    ["argocd.argoproj.io/sync-options", "PruneLast=true"],
    ["argocd.argoproj.io/ignore-healthcheck", "true"],
    ["argocd.argoproj.io/no-such-mark", "x"],
    ["kustomize.toolkit.fluxcd.io/force", "enabled"],
    ["kustomize.toolkit.fluxcd.io/constructor", "x"],
    ["helm.sh/resource-policy", "kept"],
    ["kapp.k14s.io/change-group", "db"],
    ["kluctl.io/force-apply", "true"],
  ])("the mark %s: %s is not carried out, and there is a remark", (name, value) => {
    expect(marksOf(annotated(name, value))).toEqual([
      expect.stringMatching(new RegExp(`^${name}: .* of ConfigMap shop/web-0 (is|has) `)),
    ]);
  });

  test("objects with the same mark share one remark", () => {
    const mark = annotated("argocd.argoproj.io/ignore-healthcheck", "true");
    expect(marksOf(mark, mark, mark)).toEqual([
      expect.stringMatching(
        /^argocd\.argoproj\.io\/ignore-healthcheck: true of ConfigMap shop\/web-0 and of 2 more is ignored/,
      ),
    ]);
  });
});

describe("marks that are refused", () => {
  test.each([
    ["starling.dev/apply", "once"],
    ["config.kubernetes.io/local-config", "true"],
    ["config.kubernetes.io/apply-time-mutation", "- source: {}"],
    ["client.lifecycle.config.k8s.io/mutation", "ignore"],
    ["kapp.k14s.io/noop", ""],
    ["kluctl.io/hook", "pre-deploy"],
    ["starling.dev/purne", "disabled"],
    ["starling.dev/prune", "no"],
  ])("the mark %s: %s is refused, because its object would be applied against the user's intention", (name, value) => {
    expect(() => marksOf(annotated(name, value))).toThrow(
      `app.yaml:1, document 1, ConfigMap shop/web-0, metadata.annotations["${name}"]: is "${value}": it `,
    );
  });

  test("marks as labels are refused, too, and all are named", () => {
    const label = { labels: { "starling.dev/prune": "Ignore" } };
    expect(() => marksOf(label, annotated("starling.dev/prun", "x"))).toThrow(
      /web-0, metadata\.labels\["starling\.dev\/prune"\]: is "Ignore" \(also refused: starling\.dev\/prun: x of ConfigMap shop\/web-1\): it must/,
    );
  });
});
