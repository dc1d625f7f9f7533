/**
 * The n-th call: of every class of calls to DynamoDB, SQS, S3, git and the API servers, some fail, before their effect and
 * after it, in sandboxes that live on. Each run ends as the one in which none failed. `npm run nightly -- calls` fails
 * every call.
 */
import { expect, test } from "vitest";
import { runConcurrently } from "#shared/base/run-concurrently.ts";
import { measuredRate } from "#test/support/measured-rate.ts";
import { playFailing, playReference, someFailures } from "#test/support/nth-call.ts";
import { steadySeed } from "#test/support/run-seed.ts";

/** Before the effect, and as many after it. */
const runs = 4;
const atOnce = 4;

test("a run in which calls fail ends as the one in which none does", async () => {
  const { rate, played } = await measuredRate(playReference);
  const reference = { ...played, rate };
  const fired = new Set<string>();
  const took: number[] = [];
  await runConcurrently(someFailures(reference, steadySeed(311_589), runs), atOnce, async (failures) => {
    const startedAt = performance.now();
    for (const { className, when } of await playFailing(failures, reference)) fired.add(`${className} ${when}`);
    took.push(Math.round((performance.now() - startedAt) / 1000));
  });
  console.log(`${rate} seconds of the functions in one; runs of ${took.join(", ")} s`);
  const classes = [...reference.counts.keys()];
  const missed = classes.flatMap((name) => [`${name} before`, `${name} after`]).filter((each) => !fired.has(each));
  console.log(
    `${fired.size} of ${2 * classes.length} classes and phases failed; missed: ${missed.join(", ") || "none"}`,
  );
  for (const service of ["dynamodb:", "sqs:", "s3:", "git ", "kube "]) {
    for (const when of ["before", "after"]) {
      expect(
        [...fired].some((each) => each.startsWith(service) && each.endsWith(when)),
        `${service} ${when}`,
      ).toBe(true);
    }
  }
  expect(missed.length).toBeLessThan(classes.length / 4);
});
