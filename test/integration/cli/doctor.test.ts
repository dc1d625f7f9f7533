/** Each link of `starling doctor` is broken on a machine on which all other links work. */
import { ListQueuesCommand, PurgeQueueCommand, SendMessageCommand } from "@aws-sdk/client-sqs";
import { DeleteCommand, PutCommand } from "@aws-sdk/lib-dynamodb";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { EksRegister } from "#local/aws/eks/eks-register.ts";
import { startEksAndSts } from "#local/aws/eks/eks-sts-server.ts";
import { IamRoles } from "#local/aws/iam/iam-roles.ts";
import { type AccessKey, Principals } from "#local/aws/iam/principals.ts";
import { quiet } from "#local/aws/wire/fault-options.ts";
import { DynamoTable } from "#shared/adapters/aws/dynamo-table.ts";
import { dueAttributes } from "#shared/fleet/rows/due.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import { tickUpdate } from "#shared/fleet/rows/tick-row.ts";
import { startDoctorWorld } from "#test/support/doctor-world.ts";
import { forAllTests } from "#test/support/for-tests.ts";

const order = [
  "context",
  "credentials",
  "endpoint",
  "clock",
  "permission",
  "version",
  "installation",
  "webhook-secret",
  "tick",
  "due-work",
  "dead-letters",
  "sources",
  "zones",
  "concurrency",
];
/** Everything that the installation reports about itself. */
const selfReported = ["webhook-secret", "tick", "due-work", "dead-letters", "sources", "zones", "concurrency"];
const unchecked = (...names: readonly string[]) => names.map((name) => `${name}: unchecked`);

const world = forAllTests(() => startDoctorWorld());
beforeEach(() => world.machine.tick());
afterEach(() => {
  world.answer(undefined);
  vi.unstubAllEnvs();
});

describe("an installation with nothing wrong", () => {
  test("a healthy installation has every link checked in one order, and nothing to repair", async () => {
    const ran = await world.examine();
    expect(ran).toMatchObject({ code: 0, healthy: true, ailing: [] });
    expect(ran.names).toEqual(order);
    expect((await world.examine()).names).toEqual(order);
    expect(ran.finding("credentials")).toMatchObject({ found: expect.stringMatching(/:user\/local$/) });
    expect(ran.finding("clock")).toMatchObject({ found: "exact" });
  });

  test("a healthy installation is printed for people in one line for each link", async () => {
    const { code, out, err } = await world.read();
    expect(err).toBe("14 ok, 0 wrong, 0 not checked\n");
    expect(code).toBe(0);
    const lines = out.trimEnd().split("\n");
    expect(lines.slice(1).map((line) => line.split(/ {2,}/).slice(0, 2))).toEqual(order.map((name) => ["ok", name]));
  });
});

describe("the way to the API", () => {
  test("the examination ends at the context if there is none", async () => {
    const ran = await world.examine(null);
    expect(ran).toMatchObject({ code: 1, ailing: ["context: wrong", ...unchecked(...order.slice(1))] });
    expect(ran.finding("context")).toMatchObject({ remedy: expect.stringContaining("starling context add NAME") });
    expect(ran.finding("concurrency")).toMatchObject({ because: "installation is not checked" });
  });

  test("a wrong region is found before any request is sent", async () => {
    const endpoint = "https://abc123.execute-api.eu-west-1.amazonaws.com";
    const ran = await world.examine({ endpoint, region: "us-east-1" });
    expect(ran.finding("context")).toMatchObject({
      state: "wrong",
      problem: "requests are signed for us-east-1, but the endpoint is in eu-west-1",
      remedy: `starling context add here --url ${endpoint} --region eu-west-1`,
    });
  });

  test("an endpoint where no server listens is wrong, and the credentials are checked all the same", async () => {
    const ran = await world.examine({ endpoint: "http://127.0.0.1:9" });
    expect(ran).toMatchObject({ code: 1, ailing: ["endpoint: wrong", ...unchecked(...order.slice(3))] });
    expect(ran.finding("endpoint")).toMatchObject({ found: "ECONNREFUSED", remedy: "starling local up" });
  });

  test("an endpoint with another server is wrong", async () => {
    const ran = await world.examine({ endpoint: `${world.machine.api.endpoint}/elsewhere` });
    expect(ran.finding("endpoint")).toMatchObject({ state: "wrong", found: expect.stringMatching(/^404 in /) });
  });

  test.each([
    [-400, "wrong", /^(399|400|401) s behind$/],
    [400, "wrong", /^(399|400|401) s ahead$/],
    [250, "ok", /^(249|250|251) s ahead$/],
  ])("a clock that differs by %d s is %s", async (ahead, state, found) => {
    const ran = await world.examine({}, ahead);
    expect(ran.finding("clock")).toMatchObject({ state, found: expect.stringMatching(found) });
    expect(ran.ailing).toEqual(state === "ok" ? [] : ["clock: wrong", ...unchecked(...order.slice(4))]);
    if (state === "wrong") expect(ran.finding("clock")).toMatchObject({ remedy: "sudo chronyc makestep" });
  });
});

