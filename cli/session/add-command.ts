import { type Command, InvalidArgumentError } from "commander";
import type { ExitReason } from "#cli/session/failure.ts";
import type { Session } from "#cli/session/session.ts";

/** The action of a command, called with its session, arguments and options. */
export type Action<Options> = (session: Session, args: readonly string[], options: Options) => Promise<ExitReason>;
/** Adds a subcommand to a command. */
export type AddCommand = <Options>(parent: Command, name: string, action: Action<Options>) => Command;

export function wholeNumber(text: string): number {
  const number = Number(text);
  if (!/^\d+$/.test(text) || number < 1) throw new InvalidArgumentError("expected a whole number from 1.");
  return number;
}

/** Parses an option that may be given several times. */
export function repeated(value: string, before: readonly string[] = []): readonly string[] {
  return [...before, value];
}
