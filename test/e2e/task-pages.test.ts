/**
 * Runs the commands of the task pages from the installation to the removal: commands for an AWS account only as far as a
 * synthesis, and all others against the local machine.
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import type { Authenticator } from "@starling/embedded-apiserver";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { readSettings } from "#infra/read-settings.ts";
import { eksAuthenticator } from "#local/aws/eks/eks-authenticator.ts";
import { clusterAdminPolicy } from "#local/aws/eks/eks-register.ts";
import { quiet } from "#local/aws/wire/fault-options.ts";
import type { LocalEks } from "#local/machine/machine.ts";
import { synthesize } from "#local/template/synthesize.ts";
import type { Installation } from "#shared/fleet/api/installation.ts";
import { configMap, namespaceManifest } from "#test/support/e2e-documents.ts";
import { namespace, startWorld, type World } from "#test/support/e2e-world.ts";
import { embeddedFleetFor } from "#test/support/fleet.ts";
import { commandsOf, pageBlocks, pageText, wordsOf } from "#test/support/page-commands.ts";
import { runWithoutTerminal } from "#test/support/run-without-terminal.ts";
import { restoreTable } from "#test/support/table-copy.ts";

/** The pages, in the order in which a person follows them. */
const pages = [
  "install",
  "discover-clusters",
  "deploy-an-app",
  "stop-everything",
  "upgrade",
  "recover-the-table",
  "uninstall",
] as const;
type Page = (typeof pages)[number];

const blocksOf = (page: Page) => pageBlocks(`tasks/${page}.md`);
const account = pages
  .flatMap(blocksOf)
  .filter(({ info }) => info === "sh account")
  .flatMap(commandsOf);
const commandsOn = (page: Page) =>
  blocksOf(page)
    .filter(({ info }) => info === "sh")
    .flatMap(commandsOf);
const documentsOn = (page: Page) => blocksOf(page).find(({ info }) => info === "yaml")?.text ?? "";

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

/** Runs commands one after the other. Each has to succeed. */
async function runAll(commands: readonly string[]): Promise<void> {
  expect(commands.length).toBeGreaterThan(0);
  for (const command of commands) {
    const ran = await run(command);
    expect(ran, `${command}: ${ran.err}`).toMatchObject({ code: 0 });
  }
}

