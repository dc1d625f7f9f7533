/** Every alarm names its section of the runbook and notifies the receivers of the settings; every section has an alarm. */
import { describe, expect, test } from "vitest";
import { runbookSections } from "#test/support/runbook.ts";
import { ofType, resourcesIn, synthesizeTemplates, textOf } from "#test/synth/synthesized.ts";
import { zonesOf } from "#test/synth/zones.ts";

const topicArn = "arn:aws:sns:eu-west-1:111122223333:on-call";
const { control } = await synthesizeTemplates({ alarmTopicArn: topicArn, zones: zonesOf(1) });
const resources = resourcesIn(control);
const alarms = [
  ...ofType(resources, "AWS::CloudWatch::Alarm"),
  ...ofType(resources, "AWS::CloudWatch::CompositeAlarm"),
];
const sections = runbookSections();

/** Whether the alarm is only a part of a composite alarm, without actions of its own. */
const isPart = ({ Properties }: (typeof alarms)[number]) => Properties.ActionsEnabled === false;

function sectionOf({ Properties }: (typeof alarms)[number]): string {
  return (
    /What to do: docs\/runbook\.md#(?<section>[\w-]+)$/.exec(textOf(Properties.AlarmDescription))?.groups?.section ?? ""
  );
}

test("the stacks have alarms, and the runbook has sections", () => {
  expect(alarms.length).toBeGreaterThan(20);
  expect(sections.length).toBeGreaterThan(10);
});

describe.each(alarms.map((alarm) => [alarm.id, alarm] as const))("%s", (_id, alarm) => {
  test("the alarm notifies the receivers of the settings when it begins and when it ends", () => {
    expect(alarm.Properties.AlarmActions).toEqual([topicArn]);
    expect(alarm.Properties.OKActions).toEqual([topicArn]);
  });

  test("the runbook has a section for the alarm, which names it", () => {
    const section = sections.find(({ anchor }) => anchor === sectionOf(alarm));
    expect(section?.anchor, textOf(alarm.Properties.AlarmDescription)).toBeDefined();
    const [, construct = "", name = ""] = /^Wiring(\w+Watch|Watch)(\w+)[0-9A-F]{8}$/.exec(alarm.id) ?? [];
    const words = section?.text.replaceAll("\n", " ") ?? "";
    const generic = name.replace(
      /^(Resolve|Rollout|Render|Apply|ApplySlow|Report|Discover|z1)(?=Age|DeadLetters|Down)/,
      "",
    );
    const named = [...words.matchAll(/`(\w+)…(\w+)`/g)].map(([, of, which]) => `${of}…${which}`);
    expect(named.some((each) => each.startsWith(`${construct}…`) && each.endsWith(generic))).toBe(true);
  });

  test("the alarm is silent before its metric has a sample", () => {
    const { TreatMissingData } = alarm.Properties;
    if (alarm.Type === "AWS::CloudWatch::CompositeAlarm") return;
    expect(["notBreaching", "ignore", "missing"]).toContain(TreatMissingData);
    if (TreatMissingData === "missing") expect(isPart(alarm)).toBe(true);
  });
});

describe.each(sections.map((section) => [section.anchor, section] as const))("the section %s", (anchor, section) => {
  test("an alarm refers to the section", () =>
    expect(alarms.filter((alarm) => sectionOf(alarm) === anchor)).not.toEqual([]));

  test("the section has a description, an investigation and a resolution", () => {
    expect(section.parts).toEqual(["Description", "Investigation", "Resolution"]);
    expect(section.text).toContain("```sh");
  });
});

test("an alarm on metrics of Starling reads those of its own installation only", () => {
  const dimensionsOf = ({ Properties }: (typeof alarms)[number]) => {
    const own = Properties as { Namespace?: string; Dimensions?: unknown };
    const inside = (Properties.Metrics ?? []) as {
      MetricStat?: { Metric: { Namespace: string; Dimensions: unknown } };
    }[];
    return [own, ...inside.flatMap(({ MetricStat }) => MetricStat?.Metric ?? [])]
      .filter(({ Namespace }) => Namespace === "Starling")
      .map(({ Dimensions }) => JSON.stringify(Dimensions));
  };
  const dimensions = alarms.flatMap(dimensionsOf);
  expect(dimensions.length).toBeGreaterThan(5);
  for (const each of dimensions) expect(each).toContain('"Name":"installation"');
});

test("no alarm has more than the ten metrics that CloudWatch allows", () => {
  for (const { Properties } of alarms) {
    const metrics = (Properties.Metrics ?? []) as { MetricStat?: unknown }[];
    expect(metrics.filter(({ MetricStat }) => MetricStat !== undefined).length).toBeLessThanOrEqual(10);
  }
});
