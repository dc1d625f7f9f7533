import { CliFailure } from "#cli/session/failure.ts";
import type { Session } from "#cli/session/session.ts";

/**
 * Prints the consequences of a change and asks. `--yes` answers the question.
 * @throws CliFailure when the answer is no, or when there is no terminal and no `--yes`.
 */
export async function confirmConsequences(
  session: Session,
  asked: { readonly message: string },
  withYes: string,
): Promise<void> {
  session.io.err(`${asked.message}\n`);
  if (session.options.yes === true) return;
  if (!session.io.canAsk) {
    throw new CliFailure("the change needs a confirmation, and there is no terminal", { exit: "no", next: withYes });
  }
  const answer = await session.io.ask("Continue? [y/N] ");
  if (/^y(es)?$/i.test(answer.trim())) return;
  throw new CliFailure("nothing was changed", { exit: "no" });
}
