/** Every alarm notifies the receivers that the settings name. */
import { describe, expect, test } from "vitest";
import { ofType, resourcesIn, synthesizeTemplates, textOf } from "#test/synth/synthesized.ts";

const topicArn = "arn:aws:sns:eu-west-1:111122223333:on-call";

async function actionsWith(settings: Readonly<Record<string, string>>) {
  const { control } = await synthesizeTemplates(settings);
  const resources = resourcesIn(control);
  const alarms = ofType(resources, "AWS::CloudWatch::Alarm");
  expect(alarms.length).toBeGreaterThan(10);
  const receivers = alarms.flatMap(({ Properties: { AlarmActions = [], OKActions = [] } }) => [
    (AlarmActions as unknown[]).map(textOf).join(),
    (OKActions as unknown[]).map(textOf).join(),
  ]);
  return { resources, receivers: new Set(receivers) };
}

describe("the receivers of every alarm, when it begins and when it ends", () => {
  test("no alarm has a receiver, and no topic is created, when the settings name none", async () => {
    const { resources, receivers } = await actionsWith({});
    expect(ofType(resources, "AWS::KMS::Key")).toEqual([]);
    expect(receivers).toEqual(new Set([""]));
    expect(ofType(resources, "AWS::SNS::Topic")).toEqual([]);
  });

  test("every alarm notifies the existing topic that the settings name", async () => {
    const { resources, receivers } = await actionsWith({ alarmTopicArn: topicArn });
    expect(receivers).toEqual(new Set([topicArn]));
    expect(ofType(resources, "AWS::SNS::Topic")).toEqual([]);
  });

  test("every alarm notifies a mail address through an encrypted topic that CloudWatch may publish to, over TLS only", async () => {
    const { resources, receivers } = await actionsWith({ alarmEmail: "on-call@example.com" });
    const [topic] = ofType(resources, "AWS::SNS::Topic");
    expect(receivers).toEqual(new Set([`<${topic?.id}>`]));
    const [key] = ofType(resources, "AWS::KMS::Key");
    expect(textOf(topic?.Properties.KmsMasterKeyId)).toBe(`<${key?.id}.Arn>`);
    // SNS's own key refuses CloudWatch, and with it alarms would be lost.
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

  test("every alarm notifies a topic and a mail address when the settings name both", async () => {
    const { receivers } = await actionsWith({ alarmTopicArn: topicArn, alarmEmail: "on-call@example.com" });
    expect(receivers.size).toBe(1);
    expect([...receivers][0]).toMatch(/^arn:aws:sns:eu-west-1:111122223333:on-call,<AlarmReceiversTopic\w+>$/);
  });
});
