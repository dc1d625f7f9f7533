import { expect, test } from "vitest";
import { parseDocument } from "#shared/fleet/kinds/document.ts";
import { syncSpec } from "#shared/fleet/kinds/sync-template.ts";
import { desiredPlan, type PlannedOwner } from "#shared/fleet/rollout/desired-plan.ts";
import { neededSchema } from "#shared/fleet/rows/needed-schema.ts";
import type { UserSyncRow } from "#shared/fleet/rows/object-rows.ts";
import { newestRowSchema, rowSchema } from "#shared/fleet/rows/row.ts";

const artifactAt = (revision: string) => ({ revision, digest: `sha256:${revision}` });

function ownerAt(revision?: string): PlannedOwner {
  const spec = syncSpec.parse({ cluster: "one", source: "app", ...(revision === undefined ? {} : { revision }) });
  return { type: "Sync", namespace: "shop", name: "web", spec, operations: {} };
}

test("a plan has the artifact of its revision, whatever its Source has", () => {
  const pins = new Map([["v1", { artifact: artifactAt("v1") }]]);
  const planned = (revision: string | undefined, now: string) =>
    desiredPlan(ownerAt(revision), new Map([["app", { status: { artifact: artifactAt(now) }, pins }]]));
  const [before, after] = [planned("v1", "main-1"), planned("v1", "main-2")];
  expect(before).toMatchObject({ ok: true, plan: { templates: [{ revision: "v1", artifactDigest: "sha256:v1" }] } });
  expect(after).toEqual(before);
  expect(planned(undefined, "main-2")).toMatchObject({ ok: true, plan: { templates: [{ revision: "main-2" }] } });
});

test("a revision that is not found, and one that is refused, give no plan, and the reason", () => {
  const found = (pin: object | undefined) =>
    desiredPlan(
      ownerAt("v1"),
      new Map([
        ["app", { status: { artifact: artifactAt("main") }, pins: new Map(pin === undefined ? [] : [["v1", pin]]) }],
      ]),
    );
  expect(found(undefined)).toMatchObject({
    ok: false,
    reason: "RevisionNotStored",
    message: "template web: revision v1 of Source app is looked for; it is not stored yet",
  });
  // An artifact that the Source would refuse today counts no more.
  expect(found({ artifact: artifactAt("v1"), failure: { message: "no key is trusted" } })).toMatchObject({
    ok: false,
    reason: "RevisionNotStored",
    message: "template web: revision v1 of Source app: no key is trusted",
  });
});

test("the version before, which would give clusters what the Source follows, does not read a Sync with a revision", () => {
  const schemaOf = (revision?: string) => neededSchema(ownerAt(revision) as UserSyncRow);
  expect([schemaOf(), schemaOf("v1")]).toEqual([rowSchema, newestRowSchema]);
});

const digits = "3f1c0c3a5b0d9a3f8f1f0f4a1d2c3b4a5e6f7081";

test.each([
  [digits, undefined],
  [`sha1:${digits}`, undefined],
  [`main@sha1:${digits}`, undefined],
  [`sha256:${"0".repeat(64)}`, undefined],
  [`v1.4.2@sha256:${"0".repeat(64)}`, undefined],
  ["v1.4.2", undefined],
  ["4.11.3+build.7", undefined],
  ["app/v1.4.2", undefined],
  ["@acme/web@1.4.2", undefined],
  [`release@2@sha1:${digits}`, undefined],
  ["", "must be a commit, a tag, a version or a digest; leave it out"],
  ["^1.2", "is a range"],
  ["~1.2", "is a range"],
  [">=1", "is a range"],
  ["1.*", "is a range"],
  ["1.2 - 1.4", "is a range"],
  ["1.2,1.3", "is a range"],
  ["a||b", "is a range"],
  ["HEAD", "may be another revision tomorrow"],
  ["latest", "may be another revision tomorrow"],
  ["refs/heads/main", "may be another revision tomorrow"],
  [digits.toUpperCase(), "write its digits in lower case"],
  ["sha1:3f1c0c3", "all of its 40 hexadecimal digits"],
  [`main@sha1:${digits}0`, "all of its 40 hexadecimal digits"],
  ["sha256:abc", "all of its 64 hexadecimal digits"],
  [`v1@sha256:${"A".repeat(64)}`, "all of its 64 hexadecimal digits"],
  ["-v1", "must be a commit, a tag, a version or a digest"],
  ["v1#x", "must be a commit, a tag, a version or a digest"],
  ["v1 @x", "is a range"],
  ["v".repeat(257), "256"],
  [12, "must be a text: put it in quotes"],
  [["v1"], "must be a text"],
])("the revision %j of a Sync", (revision, problem) => {
  const parsed = parseDocument({
    apiVersion: "starling.dev/v1alpha1",
    kind: "Sync",
    metadata: { name: "web", namespace: "shop" },
    spec: { cluster: "one", source: "app", revision },
  });
  const text = parsed.ok ? undefined : JSON.stringify(parsed);
  if (problem === undefined) expect(text).toBeUndefined();
  else expect(text).toContain(problem);
  if (problem !== undefined) expect(text).toContain("spec.revision");
});
