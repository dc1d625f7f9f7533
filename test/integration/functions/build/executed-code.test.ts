/**
 * A repository manages to execute code where it is rendered: a program that replaces kubectl records everything that it can
 * read. Its parent process is as on Lambda, with the session of its role in the environment.
 */
import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type BuildWorld, renderCredentials, startBuildWorld } from "#test/support/build-world.ts";
import { mayDo, statementsOf } from "#test/support/policy-guard.ts";
import { synthesizeTemplates } from "#test/synth/synthesized.ts";

const { resources } = await synthesizeTemplates();
/** The session of the role of `build`, as Lambda puts it into every process that runs a function. */
const session = {
  AWS_ACCESS_KEY_ID: "ASIABUILD",
  AWS_SECRET_ACCESS_KEY: "secret of build",
  AWS_SESSION_TOKEN: "token of build",
};

let world: BuildWorld;
let folder: string;
let sandboxes = 0;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "starling-taken-"));
  const kubectl = join(folder, "kubectl");
  await writeFile(
    kubectl,
    [
      "#!/bin/sh",
      `/usr/bin/env > ${folder}/env-$$`,
      `/bin/cat /proc/$PPID/environ /proc/$PPID/cmdline > ${folder}/parent-$$`,
      // TMPDIR of the parent is the /tmp of its sandbox.
      "own=$(/usr/bin/tr '\\0' '\\n' < /proc/$PPID/environ | /bin/sed -n 's/^TMPDIR=//p')",
      `/usr/bin/find "$own" -type f -exec /bin/cat {} + > ${folder}/files-$$`,
      `echo $$ >> ${folder}/runs`,
      `echo '{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}}'`,
    ].join("\n"),
    { mode: 0o755 },
  );
  world = await startBuildWorld();
  world.beFunction(() => {
    const tmp = join(folder, `tmp-${sandboxes++}`);
    return async (job: never) => {
      await mkdir(tmp, { recursive: true });
      const module = fileURLToPath(new URL("../../../support/build-process.ts", import.meta.url));
      const child = spawn(process.execPath, [module, kubectl], {
        env: { ...session, TMPDIR: tmp, LAMBDA_TASK_ROOT: "/var/task" },
        stdio: ["pipe", "pipe", "inherit"],
      });
      child.stdin.end(JSON.stringify(job));
      return JSON.parse(await text(child.stdout));
    };
  }, 60);
});

afterAll(async () => {
  await world.stop();
  await rm(folder, { recursive: true, force: true });
});

const repository = (secret: string) => ({
  "kustomization.yaml": "resources: [a.yaml]",
  "a.yaml": `apiVersion: v1\nkind: Secret\nmetadata: {name: a}\nstringData: {password: ${secret}}\n`,
  "unused.yaml": "not: named by the kustomization",
});

test("a program that a repository executes finds one key, which permits nothing, and no file of another artifact", async () => {
  for (const secret of ["first-secret", "second-secret", "first-secret"]) {
    const artifactDigest = await world.artifact(repository(secret));
    await world.builder.build({ artifactDigest, path: ".", attempt: randomUUID() });
  }
  const runs = (await readFile(join(folder, "runs"), "utf8")).trim().split("\n");
  expect(runs).toHaveLength(3);
  expect(sandboxes).toBe(2);
  const found = await Promise.all(
    runs.map(async (pid) => ({
      env: await readFile(join(folder, `env-${pid}`), "utf8"),
      parent: await readFile(join(folder, `parent-${pid}`), "utf8"),
      files: await readFile(join(folder, `files-${pid}`), "utf8"),
    })),
  );
  const names = (env: string) =>
    env
      .trim()
      .split("\n")
      .map((line) => line.split("=")[0]);
  for (const [run, { env, parent, files }] of found.entries()) {
    expect(names(env).filter((name) => name?.startsWith("AWS"))).toEqual([]);
    expect(env).not.toContain("secret of");
    // The role's session is in the environment of the parent process, as on Lambda. Therefore the role permits
    // nothing.
    expect([...parent.matchAll(/AWS_ACCESS_KEY_ID=(\w+)/g)].map(([, key]) => key)).toEqual(["ASIABUILD"]);
    expect(env + parent + files).not.toContain(renderCredentials.secretAccessKey);
    expect(env + parent).not.toContain("X-Amz-Signature");
    const [own, other] = run === 1 ? ["second-secret", "first-secret"] : ["first-secret", "second-secret"];
    expect(files).toContain(own);
    expect(files).not.toContain(other);
    expect(files).not.toContain("not: named by the kustomization");
  }
});

test("the role of build may write its own log, and nothing else of Starling", () => {
  const statements = statementsOf(resources, "build");
  expect(statements.flatMap(({ Action }) => Action)).toEqual(["logs:CreateLogStream", "logs:PutLogEvents"]);
  for (const wish of [
    { action: "dynamodb:GetItem", resource: "<starling-state-table-arn>", partition: "REND#x" },
    { action: "s3:GetObject", resource: "<starling-state-blobs-arn>/artifacts/0.tar.gz" },
    { action: "s3:PutObject", resource: "<starling-state-blobs-arn>/incoming/0" },
    { action: "sqs:SendMessage", resource: "<WiringToRolloutQueue>" },
    { action: "lambda:InvokeFunction", resource: "<WiringBuildFunction>" },
    { action: "secretsmanager:GetSecretValue", resource: "arn:x:secret:starling/git/shop-AbCdEf" },
  ]) {
    expect(mayDo(wish, statements)).toBe(false);
  }
});
