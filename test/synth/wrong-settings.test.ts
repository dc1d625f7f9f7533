/** The commands of the CDK print each wrong setting as one line, without the stack trace of a program. */
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { startNode } from "#test/support/started-process.ts";

const folder = mkdtempSync(join(tmpdir(), "starling-wrong-settings-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

interface Ended {
  readonly code: number | string;
  readonly lines: readonly string[];
}

async function ran(args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<Ended> {
  const started = startNode(args, { cwd: folder, env: { ...process.env, ...env } });
  const code = await started.ended();
  return { code, lines: started.err().trimEnd().split("\n") };
}

/** The CDK's command line in a folder whose cdk.json has these settings. */
async function cdk(command: readonly string[], context: Readonly<Record<string, unknown>> = {}): Promise<Ended> {
  const app = `${process.execPath} ${resolve("infra/bin/starling.ts")}`;
  writeFileSync(join(folder, "cdk.json"), JSON.stringify({ app, context }));
  const { code, lines } = await ran([resolve("node_modules/aws-cdk/bin/cdk"), ...command, "--output", "made"]);
  expect(lines.at(-1), "the CDK says that the app has failed").toContain("Subprocess exited with error 2");
  expect(existsSync(join(folder, "made", "manifest.json")), "templates were made").toBe(false);
  return { code, lines: lines.slice(0, -1) };
}

const clusters = 'error: setting clusters is "many"; expected a whole number of at least 1';
const unknown = "error: there is no setting cluster; did you mean clusters?";
const noNetwork =
  "error: setting zones[0] of zone x has no network; add vpc (a new network, such as {}) or subnets (existing ones)";

describe("a wrong setting", { timeout: 120_000 }, () => {
  test.each([[["synth", "-q"]], [["deploy", "--all", "--require-approval", "never"]]])(
    "npx cdk %j prints each wrong value of the command line as one line",
    async (command) => {
      const given = ["-c", "clusters=many", "-c", "cluster=3", "-c", 'zones=[{"name":"x"}]'];
      expect(await cdk([...command, ...given])).toEqual({ code: 1, lines: [clusters, noNetwork, unknown] });
    },
  );

  test("npx cdk synth prints each wrong value of cdk.json, and no character of it controls the terminal", async () => {
    const context = { clusters: "many", zones: [{ name: "x" }], "a\u001b[2J\nb": 1, installation: "\u009b1m\u202e" };
    expect(await cdk(["synth", "-q"], context)).toEqual({
      code: 1,
      lines: [
        'error: setting installation is "\\u009b1m\\u202e"; expected 1 to 40 letters, digits and dashes, a letter first',
        clusters,
        noNetwork,
        "error: there is no setting a\\u001b[2J\\nb; docs/settings.md lists all of them",
      ],
    });
  });

  test("npx cdk synth prints every setting that does not fit another one", async () => {
    const context = {
      clusters: 2,
      domain: "starling.example.com",
      applyConcurrency: 900,
      resolveZone: "y",
      zones: [
        { name: "x", vpc: {}, clusters: 50 },
        { name: "far", region: "us-east-1", clusterNames: ["*"] },
      ],
    };
    expect(await cdk(["synth", "-q"], context)).toEqual({
      code: 1,
      lines: [
        expect.stringMatching(
          /^error: setting zones has 50 clusters \(zone x reaches 50\), but setting clusters is 2; /,
        ),
        'error: setting resolveZone is "y", but setting zones has only x; did you mean x?',
        expect.stringMatching(
          /^error: setting zones: zone far is in another .* setting home is missing; expected an obj/,
        ),
        "error: setting domain requires setting domainCertificate; set both, or neither",
        expect.stringMatching(/^error: setting applyConcurrency 900: .* but setting concurrency is 10; lower the/),
      ],
    });
  });
});

test("an error of the app that is not about settings keeps its stack trace", async () => {
  const outdir = join(folder, "file");
  writeFileSync(outdir, "");
  const { code, lines } = await ran([resolve("infra/bin/starling.ts")], { CDK_OUTDIR: outdir, CDK_CONTEXT_JSON: "{}" });
  expect(code).toBe(1);
  expect(lines.join("\n")).toMatch(/file.*\n\s+at .*starling-app\.ts/s);
});

test.each(["file", "file/below"])("npm run zone-template says that nothing can be written to %s", async (given) => {
  writeFileSync(join(folder, "file"), "");
  expect(await ran([resolve("infra/bin/zone-template.ts"), given])).toEqual({
    code: 2,
    lines: [
      expect.stringMatching(
        `^error: the template cannot be written to "${given}" \\((EEXIST|ENOTDIR)\\); expected a folder that you may write to$`,
      ),
      expect.stringMatching(/^ {2}next: npm run zone-template/),
    ],
  });
});
