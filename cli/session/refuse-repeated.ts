import type { Command } from "commander";
import { repeated } from "#cli/session/add-command.ts";

/** Refuses a second value of a flag that takes one. The parser would use the last value and say nothing. */
export function refuseRepeated(command: Command): void {
  for (const option of command.options) {
    const takesOne = (option.required || option.optional) && !option.variadic && option.parseArg !== repeated;
    if (!takesOne) continue;
    let first: unknown;
    command.on(`option:${option.name()}`, (value: unknown) => {
      if (first !== undefined) {
        command.error(`error: ${option.long} was given twice, "${first}" and "${value}"; give it once`);
      }
      first = value;
    });
  }
  for (const one of command.commands) refuseRepeated(one);
}
