import {
  type LocalOptions,
  runningMachine,
  stateFlag,
  stateFolder,
  withLocalFailures,
} from "#cli/commands/local-folder.ts";
import { serialise } from "#cli/format/serialise.ts";
import { isData } from "#cli/output/output.ts";
import { type ExitReason, usageFailure } from "#cli/session/failure.ts";
import type { Session } from "#cli/session/session.ts";
import { setAlarm } from "#local/serve/control-server.ts";
import { quoted } from "#shared/base/shell-word.ts";
import { alarmStates } from "#shared/fleet/rows/rollout-rows.ts";

/** Sets the state of an alarm of the machine's CloudWatch, and prints the ARN that a gate names. */
export async function localAlarm(
  session: Session,
  [name = "", word = ""]: readonly string[],
  options: LocalOptions,
): Promise<ExitReason> {
  const state = alarmStates.find((known) => known === word);
  if (state === undefined)
    throw usageFailure(
      `the state is "${word}"; expected ${alarmStates.join(", ")}`,
      `starling local alarm ${quoted(name)} ALARM`,
    );
  const { control, folder } = runningMachine(session, stateFolder(session, options));
  const alarm = await withLocalFailures(() => setAlarm(control, { name, state }), stateFlag(session, folder));
  const { output } = session.options;
  session.io.out(isData(output) ? serialise(alarm, output) : `${alarm.arn} is ${alarm.state}\n`);
  return "done";
}
