import { GetQueueAttributesCommand } from "@aws-sdk/client-sqs";
import type { World } from "#test/support/e2e-world.ts";

/** In polls, longer than the proxy of an everyday world delays a message. */
const polls = 3;

/**
 * Waits until nothing is in progress: the tick has sent messages for due rows, no message waits, and no function runs.
 * After that only time makes anything happen.
 */
export async function untilIdle(world: World): Promise<void> {
  await world.machine.tick();
  let [sent, idle] = [-1, 0];
  await world.waitFor("nothing is in progress", async () => {
    const before = messagesSent(world);
    const isStill = before === sent && (await waiting(world)) === 0 && running(world) === 0;
    sent = messagesSent(world);
    idle = isStill && sent === before ? idle + 1 : 0;
    return idle >= polls;
  });
}

function running({ machine }: World): number {
  return [...machine.sources.values()].flat().reduce((total, source) => total + source.running(), 0);
}

function messagesSent({ machine }: World): number {
  const calls = Object.entries(machine.proxy.calls()).filter(([name]) => name.startsWith("sqs:SendMessage"));
  return calls.reduce((total, [, count]) => total + count, 0);
}

async function waiting({ machine }: World): Promise<number> {
  const depths = await Promise.all(
    Object.values(machine.environment.queues).map(async (url) => {
      const { Attributes = {} } = await machine.aws.sqs.send(
        new GetQueueAttributesCommand({
          QueueUrl: url,
          AttributeNames: ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"],
        }),
      );
      return Object.values(Attributes).reduce((total, count) => total + Number(count), 0);
    }),
  );
  return depths.reduce((total, depth) => total + depth, 0);
}
