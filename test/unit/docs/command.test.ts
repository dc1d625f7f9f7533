import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { readContexts } from "#cli/session/contexts.ts";

const page = readFileSync(new URL("../../../docs/command.md", import.meta.url), "utf8");
const example = JSON.parse(/```json\n(.*?)```/s.exec(page)?.[1] ?? "") as { contexts: { prod: object } };
const members = [...page.matchAll(/^\| `contexts\.NAME\.(\w+)`/gm)].map(([, member = ""]) => member);

let folder: string;
let path: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "starling-docs-"));
  path = join(folder, "config.json");
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

function reads(file: object): unknown {
  writeFileSync(path, JSON.stringify(file));
  return readContexts({ env: { STARLING_CONFIG: path } });
}

describe("docs/command.md", () => {
  test("shows a context file that the command reads", () => {
    expect(reads(example)).toEqual(example);
  });

  test("has every member in its table, and no other", () => {
    const values: Readonly<Record<string, unknown>> = {
      endpoint: "https://example.com",
      credentials: { profile: "p" },
      sts: "http://127.0.0.1:1",
    };
    const context = Object.fromEntries(members.map((member) => [member, values[member] ?? "text"]));
    expect(reads({ contexts: { all: context } })).toEqual({ contexts: { all: context } });
    expect(members.toSorted()).toEqual(
      ["caData", "credentials", "endpoint", "namespace", "region", "role", "stack", "sts"].toSorted(),
    );
  });
});
