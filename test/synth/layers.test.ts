/**
 * The import rules of docs/architecture.md, each proved by a file that breaks it: lints the line in a copy of the
 * repository's folders and expects the linter's error. A rule that nothing can break is no rule.
 */
import { spawnSync } from "node:child_process";
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";

interface Diagnostic {
  readonly category: string;
  readonly severity: string;
  readonly location: { readonly path: { readonly file?: string } | string };
}

const restricted = "lint/style/noRestrictedImports";
const processEnv = "lint/style/noProcessEnv";

/** file | the line in it | the rule it breaks, or nothing */
const cases: readonly (readonly [file: string, line: string, rule: string | undefined])[] = [
  ["shared/domain/a.ts", 'import "#shared/domain/b.ts";', undefined],
  ["shared/domain/a.ts", 'import "zod";', undefined],
  ["shared/domain/a.ts", 'import "semver";', undefined],
  ["shared/domain/a.ts", 'import "js-yaml";', undefined],
  ["shared/domain/a.ts", 'import "node:crypto";', undefined],
  ["shared/domain/a.ts", 'import "node:fs";', restricted],
  ["shared/domain/a.ts", 'import "@aws-sdk/client-s3";', restricted],
  ["shared/domain/a.ts", 'import "#shared/ports.ts";', restricted],
  ["shared/domain/a.ts", 'import type { Table } from "#shared/ports.ts";', restricted],
  ["shared/domain/a.ts", 'export { b } from "#shared/adapters/b.ts";', restricted],
  ["shared/domain/a.ts", 'await import("#shared/adapters/b.ts");', restricted],
  ["shared/domain/a.ts", 'import "../ports.ts";', restricted],
  ["shared/domain/deep/a.ts", 'import "#functions/api/b.ts";', restricted],

  ["shared/ports.ts", 'import "#shared/domain/b.ts";', undefined],
  ["shared/ports.ts", 'import "#shared/messages.ts";', undefined],
  ["shared/ports.ts", 'import "#shared/adapters/b.ts";', restricted],
  ["shared/messages.ts", 'import "zod";', undefined],
  ["shared/messages.ts", 'import "@aws-sdk/client-sqs";', restricted],
  ["shared/errors.ts", 'import "node:fs";', restricted],

  ["shared/adapters/a.ts", 'import "#shared/ports.ts";', undefined],
  ["shared/adapters/a.ts", 'import "@aws-sdk/client-s3";', undefined],
  ["shared/adapters/a.ts", 'import "#functions/api/b.ts";', restricted],
  ["shared/adapters/deep/a.ts", 'import "#local/b.ts";', restricted],
  ["shared/lambda/a.ts", 'import "#cli/b.ts";', restricted],
  ["shared/lambda/a.ts", 'import "#infra/b.ts";', restricted],
  ["shared/lambda/a.ts", 'import "#test/b.ts";', restricted],
  ["shared/lambda/a.ts", 'import "./b.ts";', restricted],

  ["functions/api/a.ts", 'import "#functions/api/b.ts";', undefined],
  ["functions/api/a.ts", 'import "#shared/adapters/b.ts";', undefined],
  ["functions/api/a.ts", 'import "#functions/apply/b.ts";', restricted],
  ["functions/webhook/a.ts", 'import "#functions/api/b.ts";', restricted],
  ["functions/tick/a.ts", 'import "#functions/api/b.ts";', restricted],
  ["functions/resolve/a.ts", 'import "#functions/render/b.ts";', restricted],
  ["functions/render/a.ts", 'import "#functions/resolve/b.ts";', restricted],
  ["functions/build/a.ts", 'import "#functions/render/b.ts";', restricted],
  ["functions/rollout/a.ts", 'import "#functions/apply/b.ts";', restricted],
  ["functions/apply/engine/a.ts", 'import "#functions/apply/b.ts";', undefined],
  ["functions/apply/engine/a.ts", 'import "#functions/rollout/b.ts";', restricted],
  ["functions/report/a.ts", 'import "#functions/apply/b.ts";', restricted],
  ["functions/new/a.ts", 'import "#functions/api/b.ts";', restricted],
  ["functions/api/a.ts", 'import "../apply/b.ts";', restricted],
  ["functions/api/a.ts", 'import "#local/b.ts";', restricted],
  ["functions/api/a.ts", 'import "#cli/b.ts";', restricted],
  ["functions/api/a.ts", 'import "#infra/b.ts";', restricted],
  ["functions/api/a.ts", 'import "#test/b.ts";', restricted],
  ["functions/api/env.ts", 'import "zod";', undefined],
  ["functions/api/env.ts", 'import "#shared/adapters/b.ts";', restricted],

  ["infra/a.ts", 'import "#functions/api/env.ts";', undefined],
  ["infra/a.ts", 'import "#shared/domain/b.ts";', undefined],
  ["infra/a.ts", 'import "aws-cdk-lib";', undefined],
  ["infra/a.ts", 'import "#functions/api/wire.ts";', restricted],
  ["infra/constructs/a.ts", 'import "#shared/ports.ts";', restricted],
  ["infra/a.ts", 'import "#local/b.ts";', restricted],
  ["infra/a.ts", 'import "#test/b.ts";', restricted],

  ["cli/a.ts", 'import "#shared/adapters/b.ts";', undefined],
  ["cli/a.ts", 'import "#functions/api/b.ts";', restricted],
  ["cli/a.ts", 'import "#infra/b.ts";', restricted],
  ["cli/a.ts", 'import "#local/b.ts";', restricted],
  ["cli/commands/a.ts", 'import "#local/b.ts";', restricted],
  ["cli/commands/a.ts", 'import "#test/b.ts";', restricted],
  ["cli/commands/local.ts", 'import "#local/b.ts";', undefined],
  ["cli/commands/local-up.ts", 'import "#local/b.ts";', undefined],
  ["cli/commands/local.ts", 'import "#functions/api/b.ts";', restricted],
  ["cli/commands/local-up.ts", 'import "#functions/api/b.ts";', restricted],

  ["local/a.ts", 'import "#functions/api/wire.ts";', undefined],
  ["local/a.ts", 'import "#cli/b.ts";', restricted],
  ["local/deep/a.ts", 'import "#cli/b.ts";', restricted],
  ["local/a.ts", 'import "#test/b.ts";', restricted],

  ["test/unit/a.ts", 'import "#cli/b.ts"; import "#local/b.ts"; import "#infra/b.ts";', undefined],

  ["functions/api/handler.ts", "export const a = process.env.A;", processEnv],
  ["functions/api/env.ts", "export const a = process.env.A;", processEnv],
  ["shared/adapters/a.ts", "export const a = process.env.A;", processEnv],
  ["shared/lambda/a.ts", "export const a = process.env.A;", processEnv],
  ["shared/domain/a.ts", "export const a = process.env.A;", processEnv],
  ["infra/a.ts", "export const a = process.env.A;", processEnv],
  ["local/deep/a.ts", "export const a = process.env.A;", processEnv],
  ["local/a.ts", "export const a = process.env.A;", undefined],
  ["infra/bin/a.ts", "export const a = process.env.A;", undefined],
  ["cli/a.ts", "export const a = process.env.A;", undefined],
  ["scripts/a.mjs", "export const a = process.env.A;", undefined],
  ["test/unit/a.ts", "export const a = process.env.A;", undefined],
];

