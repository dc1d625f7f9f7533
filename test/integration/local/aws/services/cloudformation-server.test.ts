import { CloudFormationClient, DescribeStacksCommand, ListStacksCommand } from "@aws-sdk/client-cloudformation";
import { describe, expect, test } from "vitest";
import { Principals } from "#local/aws/iam/principals.ts";
import { startCloudFormation } from "#local/aws/services/cloudformation-server.ts";
import { forAllTests } from "#test/support/for-tests.ts";

const key = { accessKeyId: "AKPEOPLE", secretAccessKey: "people" };
const viewer = { accessKeyId: "AKVIEWER", secretAccessKey: "viewer" };
const arn = (name: string) => `arn:aws:cloudformation:eu-west-1:111122223333:stack/${name}/1`;
const control = {
  name: "starling-control",
  arn: arn("starling-control"),
  status: "CREATE_COMPLETE",
  outputs: { ApiUrl: "https://a.example.com", ExternalId: "starling/<name & more>" },
};
const state = { name: "starling-state", arn: arn("starling-state"), status: "UPDATE_IN_PROGRESS", outputs: {} };

const server = forAllTests(() =>
  startCloudFormation({
    principals: new Principals([
      { ...key, principalArn: "arn:aws:iam::111122223333:user/ana" },
      { ...viewer, principalArn: "arn:aws:iam::111122223333:user/bo" },
    ]),
    stacks: () => [control, state],
    allows: (principalArn) => principalArn.endsWith("/ana"),
  }),
);

function client(credentials = key) {
  return new CloudFormationClient({ region: "eu-west-1", endpoint: server.endpoint, credentials, maxAttempts: 1 });
}

describe("CloudFormation", () => {
  test.each(["starling-control", control.arn])("the server describes the stack %s with its outputs", async (name) => {
    const { Stacks } = await client().send(new DescribeStacksCommand({ StackName: name }));
    expect(Stacks).toMatchObject([
      {
        StackName: "starling-control",
        StackId: control.arn,
        StackStatus: "CREATE_COMPLETE",
        Outputs: [
          { OutputKey: "ApiUrl", OutputValue: "https://a.example.com" },
          { OutputKey: "ExternalId", OutputValue: "starling/<name & more>" },
        ],
      },
    ]);
  });

  test("the server describes all stacks if the request names none", async () => {
    const { Stacks = [] } = await client().send(new DescribeStacksCommand({}));
    expect(Stacks.map(({ StackName, StackStatus }) => `${StackName} ${StackStatus}`)).toEqual([
      "starling-control CREATE_COMPLETE",
      "starling-state UPDATE_IN_PROGRESS",
    ]);
  });

  test("a request for an unknown stack or another operation is refused", async () => {
    await expect(client().send(new DescribeStacksCommand({ StackName: "other" }))).rejects.toMatchObject({
      name: "ValidationError",
      message: "Stack with id other does not exist",
    });
    await expect(client().send(new ListStacksCommand({}))).rejects.toMatchObject({ name: "InvalidAction" });
  });

  test.each([
    ["of a user without permission", viewer, "AccessDenied", "cloudformation:DescribeStacks"],
    ["with an unknown key", { ...key, accessKeyId: "AKNOBODY" }, "InvalidClientTokenId", "invalid"],
    ["with another secret key", { ...key, secretAccessKey: "guessed" }, "SignatureDoesNotMatch", ""],
  ])("a request %s is refused", async (_who, credentials, name, message) => {
    const asked = client(credentials).send(new DescribeStacksCommand({ StackName: "starling-control" }));
    await expect(asked).rejects.toMatchObject({ name, message: expect.stringContaining(message) });
  });
});
