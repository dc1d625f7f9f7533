/** An alarm that nobody hears is none: whoever the settings name is told of every one of them. */
import { describe, expect, test } from "vitest";
import { ofType, resourcesIn, synthesizeTemplates, textOf } from "#test/synth/synthesized.ts";

const topicArn = "arn:aws:sns:eu-west-1:111122223333:on-call";

async function actionsWith(settings: Readonly<Record<string, string>>) {
  const { control } = await synthesizeTemplates(settings);
  const resources = resourcesIn(control);
  const alarms = ofType(resources, "AWS::CloudWatch::Alarm");
  expect(alarms.length).toBeGreaterThan(10);
  const told = alarms.flatMap(({ Properties: { AlarmActions = [], OKActions = [] } }) => [
    (AlarmActions as unknown[]).map(textOf).join(),
    (OKActions as unknown[]).map(textOf).join(),
  ]);
  return { resources, told: new Set(told) };
}

describe("every alarm, when it begins and when it is over, is told", () => {
  test("to nobody when the settings name nobody, and no topic is made", async () => {
    const { resources, told } = await actionsWith({});
    expect(ofType(resources, "AWS::KMS::Key")).toEqual([]);
    expect(told).toEqual(new Set([""]));
    expect(ofType(resources, "AWS::SNS::Topic")).toEqual([]);
  });

  test("to the topic that is there", async () => {
    const { resources, told } = await actionsWith({ alarmTopicArn: topicArn });
    expect(told).toEqual(new Set([topicArn]));
    expect(ofType(resources, "AWS::SNS::Topic")).toEqual([]);
  });

  test("to an address, by an encrypted topic that CloudWatch may publish to, over TLS only", async () => {
    const { resources, told } = await actionsWith({ alarmEmail: "on-call@example.com" });
    const [topic] = ofType(resources, "AWS::SNS::Topic");
    expect(told).toEqual(new Set([`<${topic?.id}>`]));
    const [key] = ofType(resources, "AWS::KMS::Key");
    expect(textOf(topic?.Properties.KmsMasterKeyId)).toBe(`<${key?.id}.Arn>`);
    // With the key of SNS's own, which refuses CloudWatch, alarms are lost.
    expect(JSON.stringify(key?.Properties.KeyPolicy)).toContain(
      '"Action":["kms:Decrypt","kms:GenerateDataKey*"],"Condition":{"StringEquals":{"aws:SourceAccount":{"Ref":"AWS::AccountId"}}},' +
        '"Effect":"Allow","Principal":{"Service":"cloudwatch.amazonaws.com"}',
    );
    expect(ofType(resources, "AWS::SNS::Subscription").map(({ Properties }) => Properties)).toEqual([
      { Endpoint: "on-call@example.com", Protocol: "email", TopicArn: { Ref: topic?.id } },
    ]);
    const [policy] = ofType(resources, "AWS::SNS::TopicPolicy").map(({ Properties }) => JSON.stringify(Properties));
    expect(policy).toContain('"Condition":{"Bool":{"aws:SecureTransport":"false"}},"Effect":"Deny"');
    expect(policy).toContain(
      '"Action":"sns:Publish","Condition":{"StringEquals":{"aws:SourceAccount":{"Ref":"AWS::AccountId"}}},' +
        '"Effect":"Allow","Principal":{"Service":"cloudwatch.amazonaws.com"}',
    );
  });

  test("to both", async () => {
    const { told } = await actionsWith({ alarmTopicArn: topicArn, alarmEmail: "on-call@example.com" });
    expect(told.size).toBe(1);
    expect([...told][0]).toMatch(/^arn:aws:sns:eu-west-1:111122223333:on-call,<AlarmReceiversTopic\w+>$/);
  });
});
