/**
 * The invariants in the weather of many seeds, each in a small world of its own; the same ones in every run,
 * for `npm run nightly -- seeds` plays a thousand others. What fails prints the command that repeats it.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { steadySeed } from "#test/support/run-seed.ts";

const script = fileURLToPath(new URL("../nightly/main.ts", import.meta.url));
const count = 50;

/** Seeds that once failed, and why. */
const regressions: Readonly<Record<number, string>> = {
  94: "a report that was sent into a silence longer than the SDK's patience was expected to be told",
  707520: "the end of a session on the way to S3 was told as an internal error",
};

async function play(...args: readonly string[]): Promise<void> {
  const child = spawn(process.execPath, [script, "seeds", ...args], { stdio: ["ignore", "pipe", "inherit"] });
  const [output, [code]] = await Promise.all([text(child.stdout), once(child, "exit")]);
  console.log(output);
  expect(code, output).toBe(0);
}

test(`${count} seeds end as on a quiet day`, () => play("--from", `${steadySeed(1)}`, "--count", `${count}`));

test("so do seeds that once did not", () => play("--seed", Object.keys(regressions).join(",")));
