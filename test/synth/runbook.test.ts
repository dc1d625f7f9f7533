/** An alarm is about one thing that a person does: it says where, it tells whoever the settings name, and no page is about nothing. */
import { describe, expect, test } from "vitest";
import { runbookSections } from "#test/support/runbook.ts";
import { ofType, resourcesIn, synthesizeTemplates, textOf } from "#test/synth/synthesized.ts";

const topicArn = "arn:aws:sns:eu-west-1:111122223333:on-call";
const { control } = await synthesizeTemplates({ alarmTopicArn: topicArn });
const resources = resourcesIn(control);
const alarms = [
  ...ofType(resources, "AWS::CloudWatch::Alarm"),
  ...ofType(resources, "AWS::CloudWatch::CompositeAlarm"),
];
const sections = runbookSections();

/** Rings never by itself: it is a part of another one. */
const isPart = ({ Properties }: (typeof alarms)[number]) => Properties.ActionsEnabled === false;

function sectionOf({ Properties }: (typeof alarms)[number]): string {
  return (
    /What to do: docs\/runbook\.md#(?<section>[\w-]+)$/.exec(textOf(Properties.AlarmDescription))?.groups?.section ?? ""
  );
}

test("there are alarms, and sections", () => {
  expect(alarms.length).toBeGreaterThan(20);
  expect(sections.length).toBeGreaterThan(10);
});

describe.each(alarms.map((alarm) => [alarm.id, alarm] as const))("%s", (_id, alarm) => {
  test("tells whoever the settings name, when it begins and when it is over", () => {
    expect(alarm.Properties.AlarmActions).toEqual([topicArn]);
    expect(alarm.Properties.OKActions).toEqual([topicArn]);
  });

  test("has a section of the runbook, which names it", () => {
    const section = sections.find(({ anchor }) => anchor === sectionOf(alarm));
    expect(section?.anchor, textOf(alarm.Properties.AlarmDescription)).toBeDefined();
    const [, construct = "", name = ""] = /^Wiring(\w+Watch|Watch)(\w+)[0-9A-F]{8}$/.exec(alarm.id) ?? [];
    const words = section?.text.replaceAll("\n", " ") ?? "";
    const generic = name.replace(/^(Resolve|Rollout|Render|Apply|ApplySlow|Report|Discover)(?=Age|DeadLetters)/, "");
    const named = [...words.matchAll(/`(\w+)…(\w+)`/g)].map(([, of, which]) => `${of}…${which}`);
    expect(named.some((each) => each.startsWith(`${construct}…`) && each.endsWith(generic))).toBe(true);
  });

  test("is not on for what nobody has measured yet", () => {
    const { TreatMissingData } = alarm.Properties;
    if (alarm.Type === "AWS::CloudWatch::CompositeAlarm") return;
    expect(["notBreaching", "ignore", "missing"]).toContain(TreatMissingData);
    if (TreatMissingData === "missing") expect(isPart(alarm)).toBe(true);
  });
});

describe.each(sections.map((section) => [section.anchor, section] as const))("the section %s", (anchor, section) => {
  test("belongs to an alarm", () => expect(alarms.filter((alarm) => sectionOf(alarm) === anchor)).not.toEqual([]));

  test("says what it is, how to look, and what to do", () => {
    expect(section.parts).toEqual(["Description", "Investigation", "Resolution"]);
    expect(section.text).toContain("```sh");
  });
});

test("metrics of an alarm are of this installation only, or of a thing of this stack", () => {
  const dimensionsOf = ({ Properties }: (typeof alarms)[number]) => {
    const own = Properties as { Namespace?: string; Dimensions?: unknown };
    const inside = (Properties.Metrics ?? []) as {
      MetricStat?: { Metric: { Namespace: string; Dimensions: unknown } };
    }[];
    return [own, ...inside.flatMap(({ MetricStat }) => MetricStat?.Metric ?? [])]
      .filter(({ Namespace }) => Namespace === "Starling")
      .map(({ Dimensions }) => JSON.stringify(Dimensions));
  };
  const told = alarms.flatMap(dimensionsOf);
  expect(told.length).toBeGreaterThan(5);
  for (const dimensions of told) expect(dimensions).toContain('"Name":"installation"');
});

test("no alarm has more metrics than one may", () => {
  for (const { Properties } of alarms) {
    const metrics = (Properties.Metrics ?? []) as { MetricStat?: unknown }[];
    expect(metrics.filter(({ MetricStat }) => MetricStat !== undefined).length).toBeLessThanOrEqual(10);
  }
});
