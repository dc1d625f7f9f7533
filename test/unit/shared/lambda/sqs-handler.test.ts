import { expect, test } from "vitest";
import { eachMessage, type SqsEvent, sqsHandler } from "#shared/lambda/sqs-handler.ts";
import type { MessageReturns, UndoneMessage } from "#shared/ports.ts";
import { silentLog } from "#test/support/planner-world.ts";

const context = { getRemainingTimeInMillis: () => 60_000 };

/** Messages to apply about clusters, each received so often. */
function eventOf(received: Readonly<Record<string, number>>): SqsEvent {
  return {
    Records: Object.entries(received).map(([cluster, receives]) => ({
      messageId: `m-${cluster}`,
      receiptHandle: `r-${cluster}`,
      body: JSON.stringify({ to: "apply", cluster }),
      attributes: { ApproximateReceiveCount: String(receives) },
    })),
  };
}

function noted(): MessageReturns & { readonly given: UndoneMessage[] } {
  const given: UndoneMessage[] = [];
  return {
    given,
    async giveBack(messages) {
      given.push(...messages);
    },
  };
}

/** By cluster: done with, comes back after so many seconds, or fails. */
async function work({ cluster }: { readonly cluster: string }): Promise<number | undefined> {
  if (cluster === "broken") throw new Error("it fails");
  return { soon: 7, "at-once": 0 }[cluster];
}

test("messages that come back by themselves stay in the queue for their time, and those that failed for the queue's", async () => {
  const delays = noted();
  const handler = sqsHandler({ queue: "apply", log: silentLog, delays, work: (all) => eachMessage(all, work) });
  const answer = await handler(eventOf({ done: 1, soon: 1, broken: 1, "at-once": 2 }), context);
  expect(answer.batchItemFailures.map(({ itemIdentifier }) => itemIdentifier)).toEqual([
    "m-soon",
    "m-broken",
    "m-at-once",
  ]);
  expect(delays.given).toEqual([
    { receiptHandle: "r-soon", receives: 1, afterSeconds: 7 },
    { receiptHandle: "r-at-once", receives: 2, afterSeconds: 0 },
  ]);
});

test("what failed comes back as whoever returns it says", async () => {
  const [returns, delays] = [noted(), noted()];
  const handler = sqsHandler({
    queue: "apply",
    log: silentLog,
    returns,
    delays,
    work: (all) => eachMessage(all, work),
  });
  await handler(eventOf({ broken: 3, soon: 1 }), context);
  expect(returns.given).toEqual([{ receiptHandle: "r-broken", receives: 3 }]);
  expect(delays.given.map(({ receiptHandle }) => receiptHandle)).toEqual(["r-soon"]);
});

test("a message stays in the queue, too, where nobody could say when it comes back", async () => {
  const warned: string[] = [];
  const log = { ...silentLog, warn: (message: string) => void warned.push(message) };
  const delays = { giveBack: () => Promise.reject(new Error("SQS is away")) };
  const handler = sqsHandler({ queue: "apply", log, delays, work: (all) => eachMessage(all, work) });
  const answer = await handler(eventOf({ soon: 1, done: 1 }), context);
  expect(answer.batchItemFailures).toEqual([{ itemIdentifier: "m-soon" }]);
  expect(warned).toEqual(["messages come back late"]);
});

test("whoever works on a message knows how often it was received", async () => {
  const seen: unknown[] = [];
  const handler = sqsHandler({
    queue: "apply",
    log: silentLog,
    work: async (messages) => {
      seen.push(...messages);
      return [];
    },
  });
  await handler(eventOf({ a: 1, b: 4 }), context);
  expect(seen).toEqual([
    { to: "apply", cluster: "a", receives: 1 },
    { to: "apply", cluster: "b", receives: 4 },
  ]);
});

test("whoever works on a message is told when it was sent, where that is known", async () => {
  const seen: unknown[] = [];
  const handler = sqsHandler({
    queue: "apply",
    log: silentLog,
    async work(messages) {
      seen.push(...messages.map(({ cluster, sentAt }) => [cluster, sentAt]));
      return [];
    },
  });
  const { Records } = eventOf({ known: 1, unknown: 1, strange: 1 });
  const times = [{ SentTimestamp: "1795507200123" }, {}, { SentTimestamp: "yesterday" }];
  await handler(
    { Records: Records.map((one, index) => ({ ...one, attributes: { ...one.attributes, ...times[index] } })) },
    context,
  );
  expect(seen).toEqual([
    ["known", new Date("2026-11-24T08:00:00.123Z")],
    ["unknown", undefined],
    ["strange", undefined],
  ]);
});
