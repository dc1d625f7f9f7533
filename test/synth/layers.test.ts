/**
 * The import rules of docs/architecture.md. A file that breaks the rule proves each of them: a small tree of the same folders is
 * checked with the repository's own configuration.
 */
import { spawnSync } from "node:child_process";
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";

/** file | what it imports | rules that it breaks */
const imports: readonly (readonly [file: string, imported: string, ...broken: readonly string[]])[] = [
  ["shared/base/a.ts", "#shared/base/x.ts"],
  ["shared/base/a.ts", "zod"],
  ["shared/base/a.ts", "node:crypto"],
  ["shared/base/a.ts", "node:fs", "base-packages"],
  ["shared/base/a.ts", "#shared/kube/x.ts", "base-imports"],
  ["shared/base/a.ts", "#shared/ports.ts", "base-imports"],
  ["shared/kube/a.ts", "#shared/base/x.ts"],
  ["shared/kube/engine/a.ts", "#shared/kube/x.ts"],
  ["shared/kube/a.ts", "node:net", "kube-packages"],
  ["shared/kube/engine/a.ts", "@aws-sdk/client-s3", "kube-packages"],
  ["shared/kube/engine/a.ts", "#shared/ports.ts", "kube-imports"],
  ["shared/kube/engine/a.ts", "#shared/adapters/x.ts", "kube-imports"],
  ["shared/kube/a.ts", "#shared/fleet/x.ts", "kube-imports"],
  ["shared/source/a.ts", "#shared/kube/x.ts"],
  ["shared/source/a.ts", "semver"],
  ["shared/source/a.ts", "js-yaml"],
  ["shared/source/a.ts", "#shared/fleet/x.ts", "source-imports"],
  ["shared/source/a.ts", "node:fs", "source-packages"],
  ["shared/fleet/rows/a.ts", "#shared/source/x.ts"],
  ["shared/fleet/rows/a.ts", "#shared/kube/x.ts"],
  ["shared/fleet/rows/a.ts", "#shared/adapters/x.ts", "fleet-imports"],
  ["shared/fleet/rows/a.ts", "#functions/api/x.ts", "fleet-imports"],
  ["shared/fleet/a.ts", "@aws-sdk/client-sqs", "fleet-packages"],
  ["shared/words/a.ts", "#shared/fleet/x.ts"],
  ["shared/words/a.ts", "#cli/x.ts", "words-imports"],
  ["shared/words/a.ts", "node:fs", "words-packages"],
  ["shared/pages/a.ts", "#shared/words/x.ts"],
  ["shared/pages/a.ts", "hono/html"],
  ["shared/pages/a.ts", "#shared/ports.ts", "pages-imports"],
  ["shared/pages/a.ts", "#functions/api/x.ts", "pages-imports"],
  ["shared/pages/a.ts", "@aws-sdk/client-s3", "pages-packages"],
  ["shared/messages.ts", "#shared/fleet/x.ts"],
  ["shared/messages.ts", "zod"],
  ["shared/ports.ts", "#shared/adapters/x.ts", "ports-imports"],
  ["shared/ports.ts", "@aws-sdk/client-sqs", "ports-packages"],
  ["shared/adapters/a.ts", "#shared/ports.ts"],
  ["shared/adapters/a.ts", "@aws-sdk/client-s3"],
  ["shared/adapters/deep/a.ts", "#local/x.ts", "adapters-imports"],
  ["shared/adapters/deep/a.ts", "#shared/lambda/x.ts", "adapters-imports"],
  ["shared/lambda/a.ts", "#functions/api/x.ts", "lambda-imports"],
  ["shared/lambda/a.ts", "#test/x.ts", "lambda-imports"],
  ["shared/lambda/a.ts", "./x.ts", "no-relative-paths"],
  ["functions/api/a.ts", "#shared/adapters/x.ts"],
  ["functions/api/a.ts", "#functions/api/x.ts"],
  ["functions/api/a.ts", "../apply/x.ts", "function-api-imports", "no-relative-paths"],
  ["functions/api/a.ts", "#functions/apply/x.ts", "function-api-imports"],
  ["functions/webhook/a.ts", "#functions/api/x.ts", "function-webhook-imports"],
  ["functions/tick/a.ts", "#functions/api/x.ts", "function-tick-imports"],
  ["functions/resolve/a.ts", "#functions/api/x.ts", "function-resolve-imports"],
  ["functions/build/a.ts", "#functions/api/x.ts", "function-build-imports"],
  ["functions/render/a.ts", "#functions/api/x.ts", "function-render-imports"],
  ["functions/rollout/a.ts", "#functions/apply/x.ts", "function-rollout-imports"],
  ["functions/api/write/a.ts", "#functions/api/http/x.ts", "api-parts"],
  ["functions/api/read/a.ts", "#functions/api/write/x.ts", "api-readers"],
  ["functions/rollout/steps/a.ts", "#functions/rollout/steps/x.ts", "planner-steps"],
  ["functions/rollout/steps/a/b.ts", "#functions/rollout/steps/a/x.ts"],
  ["functions/rollout/steps/a/b.ts", "#functions/rollout/call/x.ts", "planner-steps"],
  ["functions/rollout/write/a.ts", "#functions/rollout/steps/x.ts", "planner-writers"],
  ["functions/rollout/read/a.ts", "#functions/rollout/write/x.ts", "planner-readers"],
  ["functions/apply/verbs/a.ts", "#functions/api/x.ts", "function-apply-imports"],
  ["functions/report/a.ts", "#cli/x.ts", "function-report-imports"],
  ["functions/dashboard/a.ts", "#functions/api/http/read-with.ts"],
  ["functions/dashboard/a.ts", "#functions/api/x.ts", "function-dashboard-imports"],
  ["functions/new/a.ts", "#shared/base/x.ts", "function-unknown"],
  ["functions/api/env.ts", "zod"],
  ["functions/api/env.ts", "#shared/base/x.ts", "function-env-imports"],
  ["functions/tick/env.ts", "node:fs", "function-env-packages"],
  ["infra/a.ts", "#functions/apply/env.ts"],
  ["infra/a.ts", "#shared/fleet/x.ts"],
  ["infra/a.ts", "#functions/api/x.ts", "infra-imports"],
  ["infra/a.ts", "#shared/ports.ts", "infra-imports"],
  ["cli/a.ts", "#shared/adapters/x.ts"],
  ["cli/a.ts", "#functions/api/x.ts", "cli-imports"],
  ["cli/commands/a.ts", "#local/x.ts", "cli-local"],
  ["cli/commands/local.ts", "#local/x.ts"],
  ["cli/commands/local-up.ts", "#local/x.ts"],
  ["cli/commands/local-up.ts", "#infra/x.ts", "cli-imports"],
  ["local/a.ts", "#functions/api/x.ts"],
  ["local/a.ts", "#infra/x.ts"],
  ["local/deep/a.ts", "#cli/x.ts", "local-imports"],
  ["local/deep/a.ts", "#test/x.ts", "local-imports"],
  ["local/a.ts", "@starling/embedded-apiserver"],
  ["local/a.ts", "#local/apiserver/kinds/x.ts", "apiserver-exports"],
  ["local/a.ts", "#local/apiserver/test/x.ts", "apiserver-exports", "apiserver-testing"],
  ["test/unit/a.ts", "#local/apiserver/x.ts", "apiserver-exports"],
  ["local/apiserver/a.ts", "js-yaml"],
  ["local/apiserver/a.ts", "#local/base/x.ts", "apiserver-imports"],
  ["local/apiserver/kinds/a.ts", "#shared/base/x.ts", "apiserver-imports"],
  ["local/apiserver/test/a.ts", "#test/x.ts", "apiserver-imports", "local-imports"],
  ["local/apiserver/kinds/a.ts", "#local/apiserver/test/x.ts", "apiserver-testing"],
  ["test/unit/a.ts", "@starling/embedded-apiserver/testing"],
  ["test/unit/a.ts", "#local/x.ts"],
  ["test/unit/a.ts", "#nowhere/x.ts", "no-unresolvable"],
  ["test/unit/a.ts", "left-pad", "no-unresolvable"],
];

