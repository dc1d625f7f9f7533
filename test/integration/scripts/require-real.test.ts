import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const script = fileURLToPath(new URL("../../../scripts/run.mjs", import.meta.url));
const small = ["--project", "unit", "test/unit/shared/base/json.test.ts"];

function npmTest(...args: readonly string[]): Promise<{ readonly code: number; readonly output: string }> {
  // The run that contains this test may itself require real checks.
  const env = { ...process.env, STARLING_REQUIRE_REAL: "" };
  return new Promise((resolve) => {
    execFile(process.execPath, [script, "test", ...args], { env }, (error, stdout, stderr) => {
      resolve({ code: Number(error?.code ?? 0), output: stdout + stderr });
    });
  });
}

/** The test program starts and runs twice, on a busy machine. */
const timeout = 240_000;

test("a run without a check on a real server passes, and with --require-real it fails and says why", {
  timeout,
}, async () => {
  const plain = await npmTest(...small);
  expect(plain.code, plain.output).toBe(0);
  expect(plain.output).not.toContain("cluster checks:");

  const required = await npmTest(...small, "--require-real");
  expect(required.code, required.output).toBe(1);
  expect(required.output).toMatch(/cluster checks: 0 embedded, 0 (real: neither|on kube-apiserver)/);
  expect(required.output).toContain("checks on a real kube-apiserver were required");
});