describe("credentials", () => {
  const expired = (): AccessKey =>
    world.machine.principals.startSession({
      principalArn: "arn:aws:sts::000000000000:assumed-role/sre/ana",
      expiresAt: new Date(Date.now() - 1000),
    });
  const local = () => world.machine.api.credentials;

  test.each([
    ["that have expired", () => expired(), "the credentials have expired"],
    ["that are unknown", () => ({ ...local(), accessKeyId: "AKNOBODY" }), "AWS does not know the access key"],
    ["with another secret", () => ({ ...local(), secretAccessKey: "guessed" }), "does not belong to the access key"],
  ])("credentials %s are distinguished from a missing permission", async (_which, credentials, problem) => {
    const { accessKeyId, secretAccessKey, sessionToken } = credentials() as AccessKey;
    const given = { accessKeyId, secretAccessKey, ...(sessionToken === undefined ? {} : { sessionToken }) };
    const ran = await world.examine({ credentials: given });
    expect(ran).toMatchObject({ code: 1, ailing: ["credentials: wrong", ...unchecked(...order.slice(4))] });
    expect(ran.finding("credentials")).toMatchObject({
      found: `key ${accessKeyId} of context here`,
      problem: expect.stringContaining(problem),
      remedy: "starling local up",
    });
    expect(ran.out).not.toContain(secretAccessKey);
  });

  test("a profile that does not exist is found", async () => {
    vi.stubEnv("AWS_SHARED_CREDENTIALS_FILE", "/dev/null");
    vi.stubEnv("AWS_CONFIG_FILE", "/dev/null");
    const ran = await world.examine({ credentials: { profile: "work" } });
    expect(ran.finding("credentials")).toMatchObject({ found: "profile work", remedy: "aws configure list-profiles" });
  });

  test("a role that does not trust the credentials is found", async () => {
    const role = "arn:aws:iam::111122223333:role/starling-operator";
    const ran = await world.examine({ role });
    expect(ran.finding("credentials")).toMatchObject({
      state: "wrong",
      problem: expect.stringContaining(`cannot assume role ${role}`),
    });
  });

  test("credentials that STS cannot be asked about do not stop the check of the API", async () => {
    vi.stubEnv("AWS_MAX_ATTEMPTS", "1");
    const ran = await world.examine({ sts: "http://127.0.0.1:9" });
    expect(ran).toMatchObject({ code: 3, healthy: false, ailing: ["credentials: unchecked"] });
    expect(ran.finding("credentials")).toMatchObject({ because: expect.stringContaining("STS does not answer") });
  });

  test.each([
    ["arn:aws:iam::111122223333:user/team/bo", "aws iam put-user-policy --user-name bo "],
    ["arn:aws:sts::111122223333:assumed-role/ci/run-1", "aws iam put-role-policy --role-name ci "],
    [
      "arn:aws:sts::111122223333:assumed-role/AWSReservedSSO_dev_1/bo",
      "aws sso-admin put-inline-policy-to-permission-set",
    ],
  ])(
    "credentials of %s without the permission are reported with the action and the command that grants it",
    async (principalArn, remedy) => {
      // STS knows the credentials, and the API refuses them.
      const key = { accessKeyId: "AKVIEWER", secretAccessKey: "viewer" };
      const principals = new Principals([{ ...key, principalArn }]);
      const sts = await startEksAndSts({ principals, roles: new IamRoles(), clusters: new EksRegister() });
      try {
        const ran = await world.examine({ credentials: key, sts: sts.endpoint });
        expect(ran).toMatchObject({ code: 1, ailing: ["permission: wrong", ...unchecked(...order.slice(5))] });
        expect(ran.finding("permission")).toMatchObject({
          found: "403",
          problem: `${principalArn} may not execute-api:Invoke on arn:aws:execute-api:*:*:*/*`,
          remedy: expect.stringContaining(remedy),
        });
        const ofStack = await world.examine({ credentials: key, sts: sts.endpoint, stack: "starling-control" });
        expect(ofStack.finding("permission")).toMatchObject({ remedy: expect.stringContaining("'ViewerPolicy'") });
      } finally {
        await sts.stop();
      }
    },
  );
});