/** file | whether it may read the environment of its process */
const environments: readonly (readonly [file: string, may: boolean])[] = [
  ["functions/api/handler.ts", false],
  ["functions/api/env.ts", false],
  ["shared/adapters/a.ts", false],
  ["shared/lambda/a.ts", false],
  ["shared/base/a.ts", false],
  ["shared/kube/engine/a.ts", false],
  ["infra/a.ts", false],
  ["local/aws/deep/a.ts", false],
  ["local/machine/a.ts", true],
  ["infra/bin/a.ts", true],
  ["cli/a.ts", true],
  ["scripts/a.mjs", true],
  ["test/unit/a.ts", true],
];

const folder = mkdtempSync(join(tmpdir(), "starling-layers-"));
const folders = ["shared", "functions", "infra", "cli", "local", "scripts", "test"];
const inNobodysWay = imports.map(([file]) => file.replace(/\/a\.ts$/, "/x.ts"));

interface Cruise {
  readonly summary: {
    readonly violations: readonly { readonly from: string; readonly rule: { readonly name: string } }[];
  };
}

/** The broken rules of a tree with these files, by file. */
function rulesBroken(tree: string, files: ReadonlyMap<string, string>): Map<string, readonly string[]> {
  const all = [
    ...imports.flatMap(([, imported]) => (imported.startsWith("#") ? [imported.slice(1)] : [])),
    ...inNobodysWay,
  ];
  for (const file of all) if (!file.startsWith("nowhere")) write(join(tree, file), "export {};\n");
  for (const each of folders) mkdirSync(join(tree, each), { recursive: true });
  for (const [file, text] of files) write(join(tree, file), text);
  copyFileSync("package.json", join(tree, "package.json"));
  copyFileSync(".dependency-cruiser.mjs", join(tree, ".dependency-cruiser.mjs"));
  symlinkSync(resolve("node_modules"), join(tree, "node_modules"));
  const { stdout } = spawnSync(resolve("node_modules/.bin/depcruise"), ["--output-type", "json", ...folders], {
    cwd: tree,
    encoding: "utf8",
    maxBuffer: 1e8,
  });
  const { summary } = JSON.parse(stdout) as Cruise;
  const byFile = Map.groupBy(summary.violations, ({ from }) => from);
  return new Map([...byFile].map(([file, found]) => [file, [...new Set(found.map(({ rule }) => rule.name))].sort()]));
}

