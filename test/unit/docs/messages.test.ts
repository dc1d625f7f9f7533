import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const root = fileURLToPath(new URL("../../..", import.meta.url));

test("docs/messages.md is what `node scripts/messages.mjs` makes of the messages in the sources", () => {
  const page = execFileSync(process.execPath, ["scripts/messages.mjs", "--print"], { cwd: root, encoding: "utf8" });
  expect(page.split("\n")).toEqual(readFileSync(`${root}/docs/messages.md`, "utf8").split("\n"));
}, 240_000);
