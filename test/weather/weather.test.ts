/**
 * Plays many worlds at once, at a pace that is measured once: the invariants in the weather of seeds, and runs in which
 * calls fail. Every run plays the same ones; `npm run nightly -- seeds calls` plays a thousand others, and fails every call.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { beforeAll, expect, test } from "vitest";
import { runConcurrently } from "#shared/base/run-concurrently.ts";
import { measuredRate } from "#test/support/measured-rate.ts";
import { playFailing, playReference, type ReferenceRun, someFailures } from "#test/support/nth-call.ts";
import { steadySeed } from "#test/support/run-seed.ts";

const script = fileURLToPath(new URL("../nightly/main.ts", import.meta.url));
const count = 16;

/** Seeds that once failed, each with its cause. */
const regressions: Readonly<Record<number, string>> = {
  94: "the suite expected the delivery of a report that was sent into a silence longer than the SDK's patience, and no event about an S3 that refuses every try",
  707520: "the end of a session on the way to S3 was reported as an internal error",
};

/** The number of runs in which calls fail before their effect, and of runs in which they fail after it. */
const runs = 4;
const atOnce = 4;

let reference: ReferenceRun;

beforeAll(async () => {
  const { rate, played } = await measuredRate(playReference);
  console.log(`${rate} seconds of the functions in one`);
  reference = { ...played, rate };
});

test.concurrent(`the worlds of ${count} seeds, and of seeds that once failed, end in the same state as on a quiet day`, async () => {
  const first = steadySeed(1);
  const seeds = [...Array.from({ length: count }, (_, index) => first + index), ...Object.keys(regressions)];
  // The script prints the command that repeats a failure.
  const args = [script, "seeds", "--seed", seeds.join(","), "--rate", `${reference.rate}`, "--alone"];
  const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
  const [output, [code]] = await Promise.all([text(child.stdout), once(child, "exit")]);
  console.log(output);
  expect(code, output).toBe(0);
});

/**
 * Some calls of every class to DynamoDB, SQS, S3, git and the API servers fail, before their effect or after it, in
 * sandboxes that live on. The test runs beside the seeds, which leave the machine idle for more than half of their time.
 */
test.concurrent("a run in which calls fail ends in the same state as a run in which none fails", async () => {
  const fired = new Set<string>();
  const took: number[] = [];
  await runConcurrently(someFailures(reference, steadySeed(311_589), runs), atOnce, async (failures) => {
    const startedAt = performance.now();
    for (const { className, when } of await playFailing(failures, reference)) fired.add(`${className} ${when}`);
    took.push(Math.round((performance.now() - startedAt) / 1000));
  });
  const classes = [...reference.counts.keys()];
  const missed = classes.flatMap((name) => [`${name} before`, `${name} after`]).filter((each) => !fired.has(each));
  console.log(`runs of ${took.join(", ")} s`);
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