let folder = "";
/** Rules that were broken, by case: each case is linted in a folder tree of its own. */
const broken = new Map<number, readonly string[]>();

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "starling-layers-"));
  for (const [index, [file, line]] of cases.entries()) write(join(folder, String(index), file), `${line}\n`);
  write(
    join(folder, "cycle", "shared/domain/a.ts"),
    'import { b } from "#shared/domain/b.ts";\nexport const a = () => b;\n',
  );
  write(
    join(folder, "cycle", "shared/domain/b.ts"),
    'import { a } from "#shared/domain/a.ts";\nexport const b = () => a;\n',
  );
  for (const [index] of cases.entries()) broken.set(index, lint(join(folder, String(index))));
});

afterAll(() => rmSync(folder, { recursive: true, force: true }));

test.each(cases.map(([file, line, rule], index) => ({ file, line, rule, index })))(
  "$file: $line -> $rule",
  ({ rule, index }) => {
    const found = (broken.get(index) ?? []).filter((category) => category === restricted || category === processEnv);
    expect([...new Set(found)]).toEqual(rule === undefined ? [] : [rule]);
  },
);

test("a circle of imports is an error", () => {
  expect(lint(join(folder, "cycle"))).toContain("lint/suspicious/noImportCycles");
});

/** Errors of one tree under the repository's own configuration. */
function lint(tree: string): readonly string[] {
  copyFileSync("biome.json", join(tree, "biome.json"));
  copyFileSync("package.json", join(tree, "package.json"));
  const { stdout, stderr } = spawnSync(
    resolve("node_modules/.bin/biome"),
    ["lint", "--reporter=json", "--vcs-enabled=false", "--max-diagnostics=100", "."],
    { cwd: tree, encoding: "utf8" },
  );
  if (!stdout.startsWith("{")) throw new Error(`biome said: ${stdout}${stderr}`);
  const { diagnostics } = JSON.parse(stdout) as { diagnostics: readonly Diagnostic[] };
  return diagnostics.filter(({ severity }) => severity === "error").map(({ category }) => category);
}

function write(path: string, text: string): void {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
}
