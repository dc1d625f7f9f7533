/** A new account allows only ten invocations at once, and functions that are stuck must not use all of them. */
import { SendMessageCommand } from "@aws-sdk/client-sqs";
import { afterEach, expect, test } from "vitest";
import { openApiSession } from "#local/machine/api-session.ts";
import { type Machine, startMachine } from "#local/machine/machine.ts";
import type { QueueName } from "#shared/messages.ts";

/** The functions that can wait minutes for a server that does not answer. */
const stuck = ["resolve", "render", "apply"] as const satisfies readonly QueueName[];

let machine: Machine | undefined;
afterEach(async () => {
  await machine?.stop();
  machine = undefined;
});

function running(made: Machine, queue: QueueName): number {
  return (made.sources.get(queue) ?? []).reduce((sum, source) => sum + source.running(), 0);
}

test("the API answers and the timer runs while all functions that can get stuck are stuck", async () => {
  const made = await startMachine({
    tickEveryMs: "manual",
    account: { clusters: "100", concurrency: "10" },
    sandboxes: (name, wire) => ((stuck as readonly string[]).includes(name) ? () => new Promise(() => {}) : wire()),
  });
  machine = made;
  for (const queue of stuck) {
    const QueueUrl = made.environment.queues[queue];
    for (let index = 0; index < 20; index++) {
      await made.aws.sqs.send(new SendMessageCommand({ QueueUrl, MessageBody: JSON.stringify({ index }) }));
    }
  }
  await expect.poll(() => stuck.map((queue) => running(made, queue)), { timeout: 20_000 }).toEqual([2, 2, 2]);
  const session = openApiSession(made.api);
  expect(await session.call("GET", "/v1/clusters")).toMatchObject({ items: [] });
  await made.tick();
  expect(stuck.map((queue) => running(made, queue))).toEqual([2, 2, 2]);
});
