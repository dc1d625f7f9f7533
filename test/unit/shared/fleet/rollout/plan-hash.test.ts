import { describe, expect, test } from "vitest";
import { approverOf, isAllowed } from "#shared/fleet/rollout/approval.ts";
import { type Planned, planHashOf } from "#shared/fleet/rollout/plan-hash.ts";
import type { Plan, SnapshotTarget } from "#shared/fleet/rows/rollout-rows.ts";

const target = (cluster: string, more: object = {}): SnapshotTarget => ({
  cluster,
  uid: cluster,
  inputs: [{ digest: "sha256:1", path: "deploy", ...more }],
});
const planned: Planned = {
  owner: { namespace: "payments", kind: "SyncGroup", name: "shop" },
  stage: "production",
  targets: [target("a"), target("b")],
  plan: { planHash: "sha256:plan", templates: [{ name: "web" }] as unknown as Plan["templates"] },
  templates: ["web"],
  gates: { before: [{ approval: { by: ["arn:aws:iam::*:role/sre"], count: 2, expires: "24h" } }] },
  current: "sha256:current",
};

describe("the hash of a plan", () => {
  test.each<[string, Partial<Planned>]>([
    ["another group", { owner: { namespace: "payments", kind: "SyncGroup", name: "cart" } }],
    ["another stage", { stage: "rest" }],
    ["one cluster more", { targets: [...planned.targets, target("c")] }],
    ["one cluster less", { targets: [target("a")] }],
    ["a cluster that was rebuilt", { targets: [target("a"), { ...target("b"), uid: "b2" }] }],
    ["another value of a cluster", { targets: [target("a"), target("b", { bound: { texts: { x: "2" } } })] }],
    ["another override of a cluster", { targets: [target("a"), target("b", { overrides: [0] })] }],
    [
      "a template that a cluster does not get",
      { targets: [target("a"), { ...target("b"), inputs: [{ disabled: true }] }] },
    ],
    ["other files or options", { plan: { ...planned.plan, planHash: "sha256:other" } }],
    ["a template that is deleted", { templates: ["web", "old"] }],
    ["weaker gates", { gates: { before: [{ approval: { by: ["*"], count: 1, expires: "24h" } }] } }],
    ["a gate more", { gates: { ...planned.gates, after: [{ bake: "1h" }] } }],
    ["another current rollout", { current: "sha256:older" }],
    ["no current rollout", { current: undefined }],
  ])("it differs for %s", (_what, change) => {
    expect(planHashOf({ ...planned, ...change })).not.toBe(planHashOf(planned));
  });

  test.each<[string, Partial<Planned>]>([
    ["the order of the clusters", { targets: planned.targets.toReversed() }],
    [
      "a digest that only another file of the commit changed",
      { targets: ["a", "b"].map((name) => target(name, { digest: "sha256:2" })) },
    ],
  ])("it does not depend on %s", (_what, change) => {
    expect(planHashOf({ ...planned, ...change })).toBe(planHashOf(planned));
    expect(planHashOf(planned)).toMatch(/^[0-9a-f]{32}$/);
  });
});

const assumed = (role: string, session: string, account = "111122223333") =>
  `arn:aws:sts::${account}:assumed-role/${role}/${session}`;

describe("who may approve", () => {
  test.each([
    ["arn:aws:iam::111122223333:role/sre", assumed("sre", "ana"), true],
    ["arn:aws:iam::*:role/sre", assumed("sre", "ana", "444455556666"), true],
    ["arn:aws:iam::*:role/AWSReservedSSO_sre_*", assumed("AWSReservedSSO_sre_0a1b", "ana"), true],
    ["arn:aws:iam::111122223333:role/sre", assumed("sre", "ana", "444455556666"), false],
    ["arn:aws:iam::*:role/sre", assumed("sre2", "ana"), false],
    ["arn:aws:iam::*:role/sre", assumed("developer", "sre"), false],
    ["arn:aws:iam::*:role/s.e", assumed("sre", "ana"), false],
    ["arn:aws:iam::*:role/*", "arn:aws:iam::111122223333:user/ana", false],
    ["arn:aws:iam::*:user/ana", "arn:aws:iam::111122223333:user/ana", true],
    ["arn:aws:iam::*:user/ana", assumed("ana", "x"), false],
    ["arn:aws:iam::*:user/team/ana", "arn:aws:iam::111122223333:user/team/ana", true],
    ["arn:aws:iam::*:user/ana", "arn:aws:iam::111122223333:user/team/ana", false],
    ["arn:aws:iam::*:user/*", "arn:aws:iam::111122223333:user/team/ana", false],
  ])("the pattern %s fits %s: %s", (pattern, principal, fits) => {
    expect(isAllowed({ by: ["arn:aws:iam::1:role/none", pattern] }, principal)).toBe(fits);
  });

  test.each([
    [assumed("sre", "ana"), assumed("sre", "ben"), true],
    [assumed("sre", "ana"), assumed("sre", "ana", "444455556666"), false],
    [assumed("AWSReservedSSO_a_1", "ana"), assumed("AWSReservedSSO_b_2", "ana"), true],
    [assumed("AWSReservedSSO_a_1", "ana"), assumed("AWSReservedSSO_a_1", "ben"), false],
    [assumed("AWSReservedSSO_a_1", "ana@example.com"), assumed("AWSReservedSSO_b_2", "Ana@Example.com"), true],
    [assumed("sre", "ana"), "arn:aws:iam::111122223333:user/ana", false],
  ])("%s and %s are one approver: %s", (one, other, same) => {
    expect(approverOf(one) === approverOf(other)).toBe(same);
  });
});
