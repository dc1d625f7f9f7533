import { expect, test } from "vitest";
import { runWithoutTerminal } from "#test/support/run-without-terminal.ts";

test.each([
  [
    ["get", "-o", ""],
    ["wide", "json", "yaml", "name", "jsonpath=", "custom-columns="],
  ],
  [
    ["get", "--output", "j"],
    ["json", "jsonpath="],
  ],
  [
    ["get", "--output=j"],
    ["--output=json", "--output=jsonpath="],
  ],
  [
    ["delete", "--cascade="],
    ["--cascade=delete", "--cascade=orphan"],
  ],
  [["get", "--state=Hal"], ["--state=Halted"]],
])("the shell completes the values of a flag that has a fixed set of values: %j", async (words, expected) => {
  const ran = await runWithoutTerminal(["complete", "--", ...words], { folder: "/nowhere", patienceMs: 10_000 });
  expect(ran.out.split("\n").filter((word) => word !== "")).toEqual(expected);
});
