import { spawn } from "node:child_process";
import { once } from "node:events";
import { open } from "node:fs/promises";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type OwnGitServer, startOwnGitServer } from "#test/support/own-git-server.ts";
import { type RawRepository, rawRepository } from "#test/support/raw-repository.ts";

const mib = 1024 * 1024;

describe("I13: one file of 1.5 GB in 2 MB", () => {
  let server: OwnGitServer;
  let big: RawRepository;
  let oid: string;

  beforeAll(async () => {
    server = await startOwnGitServer();
    await server.createRepository("big");
    big = rawRepository(server.root, "big");
    // git streams a file of this size, and does not store it as a delta.
    await big.git("config", "core.bigFileThreshold", "10m");
    await big.git("config", "core.compression", "1");
    const zeros = join(server.root, "zeros");
    const file = await open(zeros, "w");
    await file.truncate(1500 * mib);
    await file.close();
    const blob = (await big.git("hash-object", "-w", zeros)).trim();
    const deploy = await big.tree([{ mode: "100644", name: "a.yaml", oid: await big.blob("a: 1\n") }]);
    const entries = [
      { mode: "100644", name: "big.bin", oid: blob },
      { mode: "40000", name: "deploy", oid: deploy },
    ] as const;
    oid = await big.commit(await big.tree(entries));
  }, 120_000);

  afterAll(async () => {
    await server?.stop();
  });

  /** Fetches in a process of its own, which reports the largest memory that it had. */
  async function measured(path: string): Promise<{ readonly said: string; readonly peakMiB: number }> {
    const script = fileURLToPath(new URL("./measured-fetch.ts", import.meta.url));
    const child = spawn(process.execPath, [script, server.url("big"), oid, path], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    const [out] = await Promise.all([text(child.stdout), once(child, "close")]);
    return JSON.parse(out);
  }

  test("the fetch fails without unpacking the large file if the server sends it all the same [source.files.limits]", async () => {
    await big.git("config", "uploadpack.allowFilter", "false");
    const { said, peakMiB } = await measured("deploy");
    expect(said).toContain("GitTooLarge: the commit has an object of 1572864000 bytes; at most 104857600 are read");
    expect(said).toContain("narrow spec.paths, if the git server");
    expect(peakMiB).toBeLessThan(400);
  }, 60_000);

  test("a server that can leave the large file out does not send it, and it does no harm outside of spec.paths [source.files.limits]", async () => {
    await big.git("config", "uploadpack.allowFilter", "true");
    const beside = await measured("deploy");
    expect(beside.said).toBe("deploy/a.yaml");
    expect(beside.peakMiB).toBeLessThan(400);
    const within = await measured(".");
    expect(within.said).toMatch(
      /^GitTooLarge: spec.paths contain more than 104857600 bytes.*"big.bin"; narrow spec.paths/,
    );
  }, 60_000);
});