/** A tree can have one case of each file, so the n-th tree has the n-th case of each file. */
const broken = new Map<number, readonly string[]>();

beforeAll(() => {
  const seen = new Map<string, number>();
  const rounds: Map<string, string>[] = [];
  const places = imports.map(([file, imported]) => {
    const round = seen.get(file) ?? 0;
    seen.set(file, round + 1);
    rounds[round] ??= new Map();
    rounds[round].set(file, `import ${JSON.stringify(imported)};\n`);
    return { file, round };
  });
  const found = rounds.map((files, round) => rulesBroken(join(folder, String(round)), files));
  for (const [index, { file, round }] of places.entries()) broken.set(index, found[round]?.get(file) ?? []);
});

afterAll(() => rmSync(folder, { recursive: true, force: true }));

test.each(imports.map(([file, imported, ...rules], index) => ({ file, imported, rules, index })))(
  "$file: $imported -> $rules",
  ({ rules, index }) => expect(broken.get(index)).toEqual([...rules].sort()),
);

test("a circle of imports is an error, even if it imports only types", () => {
  const circle = new Map([
    ["shared/base/a.ts", 'import type { B } from "#shared/base/b.ts";\nexport type A = { readonly b: B };\n'],
    ["shared/base/b.ts", 'import type { A } from "#shared/base/a.ts";\nexport type B = { readonly a: A };\n'],
  ]);
  expect(rulesBroken(join(folder, "circle"), circle).get("shared/base/a.ts")).toEqual(["no-circles"]);
});

test("a circle of folders is an error, even if no file is in a circle", () => {
  const circle = new Map([
    ["functions/apply/verbs/a.ts", 'import "#functions/apply/steps/a.ts";\n'],
    ["functions/apply/steps/b.ts", 'import "#functions/apply/verbs/b.ts";\n'],
    ["functions/apply/steps/a.ts", "export {};\n"],
    ["functions/apply/verbs/b.ts", "export {};\n"],
  ]);
  expect(rulesBroken(join(folder, "folders"), circle).get("functions/apply/verbs")).toEqual(["no-folder-circles"]);
});

test("only files at the edges may read the environment of their process", () => {
  const tree = join(folder, "environment");
  for (const [file] of environments) write(join(tree, file), "export const a = process.env.A;\n");
  copyFileSync("biome.json", join(tree, "biome.json"));
  const { stdout } = spawnSync(
    resolve("node_modules/.bin/biome"),
    ["lint", "--reporter=json", "--vcs-enabled=false", "--max-diagnostics=100", "."],
    { cwd: tree, encoding: "utf8" },
  );
  const { diagnostics } = JSON.parse(stdout) as {
    diagnostics: readonly { readonly category: string; readonly location: { readonly path: string } }[];
  };
  const refused = diagnostics.filter(({ category }) => category === "lint/style/noProcessEnv");
  const expected = environments.filter(([, may]) => !may).map(([file]) => file);
  expect(refused.map(({ location }) => location.path).sort()).toEqual([...expected].sort());
});

function write(path: string, text: string): void {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
}