describe("the installation", () => {
  test("an installation that does not make progress is reported with its alarms", async () => {
    world.answer(() => ({ status: 503, body: { message: "Service Unavailable" } }));
    const ran = await world.examine();
    expect(ran).toMatchObject({ code: 1, ailing: ["permission: wrong", ...unchecked(...order.slice(5))] });
    expect(ran.finding("permission")).toMatchObject({
      found: "503",
      remedy: expect.stringContaining("aws cloudwatch describe-alarms --state-value ALARM"),
    });
  });

  test.each([
    ["0.0.9", "the stack is older than the command", "npx cdk deploy --all"],
    ["0.12.0", "the command is older than the stack", "git fetch --tags && git checkout v0.12.0 && npm ci"],
  ])("an installation of version %s does not fit this command", async (version, problem, remedy) => {
    world.answer((path) => (path === "/v1/version" ? { status: 200, body: { version } } : undefined));
    const ran = await world.examine();
    expect(ran).toMatchObject({ code: 1, ailing: ["version: wrong"] });
    expect(ran.finding("version")).toMatchObject({ found: `stack ${version}, command 0.1.0`, problem, remedy });
  });

  test("an installation that is too old to report on itself says so, and nothing is guessed", async () => {
    const body = { code: "NotFound", message: "there is no /v1/installation" };
    world.answer((path) => (path === "/v1/installation" ? { status: 404, body } : undefined));
    const ran = await world.examine();
    expect(ran).toMatchObject({ code: 1, ailing: ["installation: wrong", ...unchecked(...selfReported)] });
    expect(ran.finding("installation")).toMatchObject({ remedy: "npx cdk deploy --all" });
  });

  test("an installation reports what it can when a service does not answer it", async () => {
    world.machine.proxy.setFaults({ ...quiet, lambda: { ...quiet.lambda, throttle: 1 } });
    const ran = await world.examine();
    world.machine.proxy.setFaults(quiet);
    expect(ran).toMatchObject({ code: 3, healthy: false, ailing: ["concurrency: unchecked"] });
    expect(ran.finding("concurrency")).toMatchObject({
      because: expect.stringMatching(/does not know: AWS throttles the requests.*Rate/),
    });
  });
});

const table = () => new DynamoTable(world.machine.aws.dynamo, world.machine.environment.table);
const minutesAgo = (minutes: number) => new Date(Date.now() - minutes * 60_000);

