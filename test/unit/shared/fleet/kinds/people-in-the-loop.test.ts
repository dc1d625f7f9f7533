/** Wrong values of gates, guards and Windows: each gives one error with the field, the value and the remedy. */
import { expect, test } from "vitest";
import { parseDocument } from "#shared/fleet/kinds/document.ts";

const apiVersion = "starling.dev/v1alpha1";
const nightly = { cron: "0 22 * * *", duration: "4h", timeZone: "UTC" };
const sre = "arn:aws:iam::111122223333:role/sre";
const alice = "arn:aws:iam::111122223333:user/alice";
const errors = "arn:aws:cloudwatch:eu-west-1:111122223333:alarm:errors";

function problemsOf(document: unknown): readonly string[] {
  const parsed = parseDocument(document);
  return parsed.ok ? [] : parsed.problems.map(({ field, message }) => `${field} ${message}`);
}

function windowProblems(spec: object): readonly string[] {
  return problemsOf({
    apiVersion,
    kind: "Window",
    metadata: { name: "night" },
    spec: { clusters: { all: true }, ...spec },
  });
}

function groupProblems(spec: object): readonly string[] {
  const usual = { clusters: { all: true }, templates: [{ name: "app", source: "app", path: "." }] };
  return problemsOf({
    ...{ apiVersion, kind: "SyncGroup", metadata: { name: "shop", namespace: "payments" } },
    spec: { ...usual, ...spec },
  });
}

const needs = "needs either cron, duration and timeZone, or start and end";
const zoned = "must be a time with its zone, such as 2026-12-24T00:00:00Z or 2026-12-24T00:00:00+01:00";

test.each<readonly [string, object, string]>([
  [
    "a text for a list",
    { allow: "0 9 * * * and more" },
    'spec.allow must be a list such as [a, b] (got "0 9 * * * and more")',
  ],
  ["too many times", { allow: Array(21).fill(nightly) }, "spec.allow must have at most 20 items (got 21)"],
  ["no part", { allow: [{}] }, `spec.allow[0] ${needs} (got {})`],
  [
    "a missing part",
    { allow: [{ cron: "0 9 * * *", duration: "1h" }] },
    `spec.allow[0] ${needs}; add timeZone (got the fields cron, duration)`,
  ],
  [
    "a missing end",
    { deny: [{ start: "2026-12-05T08:00:00Z" }] },
    `spec.deny[0] ${needs}; add end (got {"start":"2026-12-05T08:00:00Z"})`,
  ],
  [
    "an end for a repeated time",
    { allow: [{ ...nightly, end: "2026-12-05T08:00:00Z" }] },
    `spec.allow[0] ${needs}; remove end (got the fields cron, duration, timeZone, end)`,
  ],
  [
    "a zone for a single time",
    { allow: [{ start: "2026-12-05T08:00:00Z", end: "2026-12-06T08:00:00Z", timeZone: "UTC" }] },
    `spec.allow[0] ${needs}; remove timeZone (got the fields start, end, timeZone)`,
  ],
  [
    "an end before its start",
    { allow: [{ start: "2026-12-05T08:00:00Z", end: "2026-12-01T08:00:00Z" }] },
    'spec.allow[0].end must be later than start, which is 2026-12-05T08:00:00Z (got "2026-12-01T08:00:00Z")',
  ],
  [
    "an end at its start",
    { allow: [{ start: "2026-12-05T08:00:00Z", end: "2026-12-05T09:00:00+01:00" }] },
    'spec.allow[0].end must be later than start, which is 2026-12-05T08:00:00Z (got "2026-12-05T09:00:00+01:00")',
  ],
  [
    "a time that is none",
    { allow: [{ start: "tomorrow", end: "2026-12-06T08:00:00Z" }] },
    `spec.allow[0].start ${zoned} (got "tomorrow")`,
  ],
  [
    "a day that does not exist",
    { allow: [{ start: "2026-02-30T08:00:00Z", end: "2026-12-06T08:00:00Z" }] },
    `spec.allow[0].start ${zoned}, and of a day and an hour that exist (got "2026-02-30T08:00:00Z")`,
  ],
  [
    "a minute that does not exist",
    { allow: [{ ...nightly, cron: "61 9 * * *" }] },
    'spec.allow[0].cron has the minute 61; expected 0 to 59 (got "61 9 * * *")',
  ],
  [
    "a day that never comes",
    { deny: [{ ...nightly, cron: "0 9 31 2 *" }] },
    'spec.deny[0].cron never comes: month 2 has no day 31, but 29 days; choose another day or month (got "0 9 31 2 *")',
  ],
  [
    "no duration",
    { allow: [{ ...nightly, duration: "0s" }] },
    'spec.allow[0].duration must be a duration such as 30s, 5m or 1h30m, from 1m to 744h (got "0s")',
  ],
  [
    "a duration in weeks",
    { allow: [{ ...nightly, duration: "1w" }] },
    'spec.allow[0].duration must be a duration such as 30s, 5m or 1h30m, from 1m to 744h: write 168h (got "1w")',
  ],
  [
    "an abbreviation of a zone",
    { allow: [{ ...nightly, timeZone: "BST" }] },
    'spec.allow[0].timeZone must be a time zone such as Europe/London or UTC, because several zones have the same abbreviation (got "BST")',
  ],
  [
    "no selection of groups",
    { groups: {}, allow: [nightly] },
    "spec.groups needs exactly one of selector, names or namespaces; leave groups out for every group (got {})",
  ],
])("a Window with %s gives one error", (_, spec, problem) => {
  expect(windowProblems(spec)).toEqual([problem]);
});

