import { expect, test } from "vitest";
import { usageWords } from "#cli/session/usage-words.ts";

test.each([
  [
    "error: option '--limit <n>' argument 'zero' is invalid. expected a whole number from 1.",
    'error: --limit is "zero"; expected a whole number from 1',
  ],
  [
    "error: option '-o, --output <format>' argument 'it's' is invalid. Allowed choices are wide, json, yaml, name.",
    'error: --output is "it\'s"; expected one of wide, json, yaml, name',
  ],
  [
    "error: command-argument value 'tcsh' is invalid for argument 'shell'. Allowed choices are bash, zsh, fish.",
    'error: shell is "tcsh"; expected one of bash, zsh, fish',
  ],
  ["error: required option '-f, --filename <path>' not specified", "error: --filename is missing"],
  ["error: option '-f, --filename <path>' argument missing", "error: --filename needs a value"],
  ["error: missing required argument 'group'", "error: group is missing"],
  ["error: unknown option '--nope'\n(Did you mean --note?)", "error: unknown flag --nope\n(Did you mean --note?)"],
  ["error: unknown command 'gte'\n(Did you mean get?)", 'error: unknown command "gte"\n(Did you mean get?)'],
  [
    "error: too many arguments for 'whoami'. Expected 0 arguments but got 2.",
    "error: whoami takes at most 0 arguments without a flag; got 2",
  ],
  ["error: something nobody has thought of", "error: something nobody has thought of"],
])("commander's error is reworded: %s", (said, ours) => {
  expect(usageWords(`${said}\n`)).toBe(`${ours}\n`);
});
