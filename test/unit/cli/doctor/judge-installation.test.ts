import { expect, test } from "vitest";
import { judgeDeadLetters, judgeZones } from "#cli/doctor/judge-installation.ts";
import type { ZoneObject } from "#shared/fleet/api/zone-object.ts";

function zone(name: string, version?: string): ZoneObject {
  const workers = version === undefined ? {} : { workers: { ranAt: "2026-11-23T08:00:00.000Z", version } };
  return { kind: "Zone", metadata: { name }, network: { type: "none", addresses: [] }, ...workers };
}

test.each([
  ["0.3.1", "0.3.0"],
  ["0.3.1", "0.2.9"],
  ["0.3.1", "0.4.0"],
  ["1.0.0", "0.9.4"],
  ["0.3.1", undefined],
])("a stack %s works with the workers of a zone that run %s", (stack, version) => {
  expect(judgeZones([zone("home", stack), zone("far", version)], stack)).toEqual({
    state: "ok",
    found: `home ${stack}, far ${version ?? "no version"}`,
  });
});

test.each([
  ["0.3.1", "0.1.9"],
  ["0.3.1", "0.5.0"],
  ["2.0.0", "0.9.4"],
])("a stack %s and the workers of a zone that run %s are too far apart", (stack, version) => {
  expect(judgeZones([zone("home", stack), zone("far", version), zone("near", stack)], stack)).toEqual({
    state: "wrong",
    found: `home ${stack}, far ${version}, near ${stack}`,
    problem: `the workers of far are more than one version away from the stack ${stack}; docs/zones.md, Versions of zones`,
    remedy: "npx cdk deploy --all",
  });
});

const reported = { name: "starling.111122223333.eu-west-1" };
const letters = (of: string, place: string, messages: number) => ({
  ...{ of, messages, queueUrl: "https://queue", queueArn: `arn:aws:sqs:${place}:${of}-dead` },
});

test.each([
  ["eu-west-1:111122223333", ""],
  ["eu-north-1:111122223333", " --region eu-north-1"],
  ["eu-north-1:444455556666", " --region eu-north-1   (with credentials of account 444455556666)"],
])("dead letters in %s are sent again by a command for that place", (place, options) => {
  expect(
    judgeDeadLetters([letters("apply", "eu-west-1:111122223333", 0), letters("apply-far", place, 2)], reported),
  ).toMatchObject({
    state: "wrong",
    found: "apply-far 2",
    remedy: `aws sqs start-message-move-task --source-arn arn:aws:sqs:${place}:apply-far-dead${options}   (after repairing their cause)`,
  });
});

test("dead letters that a zone does not let be counted are not taken for none, and hide no others", () => {
  const far = { ...letters("apply-far", "", 0), uncounted: "AWS does not allow it" };
  const none = letters("apply", "eu-west-1:111122223333", 0);
  expect(judgeDeadLetters([none, far], reported)).toEqual({
    state: "unchecked",
    because: "apply-far: AWS does not allow it",
  });
  expect(judgeDeadLetters([{ ...none, messages: 1 }, far], reported)).toMatchObject({
    state: "wrong",
    found: "apply 1",
  });
});
