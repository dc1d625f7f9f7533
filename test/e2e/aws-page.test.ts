/** docs/aws.md, carried out: what is the account's own as far as synthesis goes, all else against the local machine. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { readSettings } from "#infra/settings.ts";
import { quiet } from "#local/aws/wire/fault-options.ts";
import { synthesize } from "#local/template/synthesize.ts";
import type { Installation } from "#shared/fleet/api/installation.ts";
import { configMap, namespaceManifest } from "#test/support/e2e-documents.ts";
import { namespace, startWorld, type World } from "#test/support/e2e-world.ts";
import { commandsOf, pageBlocks, pageText, wordsOf } from "#test/support/page-commands.ts";
import { runWithoutTerminal } from "#test/support/run-without-terminal.ts";
import { restoreTable } from "#test/support/table-copy.ts";

const blocks = pageBlocks("aws.md");
const account = blocks.filter(({ info }) => info === "sh account").flatMap(commandsOf);
const mine = blocks.filter(({ info }) => info === "sh");
const section = (number: number) => mine.filter(({ heading }) => heading.startsWith(`${number}. `)).flatMap(commandsOf);

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "starling-page-"));
});
afterAll(() => {
  vi.unstubAllEnvs();
  rmSync(folder, { recursive: true, force: true });
});

async function run(command: string) {
  const [program, ...words] = wordsOf(command);
  expect(program).toBe("starling");
  return { command, ...(await runWithoutTerminal(words, { folder, patienceMs: 240_000 })) };
}

/** One after the other, each of which has to succeed. */
async function runAll(commands: readonly string[]): Promise<void> {
  expect(commands.length).toBeGreaterThan(0);
  for (const command of commands) {
    const ran = await run(command);
    expect(ran, `${command}: ${ran.err}`).toMatchObject({ code: 0 });
  }
}

