import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";

/** A program that prints the folder that it made, and runs until it is killed. */
const holder = `
import { makeScratchFolder } from "#shared/adapters/render/scratch-folder.ts";
process.stdout.write((await makeScratchFolder("render")) + "\\n");
setInterval(() => {}, 1000);
`;
/** The same, after an earlier process with the same id has left a folder. */
const successor = `
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { tmpdir } from "node:os";
mkdirSync(join(tmpdir(), \`starling-render-\${process.pid}-before\`));
${holder}
`;

let folder: string;
let children: ChildProcess[];

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "starling-test-"));
  children = [];
});

afterEach(async () => {
  for (const child of children) await kill(child);
  await rm(folder, { recursive: true, force: true });
});

/** @returns the process, and the name of the folder that it made. */
async function start(script: string): Promise<readonly [ChildProcess, string]> {
  const child = spawn(process.execPath, ["--input-type=module", "--eval", script], {
    env: { ...process.env, TMPDIR: folder },
    stdio: ["ignore", "pipe", "inherit"],
  });
  children.push(child);
  const [said] = (await once(child.stdout, "data")) as [Buffer];
  return [child, basename(said.toString().trim())];
}

async function kill(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill("SIGKILL");
  await once(child, "exit");
}

test("the files of a killed process are removed at the next start, and those in use are not", async () => {
  const [killed, left] = await start(holder);
  await writeFile(join(folder, left, "secret.yaml"), "a: 1\n");
  const [, used] = await start(holder);
  expect(await readdir(folder)).toEqual([left, used].sort());
  await kill(killed);

  await mkdir(join(folder, "starling-render-of-a-user"));
  await mkdir(join(folder, `starling-other-${killed.pid}-x`));
  const [, own] = await start(successor);
  const expected = ["starling-render-of-a-user", `starling-other-${killed.pid}-x`, used, own];
  expect(await readdir(folder)).toEqual(expected.sort());
});
