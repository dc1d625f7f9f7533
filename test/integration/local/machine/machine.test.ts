import { GetQueueUrlCommand, ReceiveMessageCommand } from "@aws-sdk/client-sqs";
import { afterEach, describe, expect, test } from "vitest";
import { accessKeyIdOf } from "#local/aws/iam/sessions.ts";
import type { AwsCall } from "#local/aws/wire/aws-call.ts";
import { quiet } from "#local/aws/wire/fault-options.ts";
import { pacedClock } from "#local/base/paced-clock.ts";
import { openApiSession } from "#local/machine/api-session.ts";
import { only } from "#local/machine/deployment.ts";
import { functionCode } from "#local/machine/function-code.ts";
import { type Machine, type MachineOptions, startMachine } from "#local/machine/machine.ts";

let machine: Machine | undefined;
afterEach(async () => {
  await machine?.stop();
  machine = undefined;
});

async function start(options: MachineOptions): Promise<Machine> {
  machine = await startMachine({ tickEveryMs: "manual", ...options });
  return machine;
}

/** Collects the roles and sessions that call the table. */
function watchCallers({ proxy, principals }: Machine): Set<string> {
  const callers = new Set<string>();
  proxy.intercept({
    before(call: AwsCall) {
      if (call.service !== "dynamodb") return;
      const arn = principals.find(accessKeyIdOf(call) ?? "")?.principalArn ?? "nobody";
      callers.add(arn.replace(/Role[0-9A-F]+/, "Role"));
    },
  });
  return callers;
}

const sessions = [
  "arn:aws:sts::000000000000:assumed-role/starling-control-WiringApiRole/api",
  "arn:aws:sts::000000000000:assumed-role/starling-control-WiringTickRole/tick",
];

describe.each(["one process", "threads"] as const)("functions in %s", (isolation) => {
  test("each function works, and signs as its own role", async () => {
    const made = await start({ isolation });
    const callers = watchCallers(made);
    const session = openApiSession(made.api);
    expect(await session.call("GET", "/v1/clusters")).toMatchObject({ items: [] });
    await made.tick();
    expect([...callers].sort()).toEqual(sessions);
  });
});

const changes: Readonly<Record<string, MachineOptions>> = {
  sandboxes: { sandboxes: (_name, wire) => wire() },
  code: { code: functionCode },
  clock: { clock: pacedClock(10) },
};

test.each(Object.entries(changes))("threads refuse the option %s", async (_name, change) => {
  const made = await start({ isolation: "threads", ...change });
  await expect(made.tick()).rejects.toThrow("leave out sandboxes, code and clock");
});

test("a function's time and its queue's visibility can be shortened together", async () => {
  const { plan } = await start({ timeoutSeconds: { apply: 7 } });
  expect(plan.functions.find(({ folder }) => folder === "apply")?.timeoutSeconds).toBe(7);
  const source = plan.eventSources.find(({ function: name }) => name.includes("Apply"));
  expect(plan.queues.find(({ name }) => name === source?.queue)?.visibilityTimeoutSeconds).toBe(7);
});

/** Reads the queue of failed ticks, which an alarm watches. */
async function failureLetters({ aws, plan }: Machine): Promise<(waitSeconds: number) => Promise<readonly unknown[]>> {
  const { failures = "" } = only(plan.schedules, "schedule");
  const { QueueUrl } = await aws.sqs.send(new GetQueueUrlCommand({ QueueName: failures }));
  return async (WaitTimeSeconds) => {
    const { Messages = [] } = await aws.sqs.send(new ReceiveMessageCommand({ QueueUrl, WaitTimeSeconds }));
    return Messages.map(({ Body = "" }) => JSON.parse(Body) as unknown);
  };
}

test("a failed tick is reported to the queue that an alarm watches", async () => {
  const made = await start({ tickEveryMs: 50, faults: { ...quiet, dynamodb: { ...quiet.dynamodb, resetBefore: 1 } } });
  const letters = await failureLetters(made);
  expect(await letters(20)).toMatchObject([
    {
      requestContext: { condition: "RetriesExhausted" },
      requestPayload: {},
      responseContext: { functionError: "Unhandled" },
      responsePayload: { errorType: expect.any(String), errorMessage: expect.any(String) },
    },
  ]);
});

test("successful ticks are not reported to the queue that an alarm watches", async () => {
  const made = await start({ tickEveryMs: 50 });
  const letters = await failureLetters(made);
  let queries = 0;
  made.proxy.intercept({
    before(call) {
      if (call.service === "dynamodb" && call.operation === "Query") queries += 1;
    },
  });
  // Each tick queries 16 shards, so that more than 48 queries mean three finished ticks.
  await expect.poll(() => queries, { timeout: 20_000 }).toBeGreaterThan(48);
  expect(await letters(0)).toEqual([]);
});
