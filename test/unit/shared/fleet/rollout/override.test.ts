import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { syncTemplate } from "#shared/fleet/kinds/sync-template.ts";
import { overridden, overridesFor } from "#shared/fleet/rollout/cluster-inputs.ts";
import { snapshotTarget } from "#shared/fleet/rollout/desired-plan.ts";
import type { PlannedTemplate } from "#shared/fleet/rows/rollout-rows.ts";
import { propertyRuns, propertySeeds } from "#test/support/property-runs.ts";

function planned(overrides: readonly unknown[], fields: Readonly<Record<string, unknown>> = {}): PlannedTemplate {
  const { render, ...template } = syncTemplate.parse({
    name: "app",
    source: "app",
    path: "base",
    overrides,
    ...fields,
  });
  return {
    ...template,
    ...(render === undefined ? {} : { render }),
    revision: "main@sha1:a",
    artifactDigest: "sha256:a",
  };
}

function snapshot(template: PlannedTemplate, cluster: string, labels: Readonly<Record<string, string>> = {}) {
  const plan = { templates: [template], planHash: "sha256:c" };
  return snapshotTarget({ cluster, uid: "u", labels, values: {} }, plan).inputs[0];
}

const gold = { clusters: { selector: { matchLabels: { tier: "gold" } } } };
const one = { clusters: { names: ["one"] } };

describe("overrides", () => {
  test("the overrides for a cluster apply in their order, and later ones win", () => {
    const template = planned(
      [
        { ...gold, path: "gold", parameters: { A: "gold", B: "gold" }, apply: { interval: "1h" } },
        { ...one, parameters: { B: "one" }, apply: { drift: "off" } },
        { clusters: { names: ["other"] }, path: "other" },
      ],
      { parameters: { A: "std", B: "std", C: "std" }, substitute: true },
    );
    expect(overridesFor(template, { name: "one", labels: { tier: "gold" } })).toEqual([0, 1]);
    expect(overridden(template, [0, 1])).toMatchObject({
      path: "gold",
      parameters: { A: "gold", B: "one", C: "std" },
      apply: { interval: "1h", drift: "off", prune: true },
    });
    expect(overridden(template, [1])).toMatchObject({ path: "base", parameters: { A: "std", B: "one", C: "std" } });
    expect(snapshot(template, "one", { tier: "gold" })).toMatchObject({ path: "gold", overrides: [0, 1] });
    expect(snapshot(template, "two")).not.toHaveProperty("overrides");
  });

  test("an override that matches no cluster changes nothing", () => {
    const without = snapshot(planned([]), "one");
    expect(snapshot(planned([{ ...gold, path: "gold" }]), "one")).toEqual(without);
  });

  test("overrides with the same result share a rendering", () => {
    const template = planned([
      { ...one, path: "special" },
      { ...gold, path: "special" },
    ]);
    const [first, second] = [snapshot(template, "one"), snapshot(template, "two", { tier: "gold" })];
    expect(first).toMatchObject({ overrides: [0] });
    expect(second).toMatchObject({ overrides: [1] });
    expect(first).toHaveProperty("digest", second !== undefined && "digest" in second ? second.digest : "");
  });

  test("an override can disable a template, and a later override can enable it again", () => {
    const template = planned([
      { ...gold, disabled: true },
      { ...one, disabled: false },
    ]);
    expect(snapshot(template, "two", { tier: "gold" })).toEqual({ disabled: true });
    expect(snapshot(template, "one", { tier: "gold" })).toMatchObject({ path: "base" });
    expect(snapshot(template, "two")).toMatchObject({ path: "base" });
  });

  const fields = fc.record(
    {
      path: fc.constantFrom("a", "b"),
      disabled: fc.boolean(),
      parameters: fc.dictionary(fc.constantFrom("A", "B", "C"), fc.constantFrom("1", "2"), { minKeys: 1 }),
      apply: fc.record({ drift: fc.constantFrom("off", "report"), prune: fc.boolean() }, { requiredKeys: [] }),
    },
    { requiredKeys: [] },
  );
  const override = fc.tuple(fc.subarray(["one", "two", "three"], { minLength: 1 }), fields);

  test.each(propertySeeds)(
    "each field has the value of the last override for the cluster that sets it (seed %i)",
    (seed) => {
      fc.assert(
        fc.property(fc.array(override, { maxLength: 6 }), fc.constantFrom("one", "two", "three"), (all, cluster) => {
          const template = planned(
            all.map(([names, said]) => ({ clusters: { names }, ...said })),
            { substitute: true },
          );
          const mine = all.filter(([names]) => names.includes(cluster)).map(([, said]) => said);
          const last = <Value>(of: (said: (typeof mine)[number]) => Value | undefined, otherwise: Value) =>
            mine.map(of).findLast((value) => value !== undefined) ?? otherwise;
          const found = overridden(template, overridesFor(template, { name: cluster, labels: {} }));
          expect(found.path).toBe(last(({ path }) => path, "base"));
          expect(found.disabled ?? false).toBe(last(({ disabled }) => disabled, false));
          expect(found.apply.drift).toBe(last(({ apply }) => apply?.drift, "correct"));
          expect(found.apply.prune).toBe(last(({ apply }) => apply?.prune, true));
          for (const name of ["A", "B", "C"]) {
            expect(found.parameters?.[name] ?? "none").toBe(last(({ parameters }) => parameters?.[name], "none"));
          }
        }),
        { seed, numRuns: propertyRuns(300) },
      );
    },
  );
});
