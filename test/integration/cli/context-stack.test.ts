/** `starling context add --stack` reads the address of an installation from CloudFormation. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import {
  type CloudFormationServer,
  type DeployedStack,
  startCloudFormation,
} from "#local/aws/services/cloudformation-server.ts";
import { startMachine } from "#local/machine/machine.ts";
import { type CliFixture, startCliFixture } from "#test/integration/cli/cli-fixture.ts";

const url = "https://abc123.execute-api.eu-west-1.amazonaws.com";
const control: DeployedStack = {
  name: "starling-control",
  arn: "arn:aws:cloudformation:eu-west-1:111122223333:stack/starling-control/1",
  status: "UPDATE_COMPLETE",
  outputs: { ApiUrl: url, WebhookUrl: `${url}/hook/github` },
};

let cli: CliFixture;
let stacks: readonly DeployedStack[];
let allowed: boolean;
let cloudFormation: CloudFormationServer;
beforeEach(async () => {
  cli = await startCliFixture();
  stacks = [control];
  allowed = true;
  const { principals } = cli;
  cloudFormation = await startCloudFormation({ principals, stacks: () => stacks, allows: () => allowed });
  vi.stubEnv("AWS_ENDPOINT_URL_CLOUDFORMATION", cloudFormation.endpoint);
  vi.stubEnv("AWS_MAX_ATTEMPTS", "1");
  vi.stubEnv("AWS_REGION", undefined);
  profileOf("not-a-secret", "eu-west-1");
});
afterEach(async () => {
  vi.unstubAllEnvs();
  await cloudFormation.stop();
  await cli.stop();
});

/** The profile `work` has the key that the fixture knows. */
function profileOf(secret: string, region: string | undefined): void {
  const keys = `[work]\naws_access_key_id = AKTEST\naws_secret_access_key = ${secret}\n`;
  vi.stubEnv("AWS_SHARED_CREDENTIALS_FILE", cli.write("credentials", keys));
  const settings = region === undefined ? "" : `[profile work]\nregion = ${region}\n`;
  vi.stubEnv("AWS_CONFIG_FILE", cli.write("config", settings));
}

const written = () =>
  JSON.parse(readFileSync(join(cli.folder, ".config", "config.json"), "utf8")) as {
    contexts: Readonly<Record<string, object>>;
    current?: string;
  };
const add = "context add prod --stack starling-control --profile work";

describe("context add --stack", () => {
  test("context add --stack keeps the address, the region and the stack's name, without a request to the installation", async () => {
    expect(await cli.run(`${add} -n payments`)).toEqual({
      code: 0,
      out: `context prod added, and current (eu-west-1, ${url})\n`,
      err: "  next: starling doctor\n",
    });
    expect(written().current).toBe("prod");
    expect(written().contexts.prod).toEqual({
      endpoint: url,
      region: "eu-west-1",
      stack: "starling-control",
      namespace: "payments",
      credentials: { profile: "work" },
    });
    expect((await cli.run("context show prod")).out).toContain("stack:       starling-control\n");
    expect(cli.requests()).toBe(0);
  });

  test("the region in --region precedes that of the profile", async () => {
    profileOf("not-a-secret", undefined);
    expect((await cli.run(`${add} --region ap-south-1`)).out).toContain(`(ap-south-1, ${url})`);
  });

  test("the error for a missing region says where to give it", async () => {
    profileOf("not-a-secret", undefined);
    const ran = await cli.run(add);
    expect(ran).toMatchObject({ code: 2, out: "" });
    expect(ran.err).toContain("no region is given");
    expect(ran.err).toContain("next: add --region REGION");
  });

  test.each<[string, Partial<DeployedStack> | undefined, { code: number; said: string; next: string }]>([
    [
      "that does not exist",
      undefined,
      { code: 3, said: "there is no stack starling-control (eu-west-1, profile work)", next: "aws cloudformation" },
    ],
    [
      "that is being created",
      { status: "CREATE_IN_PROGRESS", outputs: {} },
      { code: 3, said: "CREATE_IN_PROGRESS", next: "aws cloudformation wait stack-create-complete" },
    ],
    [
      "that was rolled back",
      { status: "ROLLBACK_COMPLETE", outputs: {} },
      { code: 3, said: "ROLLBACK_COMPLETE", next: "npx cdk deploy starling-control" },
    ],
    [
      "that is not the control stack",
      { outputs: { TableName: "t" } },
      { code: 2, said: "has no output ApiUrl (eu-west-1, UPDATE_COMPLETE)", next: "name the control stack" },
    ],
    [
      "whose address is plain http",
      { outputs: { ApiUrl: "http://starling.example.com" } },
      {
        code: 2,
        said: 'output ApiUrl of stack starling-control is "http://starling.example.com"; expected https',
        next: "the output ApiUrl",
      },
    ],
  ])("context add refuses a stack %s, and keeps nothing", async (_which, change, { code, said, next }) => {
    stacks = change === undefined ? [] : [{ ...control, ...change }];
    const before = written();
    const ran = await cli.run(add);
    expect(ran).toMatchObject({ code, out: "" });
    expect(ran.err).toContain(said);
    expect(ran.err).toContain(`next: ${next}`);
    expect(written()).toEqual(before);
  });

  test("the error for a missing permission names it, and the way without CloudFormation", async () => {
    allowed = false;
    const ran = await cli.run(add);
    expect(ran).toMatchObject({ code: 3, out: "" });
    expect(ran.err).toContain("is not authorized to perform: cloudformation:DescribeStacks");
    expect(ran.err).toContain("starling context add NAME --url URL");
  });

  test("wrong keys are reported", async () => {
    profileOf("guessed", "eu-west-1");
    const ran = await cli.run(add);
    expect(ran).toMatchObject({ code: 3, out: "" });
    expect(ran.err).toContain("next: aws sts get-caller-identity --profile work");
  });

  test("the error names the stack if CloudFormation does not answer", async () => {
    vi.stubEnv("AWS_ENDPOINT_URL_CLOUDFORMATION", "http://127.0.0.1:9");
    const ran = await cli.run(add);
    expect(ran).toMatchObject({ code: 3, out: "" });
    expect(ran.err).toContain("CloudFormation does not give stack starling-control (eu-west-1, profile work)");
  });
});

test("the stacks of the local machine lead to its API", { timeout: 60_000 }, async () => {
  const machine = await startMachine();
  try {
    const { accessKeyId, secretAccessKey } = machine.api.credentials;
    const keys = `[local]\naws_access_key_id = ${accessKeyId}\naws_secret_access_key = ${secretAccessKey}\n`;
    // The file has another name, because the SDK has read the first one and does not read it again.
    vi.stubEnv("AWS_SHARED_CREDENTIALS_FILE", cli.write("machine-credentials", keys));
    vi.stubEnv("AWS_ENDPOINT_URL_CLOUDFORMATION", machine.cloudFormation.endpoint);
    const added = await cli.run("context add mine --stack starling-control --profile local --region us-east-1");
    expect(added).toMatchObject({ code: 0, err: "  next: starling doctor\n" });
    expect(added.out).toContain(machine.api.endpoint);
    expect(await cli.run("whoami")).toMatchObject({ code: 0, out: expect.stringMatching(/:user\/local\n$/) });
  } finally {
    await machine.stop();
  }
});
