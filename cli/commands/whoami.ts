import { serialise } from "#cli/format/serialise.ts";
import { isData } from "#cli/output/output.ts";
import type { ExitReason } from "#cli/session/failure.ts";
import type { Session } from "#cli/session/session.ts";
import { askWhoAmI } from "#cli/session/who-am-i.ts";

/** Prints the principal that the installation sees. @throws CliFailure when it does not answer, or refuses. */
export async function whoami(session: Session): Promise<ExitReason> {
  const answer = await askWhoAmI(session);
  const { output } = session.options;
  if (isData(output)) {
    session.io.out(serialise(answer, output));
    return "done";
  }
  session.announce();
  session.io.out(`${answer.principal}\n`);
  session.note(`installation ${answer.installation}`);
  return "done";
}
