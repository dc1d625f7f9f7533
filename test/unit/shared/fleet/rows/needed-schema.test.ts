import { expect, test } from "vitest";
import { sourceSpec } from "#shared/fleet/kinds/source.ts";
import { plannedSchema, sourceSchema } from "#shared/fleet/rows/needed-schema.ts";
import { newestRowSchema, rowSchema } from "#shared/fleet/rows/row.ts";

test("the version before can read a Source of git, and not one whose signatures it would not verify", () => {
  const git = { url: "https://git.example/app" };
  const schemaOf = (more: object) =>
    sourceSchema({ operations: {}, spec: sourceSpec.parse({ git: { ...git, ...more } }) });
  expect(schemaOf({})).toBe(rowSchema);
  expect(schemaOf({ verify: { mode: "HEAD", keys: ["ssh-ed25519 AAAA"] } })).toBe(newestRowSchema);
});

test("the version before, which knows neither filters nor immutable tags nor full names of references, does not read a Source that has one", () => {
  const schemaOf = (spec: object) => sourceSchema({ operations: {}, spec: sourceSpec.parse(spec) });
  const git = { url: "https://git.example/app", ref: { semver: "^1" } };
  expect(schemaOf({ git })).toBe(rowSchema);
  expect(schemaOf({ git, immutableTags: true })).toBe(newestRowSchema);
  expect(schemaOf({ git, ignore: "*.md" })).toBe(newestRowSchema);
  expect(schemaOf({ git: { ...git, ref: { semver: "^1", tagFilter: "-rc" } } })).toBe(newestRowSchema);
  expect(schemaOf({ git: { ...git, ref: { name: "refs/pull/420/head" } } })).toBe(newestRowSchema);
});

test("the version before does not touch a Sync whose zone is down, which it would call failed", () => {
  const at = "2026-11-21T08:00:00.000Z";
  expect(plannedSchema({ paused: { reason: "DeadlineExceeded", at } })).toBe(rowSchema);
  expect(plannedSchema({ paused: { reason: "ZoneDown", at, zone: "home" } })).toBe(newestRowSchema);
});
