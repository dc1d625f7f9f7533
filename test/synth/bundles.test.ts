/** The code that is deployed, as esbuild makes it: every bundle loads under Node 24 and is a function. */
import { spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
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

const resolve = functions.find(({ id }) => /Resolve/.test(id)) ?? never("the template has no function Resolve");

function never(message: string): never {
  throw new Error(message);
}

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

describe("openpgp, whose licence is the LGPL", () => {
  const asset = dirname(resolve.file);
  const text = readFileSync(resolve.file, "utf8");

  test("no bundle contains it, and only that of Resolve names it", () => {
    // A sentence and a name that minifying would keep.
    const marks = ["Signature was not issued by the given public key", "openpgpjs.org"];
    const library = readFileSync("node_modules/openpgp/dist/node/openpgp.mjs", "utf8");
    for (const mark of marks) expect(library).toContain(mark);
    for (const { file } of functions) {
      for (const mark of marks) expect(readFileSync(file, "utf8").includes(mark)).toBe(false);
    }
    const naming = functions.filter(({ file }) => readFileSync(file, "utf8").includes('"openpgp"'));
    expect(naming.map(({ id }) => id)).toEqual([resolve.id]);
    expect([...text.matchAll(/import\(?\s*"openpgp"/g)].map(([found]) => found)).toEqual(['import("openpgp"']);
  });

  test("it lies beside the bundle unchanged, with its licence", () => {
    for (const file of ["package.json", "LICENSE", "dist/node/openpgp.mjs"]) {
      const path = join("node_modules/openpgp", file);
      expect(readFileSync(join(asset, path)).equals(readFileSync(path))).toBe(true);
    }
    for (const { file, id } of functions) {
      expect(existsSync(join(dirname(file), "node_modules"))).toBe(id === resolve.id);
    }
  });

  test("the bundle of Resolve loads it from beside itself alone, at the first OpenPGP signature and not before", () => {
    const folder = mkdtempSync(join(tmpdir(), "starling-pgp-"));
    cpSync(asset, folder, { recursive: true });
    const [call] = /await (import\("openpgp"\))/.exec(text)?.slice(1) ?? [];
    const copy = join(folder, "with-pgp.mjs");
    const library = join(folder, "node_modules/openpgp/dist/node/openpgp.mjs");
    writeFileSync(library, `${readFileSync(library, "utf8")}\nconsole.log("loaded");\n`);
    writeFileSync(copy, `${text}\nconsole.log("started");\nconsole.log(typeof (await ${call}).readSignature);\n`);
    const env = Object.fromEntries(resolve.variables.map((name) => [name, fittingValue(name)]));
    const run = () =>
      spawnSync(process.execPath, [copy], {
        cwd: folder,
        encoding: "utf8",
        env: { AWS_REGION: "eu-west-1", ...env, NODE_OPTIONS: "" },
      });
    expect(run()).toMatchObject({ status: 0, stdout: "started\nloaded\nfunction\n", stderr: "" });
    rmSync(join(folder, "node_modules"), { recursive: true });
    expect(run()).toMatchObject({ status: 1, stdout: "started\n", stderr: expect.stringContaining("openpgp") });
    rmSync(folder, { recursive: true });
  });
});

test("the bundle of Resolve loads what it imports at the first use of SSH, as a file and not as a script", () => {
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

test("the bundle of Resolve loads what reads cosign's bundles at their first use", () => {
  const { file, variables } = resolve;
  const text = readFileSync(file, "utf8");
  const imported = text.match(/Promise\.resolve\(\)\.then\(\(\) => __toESM\(require_dist\d*\(\)(, 1)?\)\)/g) ?? [];
  const copy = join(dirname(file), "with-sigstore.mjs");
  const names = "bundleFromJSON, Verifier, toTrustMaterial, TrustedRoot";
  writeFileSync(
    copy,
    `${text}
const { ${names} } = Object.assign({}, ...(await Promise.all([${[...new Set(imported)].join(", ")}])));
console.log([${names}].map((each) => typeof each).join());
`,
  );
  const env = Object.fromEntries(variables.map((name) => [name, fittingValue(name)]));
  const ran = spawnSync(process.execPath, [copy], {
    encoding: "utf8",
    env: { AWS_REGION: "eu-west-1", ...env, NODE_OPTIONS: "" },
  });
  rmSync(copy);
  expect(ran).toMatchObject({ status: 0, stdout: "function,function,function,object\n", stderr: "" });
});