test("fields of a Window with a word of other tools name the field that is meant", () => {
  expect(windowProblems({ exclude: [nightly], allow: [{ schedule: "0 9 * * *" }, { from: "a", to: "b" }] })).toEqual([
    "spec.allow[0].schedule is not a field Starling knows (did you mean cron?); remove it",
    `spec.allow[0] ${needs} (got {"schedule":"0 9 * * *"})`,
    "spec.allow[1].from is not a field Starling knows (did you mean start?); remove it",
    "spec.allow[1].to is not a field Starling knows (did you mean end?); remove it",
    `spec.allow[1] ${needs} (got the fields from, to)`,
    "spec.exclude is not a field Starling knows (did you mean deny?); remove it",
  ]);
  expect(windowProblems({ groups: { selector: { tier: "gold" } }, allow: [nightly] })[0]).toBe(
    "spec.groups.selector.tier is not a field Starling knows; write matchLabels: { tier: ... } for a label",
  );
});

const gate = "spec.rollout.stages[0]";
const by = [sre];

test.each<readonly [string, object, readonly string[]]>([
  ["a text for the gates", { before: "approval" }, [`${gate}.before must be a list such as [a, b] (got "approval")`]],
  [
    "two gates before the stage",
    { before: [{ approval: { by } }, { approval: { by } }] },
    [`${gate}.before must have at most 1 item (got 2)`],
  ],
  [
    "a text for the approvers",
    { before: [{ approval: { by: sre } }] },
    [
      `${gate}.before[0].approval.by must be a list of ARNs of roles or users, such as ["arn:aws:iam::111122223333:role/sre"] (got "${sre}")`,
    ],
  ],
  [
    "a gate that keeps authors out",
    { before: [{ approval: { by, notAuthor: true } }] },
    [
      `${gate}.before[0].approval.notAuthor is nothing that Starling can check: it does not know which role wrote a commit; remove it, and name in \`by\` only roles that no author has`,
    ],
  ],
  [
    "no approvers",
    { before: [{ approval: {} }] },
    [
      `${gate}.before[0].approval.by is required: must be a list of ARNs of roles or users, such as ["arn:aws:iam::111122223333:role/sre"]`,
    ],
  ],
  [
    "an empty list of approvers",
    { before: [{ approval: { by: [] } }] },
    [`${gate}.before[0].approval.by must name at least one role or user (got [])`],
  ],
  [
    "more approvals than users",
    { before: [{ approval: { by: [alice, alice], count: 2 } }] },
    [`${gate}.before[0].approval.count must be at most 1, because by names 1 user (got 2)`],
  ],
  [
    "a count in quotes",
    { before: [{ approval: { by, count: "2" } }] },
    [`${gate}.before[0].approval.count must be a number: remove the quotes (got "2")`],
  ],
  [
    "a bake before the stage",
    { before: [{ approval: { by }, bake: "1h" }] },
    [`${gate}.before[0].bake is not a field Starling knows; write it below after of the stage`],
  ],
  [
    "an approval after the stage",
    { after: [{ bake: "1h", approval: { by } }] },
    [`${gate}.after[0].approval is not a field Starling knows; write it below before of the stage`],
  ],
  [
    "an alarm without its name",
    { after: [{ bake: "1h" }, { alarm: {} }] },
    [`${gate}.after[1].alarm.arn is required: must be the ARN of a CloudWatch alarm, such as ${errors}`],
  ],
  [
    "a check by nobody",
    { after: [{ check: { timeout: "1h" } }] },
    [
      `${gate}.after[0].check.principal is required: must be the ARN of one role or user, such as arn:aws:iam::111122223333:role/robot`,
      `${gate}.after[0].check.timeout is not a field Starling knows (did you mean expires?); remove it`,
    ],
  ],
])("a stage with %s gives one error for each mistake", (_, stage, problems) => {
  const stages = [{ name: "canary", clusters: { names: ["c1"] }, ...stage }, { name: "all" }];
  expect(groupProblems({ rollout: { stages } })).toEqual(problems);
});

test("users and patterns may be as many approvers as the gate asks for", () => {
  const asks = (approvers: readonly string[]) =>
    groupProblems({ rollout: { stages: [{ name: "all", before: [{ approval: { by: approvers, count: 2 } }] }] } });
  expect([[alice, sre], [alice, alice.replace("alice", "bob")], [alice.replace("alice", "*")]].flatMap(asks)).toEqual(
    [],
  );
});

const count = 'must be a whole number such as 3, or a percentage from "0%" to "100%"';

test.each<readonly [string, unknown, string]>([
  [
    "the word of the setting",
    "none",
    'spec.guard must be a map of fields; a guard that withholds no deletion is { deletions: 100%, objects: 100% } (got "none")',
  ],
  ["a word for a count", { additions: "none" }, `spec.guard.additions ${count} (got "none")`],
  ["a number in quotes", { deletions: "5" }, `spec.guard.deletions ${count}: remove the quotes for a number (got "5")`],
  ["a part of a cluster", { deletions: 1.5 }, `spec.guard.deletions ${count} (got 1.5)`],
  [
    "another word for the window",
    { within: "24h" },
    "spec.guard.within is not a field Starling knows (did you mean per?); remove it",
  ],
])("a guard with %s gives one error", (_, guard, problem) => {
  expect(groupProblems({ guard })).toEqual([problem]);
});
