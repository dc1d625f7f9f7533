/** Objects for another tool, on a cluster that does not know their kinds and on one that does. */
import { expect, test } from "vitest";
import { isJsonObject } from "#shared/base/json.ts";
import { definition, manifest } from "#test/support/cluster-fixture.ts";
import { forEachTest } from "#test/support/for-tests.ts";
import { startHostileWorker } from "#test/support/hostile-worker.ts";

const worker = forEachTest(startHostileWorker);

const theirs = [
  ["argoproj.io/v1alpha1", "Application", "Argo CD", "a template with path: guestbook"],
  ["kustomize.toolkit.fluxcd.io/v1", "Kustomization", "Flux", "a template with path: guestbook"],
  ["helm.toolkit.fluxcd.io/v2", "HelmRelease", "Flux", "render.helm.values"],
  ["argoproj.io/v1alpha1", "ApplicationSet", "Argo CD", "a SyncGroup whose spec.clusters selects the clusters"],
  ["fleet.cattle.io/v1alpha1", "GitRepo", "Fleet", "a Source with spec.git.url"],
] as const;

test.each(theirs)(
  "an object %s %s is reported as an object of another tool at the first attempt",
  async (apiVersion, kind, tool, instead) => {
    const spec = { path: "./guestbook", source: { path: "guestbook" }, repo: "https://git.example.com/a" };
    const object = manifest({ apiVersion, kind, metadata: { name: "guestbook", namespace: "default" }, spec });
    await worker.world.assign("web", [object]);
    await worker.world.work();
    const { phase, problems } = await worker.observed();
    expect(phase).toBe("Retrying");
    expect(problems).toEqual([expect.objectContaining({ reason: "NoMatch" })]);
    const [{ message } = { message: "" }] = problems ?? [];
    expect(message).toContain(
      `: the object is for ${tool}, which this cluster does not have; to let Starling do it, write`,
    );
    expect(message).toContain(instead);
    expect(message).toContain(`or install ${tool} there`);
  },
);

test("an object of another tool is applied to a cluster that knows its kind", async () => {
  const group = "argoproj.io";
  const { spec, ...known } = definition(group);
  const names = { kind: "Application", listKind: "ApplicationList", plural: "applications", singular: "application" };
  const crd = manifest({
    ...known,
    metadata: { name: `applications.${group}` },
    spec: { ...(isJsonObject(spec) ? spec : {}), names },
  });
  const metadata = { name: "guestbook", namespace: "default" };
  await worker.world.assign("web", [crd, manifest({ apiVersion: `${group}/v1`, kind: "Application", metadata })]);
  await worker.world.work();
  expect(worker.members()).toEqual(["applications.argoproj.io", "guestbook"]);
});
