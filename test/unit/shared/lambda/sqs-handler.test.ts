import { expect, test } from "vitest";
import { eachMessage, type SqsEvent, sqsHandler } from "#shared/lambda/sqs-handler.ts";
import type { MessageReturns, UndoneMessage } from "#shared/ports.ts";
import { silentLog } from "#test/support/planner-world.ts";

const context = { getRemainingTimeInMillis: () => 60_000 };

/** Messages to the queue `apply`, one for each cluster, with the number of times each was received. */
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

/** By cluster: the message is done, is due again after some seconds, or fails. */
async function work({ cluster = "" }: { readonly cluster?: string | undefined }): Promise<number | undefined> {
  if (cluster === "broken") throw new Error("it fails");
  return { soon: 7, "at-once": 0 }[cluster];
}

test("a postponed message stays in the queue for the time it asks for, and a failed one for the queue's time", async () => {
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

test("a failed message returns to the queue when the adapter for returns decides", async () => {
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

test("a postponed message stays in the queue also if its delay cannot be set", async () => {
  const warned: string[] = [];
  const log = { ...silentLog, warn: (message: string) => void warned.push(message) };
  const delays = { giveBack: () => Promise.reject(new Error("SQS is away")) };
  const handler = sqsHandler({ queue: "apply", log, delays, work: (all) => eachMessage(all, work) });
  const answer = await handler(eventOf({ soon: 1, done: 1 }), context);
  expect(answer.batchItemFailures).toEqual([{ itemIdentifier: "m-soon" }]);
  expect(warned).toEqual(["messages come back late"]);
});

test("a function sees how often its message was received", async () => {
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

test("a function sees when its message was sent, if that is known", async () => {
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