describe("the timer", () => {
  test("a timer that is silent is reported with its last run, and due rows are no finding of their own", async () => {
    await table().update(tickUpdate(minutesAgo(4)));
    const ran = await world.examine();
    expect(ran).toMatchObject({ code: 1, ailing: ["tick: wrong", "due-work: unchecked"] });
    expect(ran.finding("tick")).toMatchObject({
      found: expect.stringMatching(/^4m(\d+s)? ago$/),
      problem: expect.stringContaining("the timer is silent"),
      remedy: expect.stringContaining("aws lambda invoke --function-name tick "),
    });
  });

  test("a timer may miss two of its minutes", async () => {
    await table().update(tickUpdate(minutesAgo(2)));
    expect((await world.examine()).ailing).toEqual([]);
  });

  test("a timer that cannot claim a due row names the row and how to read it", async () => {
    const key = keys.object("payments", "Source", "shop");
    const since = minutesAgo(10).toISOString();
    const { dynamo } = world.machine.aws;
    const TableName = world.machine.environment.table;
    // A newer version wrote the row: no tick of this version may claim it.
    const row = { ...key, type: "Source", schema: 99, version: 1, ...dueAttributes(key, since) };
    await dynamo.send(new PutCommand({ TableName, Item: row }));
    try {
      await world.machine.tick();
      const ran = await world.examine();
      expect(ran).toMatchObject({ code: 1, ailing: ["due-work: wrong"] });
      expect(ran.finding("due-work")).toMatchObject({
        found: `1 row, the oldest since ${since}`,
        problem: expect.stringContaining("NS#payments#Source shop is due, but no tick claims it"),
        remedy: "starling describe source/shop -n payments",
      });
    } finally {
      await dynamo.send(new DeleteCommand({ TableName, Key: { pk: key.pk, sk: key.sk } }));
    }
  });
});

describe("dead letters", () => {
  test.each([
    ["apply", "ToApply", "aws sqs start-message-move-task --source-arn arn:aws:sqs:"],
    ["tick", "EveryMinute", "aws sqs purge-queue --queue-url http"],
  ])("dead letters of %s are counted, and can be sent again or deleted", async (of, part, remedy) => {
    const { sqs } = world.machine.aws;
    const { QueueUrls = [] } = await sqs.send(new ListQueuesCommand({}));
    const QueueUrl = QueueUrls.find((url) => url.includes(`${part}DeadLetters`));
    for (const MessageBody of ["a", "b"]) await sqs.send(new SendMessageCommand({ QueueUrl, MessageBody }));
    try {
      const ran = await world.examine();
      expect(ran).toMatchObject({ code: 1, ailing: ["dead-letters: wrong"] });
      expect(ran.finding("dead-letters")).toMatchObject({ found: `${of} 2`, remedy: expect.stringContaining(remedy) });
    } finally {
      await sqs.send(new PurgeQueueCommand({ QueueUrl }));
    }
  });
});

describe("a new account, just deployed to", () => {
  test("a new account gets all missing parts reported at once, and each command repairs its part", async () => {
    const account = { clusters: "100", concurrency: "10" };
    const fresh = await startDoctorWorld({ account, webhookSecret: "unwritten" });
    try {
      const ran = await fresh.examine();
      expect(ran).toMatchObject({
        code: 1,
        ailing: ["webhook-secret: wrong", "tick: wrong", "due-work: unchecked", "concurrency: wrong"],
      });
      expect(ran.finding("webhook-secret")).toMatchObject({
        found: "empty",
        remedy: expect.stringMatching(
          /^aws secretsmanager put-secret-value --secret-id arn:aws:secretsmanager:\S+:secret:starling\/webhook-\w{6} --secret-string /,
        ),
      });
      expect(ran.finding("tick")).toMatchObject({ found: "never" });
      expect(ran.finding("concurrency")).toMatchObject({
        found: "10 in the account, deployed for 10",
        problem: expect.stringMatching(
          /^100 clusters need \d{3} concurrent executions of Lambda, but the account allows 10$/,
        ),
        remedy: expect.stringMatching(/--quota-code L-B99A9384 --desired-value \d{3}$/),
      });
      const { out, err } = await fresh.read();
      expect(err).toBe("10 ok, 3 wrong, 1 not checked\n");
      expect(out).toMatch(/^WRONG +webhook-secret +empty\n {2}problem: .*\n {2}remedy: {2}aws secretsmanager /m);
      expect(out).toMatch(/^not checked +due-work +tick is wrong$/m);

      await fresh.machine.putSecret("starling/webhook", '["written by an operator"]');
      await fresh.machine.tick();
      expect((await fresh.examine()).ailing).toEqual(["concurrency: wrong"]);
    } finally {
      await fresh.stop();
    }
  });
});