describe("the commands for an account", () => {
  test("the commands for an account use a few common programs", () => {
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
      "until",
    ]);
  });

  const cdk = account.filter((command) => /^npx cdk (deploy|destroy|diff)/.test(command));
  test.each([...new Set(cdk)])("%s names existing settings and stacks", { timeout: 120_000 }, async (command) => {
    const given = [...command.matchAll(/-c (\w+)=(\S+)/g)].map(([, name = "", value = ""]) => [name, value] as const);
    const context = Object.fromEntries(given);
    expect(() => readSettings(context)).not.toThrow();
    const stacks = await synthesize(context);
    const words = wordsOf(command)
      .slice(3)
      .filter((word) => word.startsWith("starling-"));
    expect(Object.keys(stacks)).toEqual(expect.arrayContaining([...words]));
    if (context.table === undefined) return;
    // The deployed functions use that table.
    const text = JSON.stringify(stacks["starling-control"]);
    expect(text).toContain(`"STARLING_TABLE":"${context.table}"`);
    expect(text).not.toContain('"STARLING_TABLE":{');
  });

  const checklist = [...pageText("first-deployment.md").matchAll(/`(starling [a-z][^`]*)`/g)].map(
    ([, line = ""]) => line,
  );
  const shown = [...account.filter((command) => command.startsWith("starling ")), ...checklist];
  test.each([...new Set(shown)])("%s has an existing verb and existing flags", async (line) => {
    const [verb = "", ...rest] = wordsOf(line).slice(1);
    const verbs = ["cluster", "context"].includes(verb) ? `${verb} ${rest[0]}` : verb;
    const [help, global] = [await run(`starling ${verbs} --help`), await run("starling --help")];
    expect(help.code).toBe(0);
    const flags = rest.filter((word) => word.startsWith("-"));
    for (const flag of flags) expect(`${help.out}${global.out}`).toContain(flag);
  });
});

/** A profile of the AWS configuration that points to the machine. */
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

/** The files that the pages show. The local machine serves the repository. */
function writeFleet(world: World): void {
  const clusters = documentsOn("discover-clusters");
  const shop = documentsOn("deploy-an-app");
  const url = "https://github.com/acme/shop";
  expect(shop).toContain(url);
  mkdirSync(join(folder, "fleet"));
  writeFileSync(join(folder, "fleet/clusters.yaml"), clusters);
  writeFileSync(join(folder, "fleet/shop.yaml"), shop.replace(url, world.git.url("app")));
}

/** A cluster in each account of the page's organization, with the values of the page in tags or in a parameter. */
const clusters = [
  {
    name: "prod-1",
    accountId: "111122223333",
    domain: "one.example.com",
    tags: { ring: "canary", domain: "one.example.com" },
  },
  { name: "prod-2", accountId: "444455556666", domain: "two.example.com", tags: { ring: "broad" } },
] as const;
const region = "us-east-1";

let eks: LocalEks | undefined;
const arns = new Map<string, string>(
  clusters.map(({ name, accountId }) => [name, `arn:aws:eks:${region}:${accountId}:cluster/${name}`]),
);
const asEks: Authenticator = (token, cluster) =>
  eks === undefined
    ? Promise.resolve(undefined)
    : eksAuthenticator({ ...eks, stsEndpoint: eks.endpoint, arnOf: (name) => arns.get(name) })(token, cluster);

/** Prepares what the page expects in the accounts: clusters with tags, and the roles for Starling. */
async function fillAccounts({ machine, fleet }: World): Promise<void> {
  const { installation, callerArn, discovererArn } = machine.eks;
  eks = machine.eks;
  for (const { name, accountId, tags } of clusters) {
    const { server, caData } = await fleet.add(name);
    const roleOf = (path: string) => `arn:aws:iam::${accountId}:role/starling/${path}`;
    const trust = (principalArn: string, of: string) => [{ principalArn, externalId: `${installation}/${of}` }];
    eks.roles.put({ arn: roleOf("discovery/scan"), trusts: trust(discovererArn, "discovery/fleet") });
    eks.roles.put({ arn: roleOf("clusters/apply"), trusts: trust(callerArn, name) });
    eks.clusters.put({
      arn: arns.get(name) ?? "",
      ...{ name, accountId, region, caData, endpoint: server, version: "1.36", status: "ACTIVE" },
      tags: { starling: "yes", env: "prod", ...tags },
      createdAt: new Date("2026-01-01T00:00:00Z"),
      accessEntries: [
        {
          principalArn: roleOf("clusters/apply"),
          kubernetesGroups: [],
          username: "starling:{{SessionName}}",
          policies: [clusterAdminPolicy],
        },
      ],
    });
  }
  const accounts = clusters.map(({ accountId: id }) => ({ id, state: "ACTIVE" as const }));
  const [putParameter = ""] = account.filter((command) => command.startsWith("aws ssm put-parameter"));
  const said = Object.fromEntries([...putParameter.matchAll(/--(\w+) (\S+)/g)].map(([, flag, value]) => [flag, value]));
  const { name = "", value = "" } = said;
  eks.parameters.put({ accountId: clusters[1].accountId, region }, name, { type: "String", value });
  const units = new Map([["ou-ab12-cdefgh34", { units: [], accounts }]]);
  eks.organize({ account: clusters[0].accountId, units });
}

async function settings(world: World): Promise<readonly unknown[]> {
  const found = await Promise.all(clusters.map(({ name }) => world.fleet.objects(name)));
  return found.map((objects) => {
    const made = objects.find(({ metadata }) => (metadata as { name: string }).name === "settings");
    return made?.data;
  });
}

/** The values of each cluster by its tag or parameter and the ClusterValues. */
const everywhere = (color: string) => clusters.map(({ domain }) => ({ color, at: `https://${domain}`, tier: "gold" }));

