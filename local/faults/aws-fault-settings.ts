/** The faults of AWS as words: `hostile`, `sqs.lose=0.1`, `dynamodb.indexLagMs=2s`. */
import { everyday, type FaultOptions, hostile, quiet } from "#local/aws/wire/fault-options.ts";
import { millisecondsOf, shareOf, splitSetting, unknownKnob, wrongValue } from "#local/faults/fault-setting.ts";

const weathers: Readonly<Record<string, FaultOptions>> = { quiet, everyday, hostile };

/** The names of all faults in `quiet`, such as `sqs.lose`. */
const knobs: readonly string[] = Object.entries(quiet).flatMap(([service, faults]) =>
  Object.keys(faults).map((name) => `${service}.${name}`),
);

/** All words for AWS: first the presets, then the faults that take a value. */
export const awsWords: readonly string[] = [...Object.keys(weathers), ...knobs];

/**
 * Applies settings to faults, in their order. The name of a preset replaces all faults. @throws LocalFailure for an
 * unknown setting.
 */
export function withAwsSettings(faults: FaultOptions, settings: readonly string[]): FaultOptions {
  let next = faults;
  for (const setting of settings) {
    const { name, value } = splitSetting(setting);
    const weather = Object.hasOwn(weathers, name) ? weathers[name] : undefined;
    if (value === undefined && weather !== undefined) next = weather;
    else if (knobs.includes(name)) next = withKnob(next, name, value ?? "");
    else throw unknownKnob("aws", setting, awsWords);
  }
  return next;
}

/** The shortest list of settings that turns `quiet` into these faults, for example `hostile sqs.lose=0.5`. */
export function awsSettings(faults: FaultOptions): readonly string[] {
  const ways = Object.entries(weathers).map(([name, weather]) => [
    ...(weather === quiet ? [] : [name]),
    ...differences(faults, weather).map((knob) => `${knob}=${settingIn(faults, knob)}`),
  ]);
  return ways.toSorted((left, right) => left.length - right.length)[0] ?? [];
}

function withKnob(faults: FaultOptions, knob: string, text: string): FaultOptions {
  const [service, name] = partsOf(knob);
  return { ...faults, [service]: { ...faults[service], [name]: readValue(knob, text) } };
}

function readValue(knob: string, text: string): number {
  if (text === "off") return settingIn(quiet, knob);
  if (knob.endsWith("Ms")) return millisecondsOf(text) ?? fail(knob, text, "a duration such as 500ms or 2s");
  if (knob.endsWith("Seconds")) {
    const milliseconds = /^\d+$/.test(text) ? Number(text) * 1000 : millisecondsOf(text);
    return milliseconds === undefined ? fail(knob, text, "a duration such as 2s") : milliseconds / 1000;
  }
  return shareOf(text) ?? fail(knob, text, "a share of calls from 0 to 1, such as 0.1 or 10%");
}

function fail(knob: string, text: string, expected: string): never {
  throw wrongValue("aws", `${knob}=${text}`, expected);
}

function differences(faults: FaultOptions, from: FaultOptions): readonly string[] {
  return knobs.filter((knob) => settingIn(faults, knob) !== settingIn(from, knob));
}

function settingIn(faults: FaultOptions, knob: string): number {
  const [service, name] = partsOf(knob);
  return new Map(Object.entries(faults[service])).get(name) ?? 0;
}

function partsOf(knob: string): readonly [keyof FaultOptions, string] {
  const dot = knob.indexOf(".");
  return [knob.slice(0, dot) as keyof FaultOptions, knob.slice(dot + 1)];
}