describe("what is the account's own", () => {
  test("is one of a few programs, each of which is at hand", () => {
    const programs = account.map((command) =>
      command
        .split(" ")
        .slice(0, command.startsWith("npx") ? 3 : 1)
        .join(" "),
    );
    expect([...new Set(programs)].toSorted()).toEqual([
      "aws",
      "export",
      "git",
      "npx cdk bootstrap",
      "npx cdk deploy",
      "npx cdk destroy",
      "npx cdk diff",
      "starling",
    ]);
  });

  const cdk = account.filter((command) => /^npx cdk (deploy|destroy|diff)/.test(command));
  test.each([...new Set(cdk)])("%s names settings and stacks that there are", { timeout: 120_000 }, async (command) => {
    const given = [...command.matchAll(/-c (\w+)=(\S+)/g)].map(([, name = "", value = ""]) => [name, value] as const);
    const context = Object.fromEntries(given);
    expect(() => readSettings(context)).not.toThrow();
    const stacks = await synthesize(context);
    const words = wordsOf(command)
      .slice(3)
      .filter((word) => word.startsWith("starling-"));
    expect(Object.keys(stacks)).toEqual(expect.arrayContaining([...words]));
    if (context.table === undefined) return;
    // What is deployed then works on that table.
    const text = JSON.stringify(stacks["starling-control"]);
    expect(text).toContain(`"STARLING_TABLE":"${context.table}"`);
    expect(text).not.toContain('"STARLING_TABLE":{');
  });

  const checklist = [...pageText("first-deployment.md").matchAll(/`(starling [a-z][^`]*)`/g)].map(
    ([, line = ""]) => line,
  );
  const shown = [...account.filter((command) => command.startsWith("starling ")), ...checklist];
  test.each([...new Set(shown)])("%s has a verb and flags that there are", async (line) => {
    const [verb = "", ...rest] = wordsOf(line).slice(1);
    const verbs = ["cluster", "context"].includes(verb) ? `${verb} ${rest[0]}` : verb;
    const [help, global] = [await run(`starling ${verbs} --help`), await run("starling --help")];
    expect(help.code).toBe(0);
    const flags = rest.filter((word) => word.startsWith("-"));
    for (const flag of flags) expect(`${help.out}${global.out}`).toContain(flag);
  });
});

/** The machine, as a profile of the AWS configuration sees an account. */
function enterAccount({ machine }: World): void {
  const { accessKeyId, secretAccessKey } = machine.api.credentials;
  const credentials = join(folder, "credentials");
  writeFileSync(
    credentials,
    `[work]\naws_access_key_id = ${accessKeyId}\naws_secret_access_key = ${secretAccessKey}\n`,
  );
  vi.stubEnv("AWS_SHARED_CREDENTIALS_FILE", credentials);
  vi.stubEnv("AWS_CONFIG_FILE", "/dev/null");
  vi.stubEnv("AWS_ENDPOINT_URL_CLOUDFORMATION", machine.cloudFormation.endpoint);
  vi.stubEnv("AWS_ENDPOINT_URL_STS", machine.eks.endpoint);
}

/** The page's own file; its repository is served here. */
function writeFleet(world: World): void {
  const [document] = blocks.filter(({ info }) => info === "yaml");
  const url = "https://github.com/acme/shop";
  expect(document?.text).toContain(url);
  mkdirSync(join(folder, "fleet"));
  writeFileSync(join(folder, "fleet/shop.yaml"), document?.text.replace(url, world.git.url("app")) ?? "");
}

const clusters = ["prod-1", "prod-2"] as const;

async function colors(world: World): Promise<readonly unknown[]> {
  const found = await Promise.all(clusters.map((cluster) => world.fleet.objects(cluster)));
  return found.map((objects) => {
    const made = objects.find(({ metadata }) => (metadata as { name: string }).name === "settings");
    return (made?.data as { color?: string } | undefined)?.color;
  });
}

const content = (color: string) => ({
  "deploy/namespace.yaml": namespaceManifest,
  "deploy/settings.yaml": configMap("settings", { color }),
});

test("the page, from the context to the removal", { timeout: 560_000 }, async () => {
  const world = await startWorld({ faults: quiet });
  try {
    enterAccount(world);
    writeFleet(world);
    // As the page says of the first minute.
    const installation = () => world.session.call<Installation>("GET", "/v1/installation");
    await expect
      .poll(installation, { timeout: 60_000 })
      .toMatchObject({ tick: { value: { lastAt: expect.any(String) } } });
    await runAll(section(2));
    await world.join(
      { name: "prod-1", labels: { env: "prod", ring: "canary" } },
      { name: "prod-2", labels: { env: "prod" } },
    );
    await world.createRepository("app", content("blue"));
    await runAll(section(4));
    await runAll(section(5));
    expect(await colors(world)).toEqual(["blue", "blue"]);
    await runAll(section(6));

    const backup = await world.rows();
    await world.push("app", content("green"));
    await world.waitFor("the next content everywhere", async () =>
      (await colors(world)).every((each) => each === "green"),
    );
    await run("starling rollout status shop -w");
    await restoreTable(world, backup);
    const restoring = section(8);
    const look = restoring.findIndex((command) => command.includes("--dry-run"));
    await runAll(restoring.slice(0, look));
    const shown = await world.waitFor("what the clusters refuse", async () => {
      expect(await colors(world)).toEqual(["green", "green"]);
      const ran = await run(restoring[look] ?? "");
      return ran.out.split("\n").filter((line) => line.startsWith("prod-")).length === clusters.length
        ? ran
        : undefined;
    });
    expect(shown.code).toBe(0);
    await runAll(restoring.slice(look + 1));
    expect(await colors(world)).toEqual(["green", "green"]);

    await runAll(section(9));
    expect(await colors(world)).toEqual([undefined, undefined]);
    expect((await run("starling get clusters")).err).toContain("no context is chosen");
  } finally {
    await world.close();
  }
});

test("no block of commands is left out", () => {
  const sections = [2, 4, 5, 6, 8, 9].flatMap((number) => section(number));
  expect(mine.flatMap(commandsOf)).toEqual(sections);
  expect(namespace).toBe("shop");
});
