import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

const main = fileURLToPath(new URL("../../cli/main.ts", import.meta.url));
const home = mkdtempSync(join(tmpdir(), "starling-foreground-"));
const repository = join(home, "shop");
const env = { PATH: process.env.PATH ?? "", HOME: home };
const person = ["-c", "user.name=ana", "-c", "user.email=ana@example.com"];

interface Ran {
  readonly code: number | string;
  readonly out: string;
  readonly err: string;
}

async function run(program: string, args: readonly string[], cwd = home): Promise<Ran> {
  return ended(spawn(program, args, { cwd, env, stdio: ["ignore", "pipe", "pipe"] }));
}

async function ended(child: ChildProcess): Promise<Ran> {
  const { stdout, stderr } = child;
  if (stdout === null || stderr === null) throw new Error("its streams are not read here");
  const [out, err, [code, signal]] = await Promise.all([text(stdout), text(stderr), once(child, "exit")]);
  return { code: code ?? signal, out, err };
}

/** Runs `starling LINE` as its entry under an older Node does, with a channel to the parent process. */
async function start(line: string): Promise<{ readonly child: ChildProcess; readonly end: Promise<Ran> }> {
  const child = spawn(process.execPath, [main, ...line.split(" ")], {
    cwd: home,
    env,
    stdio: ["ignore", "pipe", "pipe", "ipc"],
  });
  const end = ended(child);
  await new Promise<void>((resolve, reject) => {
    let said = "";
    child.stderr?.on("data", (chunk: Buffer) => {
      said += chunk.toString();
      if (said.includes("local runs until Ctrl-C")) resolve();
    });
    child.once("exit", () => reject(new Error(`it ended: ${said}`)));
  });
  return { child, end };
}

beforeAll(async () => {
  mkdirSync(repository);
  writeFileSync(join(repository, "settings.yaml"), "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\n");
  await run("git", ["init", "-q", "-b", "main", "."], repository);
  await run("git", ["add", "."], repository);
  await run("git", [...person, "commit", "-qm", "Begin"], repository);
});

afterAll(async () => {
  await run(process.execPath, [main, "local", "down"]);
  rmSync(home, { recursive: true, force: true });
});

describe("a machine in the foreground", () => {
  test("a machine in the foreground prints a push command and ends at local down", async () => {
    const { end } = await start("local up --foreground --clusters 1 --repo shop");
    const down = await run(process.execPath, [main, "local", "down"]);
    expect(down).toMatchObject({ code: 0, out: "local is down\n" });
    const { code, out, err } = await end;
    expect({ code, out }).toEqual({ code: 0, out: expect.stringMatching(/local is down\n$/) });
    expect(err).toMatch(/push to it: git -c include\.path=\S+ push https:\S+\/shop\.git HEAD\n/);
  });

  test("a machine in the foreground stops cleanly when its parent process ends", async () => {
    const { child, end } = await start("local up --foreground");
    child.disconnect();
    expect(await end).toMatchObject({ code: 3, err: expect.stringContaining("the parent process has ended") });
    expect(await run(process.execPath, [main, "local", "status"])).toMatchObject({
      code: 1,
      out: expect.stringContaining("local is down: nothing runs in "),
    });
  });
});