const filesOf = (color: string) => ({
  "deploy/namespace.yaml": namespaceManifest,
  // biome-ignore lint/suspicious/noTemplateCurlyInString: Starling replaces it
  "deploy/settings.yaml": configMap("settings", { color, at: "https://${DOMAIN}", tier: "${TIER}" }),
});

test("the commands of the task pages work one after the other, from the context to the removal", {
  timeout: 560_000,
}, async () => {
  const world = await startWorld({ faults: quiet, target: embeddedFleetFor(asEks) });
  try {
    enterAccount(world);
    writeFleet(world);
    // The page says that the timer may not have run in the first minute.
    const installation = () => world.session.call<Installation>("GET", "/v1/installation");
    await expect
      .poll(installation, { timeout: 60_000 })
      .toMatchObject({ tick: { value: { lastAt: expect.any(String) } } });
    await runAll(commandsOn("install"));
    await fillAccounts(world);
    await world.createRepository("app", filesOf("blue"));
    const [applying = "", ...reading] = commandsOn("discover-clusters");
    await runAll([applying]);
    const [describing = ""] = reading;
    await world.waitFor("the first scan", async () => (await run(describing)).out.includes("2 clusters of 2 accounts"));
    await runAll(reading);
    const listed = await run("starling get clusters");
    for (const { name } of clusters) expect(listed.out).toContain(name);
    await runAll(commandsOn("deploy-an-app"));
    expect(await settings(world)).toEqual(everywhere("blue"));
    await runAll(commandsOn("stop-everything"));

    const backup = await world.rows();
    await world.push("app", filesOf("green"));
    await world.waitFor("the next revision on every cluster", async () =>
      isDeepStrictEqual(await settings(world), everywhere("green")),
    );
    await run("starling rollout status shop -w");
    const [freezing = "", ...restoring] = commandsOn("recover-the-table");
    await runAll([freezing]);
    const freezeState = (await world.rows()).filter(({ pk }) => pk === "FREEZES");
    expect(freezeState).toHaveLength(1);
    await restoreTable(world, [...backup.filter(({ pk }) => pk !== "FREEZES"), ...freezeState]);
    expect((await run("starling get freezes")).out).toContain("restored");
    const dryRun = restoring.findIndex((command) => command.includes("--dry-run"));
    await runAll(restoring.slice(0, dryRun));
    const shown = await world.waitFor("what the clusters refuse", async () => {
      expect(await settings(world)).toEqual(everywhere("green"));
      const ran = await run(restoring[dryRun] ?? "");
      return ran.out.split("\n").filter((line) => line.startsWith("prod-")).length === clusters.length
        ? ran
        : undefined;
    });
    expect(shown.code).toBe(0);
    await runAll(restoring.slice(dryRun + 1));
    expect(await settings(world)).toEqual(everywhere("green"));

    await runAll(commandsOn("uninstall"));
    expect(await settings(world)).toEqual([undefined, undefined]);
    expect((await run("starling get clusters")).err).toContain("no context is chosen");
  } finally {
    await world.close();
  }
});

test("tasks/uninstall.md names every resource that stays when the stacks are removed", async () => {
  const stacks = await synthesize({});
  const kept = Object.values(stacks)
    .flatMap(({ Resources }) => Object.values(Resources))
    .filter((resource) => "DeletionPolicy" in resource && resource.DeletionPolicy !== "Delete");
  const [table = ""] = pageText("tasks/uninstall.md").split("| stays |").slice(1);
  const rows = table.split("\n\n")[0] ?? "";
  const named = [...rows.matchAll(/\(`(AWS::\w+::\w+)`\)/g)].map(([, type = ""]) => type);
  expect(named.toSorted()).toEqual([...new Set(kept.map(({ Type }) => Type))].toSorted());
  expect(pageText("tasks/uninstall.md")).toContain("Twelve resources of six kinds stay");
  expect([kept.length, named.length]).toEqual([12, 6]);
});

test("the task pages show the namespace and programs of these tests", () => {
  expect(commandsOn("upgrade")).toEqual([]);
  expect(namespace).toBe("shop");
});
