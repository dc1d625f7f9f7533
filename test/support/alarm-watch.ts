/** The alarms that wake somebody at night, and the steps of the runbook. */
import { type AlarmState, alarmState } from "#test/support/alarm-state.ts";
import type { World } from "#test/support/e2e-world.ts";
import { type EmbeddedLine, samplesIn } from "#test/support/embedded-metrics.ts";
import { runbookSections } from "#test/support/runbook.ts";
import { functionNamed, ofType, type Resource, textOf } from "#test/synth/synthesized.ts";

/**
 * The state of the alarm whose id begins with this name, such as `FleetWatchHalted`, over the lines from an index on.
 */
export type AlarmWatch = (name: string, from: number) => AlarmState;

/**
 * Computes what CloudWatch would report if every period looked like the lines of this machine. @param resources - of
 * the stacks.
 */
export function alarmWatch(
  resources: readonly Resource[],
  lines: readonly EmbeddedLine[],
  { machine }: Pick<World, "machine">,
): AlarmWatch {
  const nameThere = namesThere(resources, machine);
  return (name, from) => {
    const alarm = alarmNamed(resources, name);
    const { Period = 300, EvaluationPeriods } = alarm.Properties as { Period?: number; EvaluationPeriods: number };
    const nowSeconds = 1_795_000_000;
    const samples = Array.from({ length: EvaluationPeriods }, (_, index) =>
      samplesIn(lines.slice(from), { atSeconds: nowSeconds - index * Period - 1, nameThere }),
    );
    return alarmState(alarm, samples.flat(), { nowSeconds });
  };
}

/** A line, and when it was written by the clock of the functions. */
export interface TimedLine {
  readonly atSeconds: number;
  readonly line: EmbeddedLine;
}

/**
 * The states of an alarm from the first line to now, without repetitions. CloudWatch keeps metrics by the minute, and
 * evaluates an alarm every minute, over periods that end then.
 */
export function alarmHistory(
  name: string,
  { resources, lines, nowSeconds, machine }: AlarmHistoryOptions,
): readonly AlarmState[] {
  const nameThere = namesThere(resources, machine);
  const samples = lines.flatMap(({ atSeconds, line }) =>
    samplesIn([line], { atSeconds: minuteOf(atSeconds), nameThere }),
  );
  const [first = nowSeconds] = lines.map(({ atSeconds }) => minuteOf(atSeconds));
  const alarm = alarmNamed(resources, name);
  const states: AlarmState[] = [];
  for (let at = first; at <= nowSeconds; at += minute) {
    const state = alarmState(alarm, samples, { nowSeconds: at });
    if (state !== states.at(-1)) states.push(state);
  }
  return states;
}

interface AlarmHistoryOptions extends Pick<World, "machine"> {
  readonly resources: readonly Resource[];
  readonly lines: readonly TimedLine[];
  readonly nowSeconds: number;
}

const minute = 60;

function minuteOf(seconds: number): number {
  return Math.floor(seconds / minute) * minute;
}

function alarmNamed(resources: readonly Resource[], name: string): Resource {
  const found = ofType(resources, "AWS::CloudWatch::Alarm").filter(({ id }) => id.startsWith(`Wiring${name}`));
  const [alarm] = found;
  if (alarm === undefined || found.length > 1) throw new Error(`${found.length} alarms are named ${name}`);
  return alarm;
}

/** The name that the template has for the installation of this machine. */
function namesThere(resources: readonly Resource[], { eks }: World["machine"]): (value: string) => string {
  const { Variables } = functionNamed(resources, "tick").Properties.Environment as {
    Variables: Record<string, unknown>;
  };
  return (value) => (value === eks.installation ? textOf(Variables.STARLING_INSTALLATION) : value);
}

/**
 * Waits until a tick that begins from now on has reported the state of the fleet, to the last of its lines, which is known
 * by the next tick. @returns the index of its first line.
 */
export async function untilSurveyed(
  { waitFor }: Pick<World, "waitFor">,
  lines: readonly EmbeddedLine[],
): Promise<number> {
  const from = lines.length;
  return waitFor("a survey", async () => {
    const begins = lines.flatMap((line, index) => (index >= from && "DueLag" in line ? [index] : []));
    return begins.find((begin, tick) =>
      lines.slice(begin, begins[tick + 1] ?? begin).some((line) => "Targets" in line),
    );
  });
}

const named: Readonly<Record<string, string>> = {
  GROUP: "web",
  NAMESPACE: "shop",
  SOURCE: "app",
  CLUSTER: "canary-1",
};

/** The words of a runbook line after `starling`. Words in capitals become names of the web world. */
export function runbookWords(line: string): readonly string[] {
  const words = line.match(/"[^"]*"|\S+/g) ?? [];
  return words
    .slice(1)
    .map((word) => word.replaceAll('"', "").replaceAll(/\b[A-Z]{4,}\b/g, (name) => named[name] ?? name));
}

/** The commands of a section, including those inside sentences. */
export function runbookCommands(anchor: string): readonly string[] {
  const { text, commands } = runbookSections().find((section) => section.anchor === anchor) ?? {
    text: "",
    commands: [],
  };
  const prose = text.replaceAll(/```.*?```/gs, "");
  return [...commands, ...[...prose.matchAll(/`(starling [^`]+)`/g)].map(([, line = ""]) => line.replace(/\s+/g, " "))];
}
