import { CliFailure } from "#cli/session/failure.ts";
import type { Session } from "#cli/session/session.ts";
import { plainText } from "#shared/base/plain-text.ts";

/**
 * Says what a change takes with it and asks; `--yes` answers, and without a terminal nobody can.
 * @throws CliFailure when the answer is no.
 */
export async function confirmConsequences(
  session: Session,
  asked: { readonly message: string },
  withYes: string,
): Promise<void> {
  session.io.err(`${plainText(asked.message)}\n`);
  if (session.options.yes === true) return;
  if (!session.io.canAsk) {
    throw new CliFailure("this asks for a confirmation, and there is no terminal", { exit: "no", next: withYes });
  }
  const answer = await session.io.ask("Go on? [y/N] ");
  if (/^y(es)?$/i.test(answer.trim())) return;
  throw new CliFailure("nothing was changed", { exit: "no" });
}
