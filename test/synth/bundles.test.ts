/** The code that is deployed, as esbuild makes it: every bundle loads under Node 24 and is a function. */
import { spawnSync } from "node:child_process";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { ofType, synthesizeCode } from "#test/synth/synthesized.ts";

const { assembly, resources, remove } = synthesizeCode();
afterAll(remove);

const functions = ofType(resources, "AWS::Lambda::Function").map(({ id, Properties }) => ({
  id,
  variables: Object.keys((Properties.Environment as { Variables: object }).Variables),
  file: join(assembly, `asset.${(Properties.Code as { S3Key: string }).S3Key.replace(/\.zip$/, "")}`, "index.mjs"),
}));

/** Loads a bundle as Lambda does, in a process that has only the environment of the template. */
function load(file: string, variables: readonly string[]) {
  const script = `const { handler } = await import(${JSON.stringify(file)}); console.log(typeof handler);`;
  const set = variables.map((name) => [name, fittingValue(name)]);
  return spawnSync(process.execPath, ["--input-type=module", "-e", script], {
    encoding: "utf8",
    env: { AWS_REGION: "eu-west-1", ...Object.fromEntries(set), NODE_OPTIONS: "" },
  });
}

/** A value of the type that the variable's name suggests. */
function fittingValue(name: string): string {
  if (name.includes("QUEUE")) return "https://sqs.eu-west-1.amazonaws.com/1/q";
  if (name === "STARLING_LOG_GROUPS") return "api=group";
  if (name === "STARLING_GUARD") return "none";
  return /_CLUSTERS|_CONCURRENCY/.test(name) ? "10" : "x";
}

describe.each(functions)("$id", ({ file, variables }) => {
  test("the bundle loads with the variables of its template and exports a function", () => {
    expect(load(file, variables)).toMatchObject({ status: 0, stdout: "function\n", stderr: "" });
  });

  test("the bundle names every variable that is missing", () => {
    const { status, stderr } = load(file, []);
    const desired = variables.filter((name) => name.startsWith("STARLING_"));
    expect(status).toBe(desired.length === 0 ? 0 : 1);
    for (const variable of desired) expect(stderr).toContain(`${variable}:`);
  });
});

test("the bundle of Resolve loads what it imports at the first use of SSH, as a file and not as a script", () => {
  const resolve = functions.find(({ id }) => /Resolve/.test(id));
  if (resolve === undefined) throw new Error("the template has no function Resolve");
  const { file, variables } = resolve;
  const text = readFileSync(file, "utf8");
  const [imported] = /Promise\.resolve\(\)\.then\(\(\) => __toESM\(require_lib\d*\(\)(, 1)?\)\)/.exec(text) ?? [];
  const copy = join(dirname(file), "with-ssh.mjs");
  writeFileSync(copy, `${text}\nconsole.log(typeof (await ${imported}).default.Client);\n`);
  const env = Object.fromEntries(variables.map((name) => [name, fittingValue(name)]));
  const ran = spawnSync(process.execPath, [copy], {
    encoding: "utf8",
    env: { AWS_REGION: "eu-west-1", ...env, NODE_OPTIONS: "" },
  });
  rmSync(copy);
  expect(ran).toMatchObject({ status: 0, stdout: "function\n", stderr: "" });
});
