// biome-ignore-all lint/suspicious/noTemplateCurlyInString: CloudFormation writes them so
import { expect, test } from "vitest";
import { resolveValue, type ValueScope } from "#local/template/resolve-value.ts";

const scope: ValueScope = {
  pseudo: {
    "AWS::AccountId": "000000000000",
    "AWS::Region": "us-east-1",
    "AWS::Partition": "aws",
    "AWS::URLSuffix": "amazonaws.com",
  },
  resource: (id) =>
    id === "Queue" ? { ref: "http://sqs/q", attributes: { Arn: "arn:q", "Nested.Name": "inner" } } : undefined,
  output: (stack, name) => (stack === "state" && name === "TableName" ? "the-table" : undefined),
};

test.each<[unknown, string]>([
  ["plain", "plain"],
  [7, "7"],
  [false, "false"],
  [{ Ref: "Queue" }, "http://sqs/q"],
  [{ Ref: "AWS::Region" }, "us-east-1"],
  [{ "Fn::GetAtt": ["Queue", "Arn"] }, "arn:q"],
  [{ "Fn::GetAtt": "Queue.Arn" }, "arn:q"],
  [{ "Fn::GetAtt": ["Queue", "Nested.Name"] }, "inner"],
  [
    { "Fn::Join": [".", ["starling", { Ref: "AWS::AccountId" }, { Ref: "AWS::Region" }]] },
    "starling.000000000000.us-east-1",
  ],
  [{ "Fn::GetStackOutput": { StackName: "state", OutputName: "TableName" } }, "the-table"],
  [{ "Fn::GetStackOutput": { StackName: { "Fn::Join": ["", ["st", "ate"]] }, OutputName: "TableName" } }, "the-table"],
  [
    { "Fn::Sub": "arn:${AWS::Partition}:sqs:${Queue}:${Queue.Arn}:${!Literal}" },
    "arn:aws:sqs:http://sqs/q:arn:q:${Literal}",
  ],
  [{ "Fn::Sub": ["${Given}/${AWS::URLSuffix}", { Given: { Ref: "Queue" } }] }, "http://sqs/q/amazonaws.com"],
])("the value %j is resolved to %j", (value, text) => {
  expect(resolveValue(value, scope)).toBe(text);
});

test.each<[unknown, RegExp]>([
  [{ Ref: "Topic" }, /refers to Topic, which this machine does not create/],
  [{ Ref: "AWS::StackId" }, /Ref AWS::StackId: unknown pseudo parameter; expected AWS::AccountId/],
  [
    { "Fn::GetAtt": ["Queue", "Name"] },
    /GetAtt Queue\.Name: unknown attribute; on this machine Queue has Arn, Nested\.Name/,
  ],
  [
    { "Fn::GetStackOutput": { StackName: "state", OutputName: "Other" } },
    /GetStackOutput Other of state: no stack of this machine has this output/,
  ],
  [
    { "Fn::Select": [0, ["a"]] },
    /"Fn::Select".*is not a value that this machine resolves; it supports Ref, Fn::GetAtt/,
  ],
  [{ Ref: "Queue", more: 1 }, /is not a value that this machine resolves/],
  [{ "Fn::Sub": 7 }, /Fn::Sub of 7: expected a text/],
  [null, /null is not a value/],
])("the value %j is refused", (value, message) => {
  expect(() => resolveValue(value, scope)).toThrow(message);
});
