import { plainLine } from "#shared/base/plain-text.ts";

/** Settings that are wrong: an error of the operator, which Starling's own commands print without a stack trace. */
export class SettingError extends Error {
  /** @param problems - each becomes one line: the setting, its value, and what to write. */
  constructor(problems: readonly string[]) {
    super(problems.map(plainLine).join("\n"));
    this.name = "SettingError";
  }
}
