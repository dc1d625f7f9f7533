/** A zone whose queue does not exist, as before its stack is deployed: the other zones go on, and it catches up by itself. */

import {
  CreateQueueCommand,
  DeleteQueueCommand,
  GetQueueAttributesCommand,
  ListQueuesCommand,
} from "@aws-sdk/client-sqs";
import { afterAll, beforeAll, expect, test } from "vitest";
import { quiet } from "#local/aws/wire/fault-options.ts";
import { beginColoredWeb, coloredFiles } from "#test/support/colored-web.ts";
import { startWorld, type World } from "#test/support/e2e-world.ts";

let world: World;
/** The functions that threw, or that gave a message back. */
const thrown: string[] = [];

beforeAll(async () => {
  const subnets = { subnets: ["subnet-0a1b2c3d4e5f60718"], securityGroups: ["sg-0a1b2c3d4e5f60718"] };
  world = await startWorld({
    faults: quiet,
    rate: 30,
    zones: JSON.stringify([{ name: "spoke", ...subnets }]),
    sandboxes: (functionName, wire) => {
      const handler = wire();
      return async (event, context) => {
        try {
          const answer = await handler(event, context);
          const { batchItemFailures = [] } = (answer ?? {}) as { readonly batchItemFailures?: readonly unknown[] };
          if (batchItemFailures.length > 0) thrown.push(functionName);
          return answer;
        } catch (error) {
          thrown.push(functionName);
          throw error;
        }
      };
    },
  });
});
afterAll(() => world.close());

test("a zone whose queue does not exist makes no function fail, and its clusters count as unreachable until it exists", async () => {
  await world.join(
    { name: "c1", labels: { ring: "canary" } },
    { name: "s1", labels: { ring: "canary" }, zone: "spoke" },
    { name: "s2", zone: "spoke" },
    { name: "c2" },
    { name: "c3" },
  );
  await beginColoredWeb(world, {
    maxConcurrent: 2,
    maxUnreachable: "50%",
    progressDeadline: "3m",
    stages: [{ name: "canary", clusters: { selector: { matchLabels: { ring: "canary" } } } }, { name: "rest" }],
  });

  await Promise.all((world.machine.zones.get("spoke") ?? []).map((source) => source.pause()));
  const { sqs } = world.machine.aws;
  const { QueueUrls = [] } = await sqs.send(new ListQueuesCommand({}));
  const mine = QueueUrls.filter((url) => /zone-spoke-apply/.test(url) && !/dead/i.test(url));
  expect(mine).toHaveLength(2);
  const before = await Promise.all(
    mine.map((QueueUrl) => sqs.send(new GetQueueAttributesCommand({ QueueUrl, AttributeNames: ["All"] }))),
  );
  for (const QueueUrl of mine) await sqs.send(new DeleteQueueCommand({ QueueUrl }));
  thrown.length = 0;
  const second = await world.push("shop", coloredFiles("blue"));
  const left = await world.waitFor("both stages pass without the zone", async () => {
    const group = await world.group("web");
    return group.status.state === "Degraded" && group.status.revision?.endsWith(second) && group;
  });
  expect(left.status.clusters).toMatchObject({ ready: 3, unreachable: 2, failed: 0 });
  for (const { state, reason } of await world.targets("web"))
    if (state !== "Succeeded") expect([state, reason]).toEqual(["Unreachable", expect.stringMatching(/^ZoneDown: /)]);
  expect(thrown).toEqual([]);

  const kept = ["VisibilityTimeout", "RedrivePolicy"] as const;
  for (const [index, url] of mine.entries())
    await sqs.send(
      new CreateQueueCommand({
        QueueName: url.split("/").at(-1) ?? "",
        Attributes: Object.fromEntries(
          kept.flatMap((name) => {
            const value = before[index]?.Attributes?.[name];
            return value === undefined ? [] : [[name, value]];
          }),
        ),
      }),
    );
  for (const source of world.machine.zones.get("spoke") ?? []) source.resume();
  await world.untilInSync("web", second);
});
