/** The fleet of the demo and of `local up` has EKS clusters of two accounts; a third account does not trust Starling. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { startIam } from "#local/aws/iam/iam-server.ts";
import { pacedClock } from "#local/base/paced-clock.ts";
import { addFleet, type Stack, startStack } from "#local/machine/stack.ts";
import type { ClusterObject, DiscoveryObject, SyncGroupObject } from "#shared/fleet/api/objects.ts";
import type { LinkFinding } from "#shared/fleet/cluster-links.ts";
import { configMap, namespaceManifest } from "#test/support/e2e-documents.ts";
import { openWorldCli } from "#test/support/world-cli.ts";

const patienceMs = 60_000;
const roleOf = (name: string) => `arn:aws:iam::111111111111:role/starling/clusters/${name}`;
const externalIdOf = (name: string) => `starling.000000000000.us-east-1/${name}`;
const version = { apiVersion: "starling.dev/v1alpha1" };

let folder: string;
let stack: Stack;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "starling-iam-"));
  stack = await startStack({ repositories: folder, clock: pacedClock(10), tickEveryMs: 250 });
});
afterEach(async () => {
  await stack.stop();
  await rm(folder, { recursive: true, force: true });
});

async function waitFor<T>(what: string, probe: () => Promise<T | undefined>): Promise<T> {
  for (const until = performance.now() + patienceMs; ; await sleep(100)) {
    const found = await probe();
    if (found !== undefined) return found;
    if (performance.now() > until) {
      throw new Error(`${what} did not happen: ${JSON.stringify(await stack.session.call("GET", "/v1/clusters"))}`);
    }
  }
}

/** The result of `starling cluster check` as JSON. */
async function checked(...args: readonly string[]) {
  const cli = openWorldCli(stack);
  const { code, out, err } = await cli.run(["cluster", "check", ...args, "-o", "json"]);
  cli.close();
  if (!out.startsWith("{")) throw new Error(err);
  const { items } = JSON.parse(out) as {
    readonly items: readonly { readonly cluster: string; readonly result: string; readonly links: LinkFinding[] }[];
  };
  const found = items.map((item) => {
    const broken = item.links.find(({ state }) => state === "broken");
    return [item.cluster, item.result, ...(broken === undefined ? [] : [broken.link, broken.code])].join(" ");
  });
  return { code, found: found.sort() };
}

const cluster = (name: string) => stack.session.call<ClusterObject>("GET", `/v1/clusters/${name}`);
const group = () => stack.session.call<SyncGroupObject>("GET", "/v1/namespaces/shop/syncgroups/web");

test("clusters of an account that does not trust Starling are unreachable with the reason, and come into sync when it does", async () => {
  const { eks } = stack.machine;
  await stack.git.createRepository("shop/web", {
    "deploy/settings.yaml": namespaceManifest + configMap("settings", { color: "blue" }),
  });
  const names = await addFleet(stack, 4);
  const specs = new Map(await Promise.all(names.map(async (name) => [name, (await cluster(name)).spec] as const)));
  const spoke = names.filter((name) => specs.get(name)?.access !== undefined);
  const home = names.filter((name) => !spoke.includes(name));
  expect([spoke.length, home.length]).toEqual([2, 2]);
  expect([...specs.values()].map(({ endpoint }) => endpoint)).toEqual(names.map(() => undefined));

  // Each role trusts another Cluster, so the right name with the wrong role is refused.
  const [one = "", other = ""] = spoke;
  const trust = (name: string, externalId: string) =>
    eks.roles.put({ arn: roleOf(name), trusts: [{ principalArn: eks.callerArn, externalId }] });
  trust(one, externalIdOf(other));
  trust(other, externalIdOf(one));
  await stack.session.apply([
    {
      ...version,
      kind: "Source",
      metadata: { namespace: "shop", name: "web" },
      spec: { git: stack.gitSpec(stack.git.url("shop/web")), interval: "10s" },
    },
    {
      ...version,
      kind: "SyncGroup",
      metadata: { namespace: "shop", name: "web" },
      spec: {
        clusters: { all: true },
        templates: [{ name: "app", source: "web", path: "deploy" }],
        rollout: { maxConcurrent: 4, maxUnreachable: "50%" },
      },
    },
  ]);
  await waitFor("the clusters of the home account", async () => {
    const { status } = await group();
    return status.clusters?.ready === home.length && status.clusters.unreachable === spoke.length ? status : undefined;
  });
  const all = [...names].sort();
  expect(await checked("--all")).toEqual({
    code: 1,
    found: all.map((name) => (spoke.includes(name) ? `${name} broken role RoleDenied` : `${name} ok`)),
  });
  for (const name of spoke) {
    const { status } = await cluster(name);
    expect(status.externalId).toBe(externalIdOf(name));
    expect(status.conditions).toMatchObject([{ type: "Reachable", status: "False", reason: "RoleDenied" }]);
    expect(status.conditions[0]?.message).toContain(
      `Starling may not assume role ${roleOf(name)}: let its trust policy allow sts:AssumeRole to the role of Starling's apply function where sts:ExternalId is ${externalIdOf(name)}, `,
    );
  }

  // STS answers AccessDenied for all causes. A caller that may read the roles gets the cause.
  const { machine } = stack;
  const iam = await startIam({ principals: machine.principals, roles: eks.roles });
  const me = machine.principals.find(machine.api.credentials.accessKeyId)?.principalArn ?? "";
  eks.roles.put({ arn: "arn:aws:iam::111111111111:role/admin", trusts: [{ principalArn: me }] });
  eks.roles.put({ arn: roleOf(other), trusts: [{ principalArn: me }] });
  vi.stubEnv("AWS_ENDPOINT_URL_IAM", iam.endpoint);
  vi.stubEnv("AWS_ENDPOINT_URL_STS", eks.endpoint);
  try {
    expect(await checked(one, other, "--as-me", "--assume-role", "admin")).toEqual({
      code: 1,
      found: [`${one} broken externalId ExternalIdOther`, `${other} broken role RoleTrustsOthers`].sort(),
    });
    // The account trusts no other installation, so the finding of before stays.
    expect(await checked(one, "--as-me", "--assume-role", "nobody")).toMatchObject({
      found: [`${one} broken role RoleDenied`],
    });
  } finally {
    vi.unstubAllEnvs();
    await iam.stop();
  }

  for (const name of spoke) trust(name, externalIdOf(name));
  await waitFor("all clusters", async () =>
    (await group()).status.clusters?.ready === names.length ? true : undefined,
  );

  expect(await checked("--all")).toEqual({ code: 0, found: all.map((name) => `${name} ok`) });

  // Starling reads the address from EKS once a day, so the test reports the new port before it plays faults there.
  const [moved = ""] = home;
  const { server } = await stack.clusters.openPort(moved);
  await addFleet(stack, 4);
  const now = await Promise.all(names.map(async (name) => (await cluster(name)).spec));
  expect(now.map(({ eks: byArn, endpoint }) => byArn?.arn ?? endpoint?.server)).toEqual(
    names.map((name) => (name === moved ? server : specs.get(name)?.eks?.arn)),
  );
}, 180_000);

test("a ClusterDiscovery of the machine's organization finds its clusters, which keep their names and get more labels", async () => {
  const names = await addFleet(stack, 3);
  await stack.session.apply([
    {
      ...version,
      kind: "ClusterDiscovery",
      metadata: { name: "all" },
      spec: {
        eks: {
          organization: { account: "000000000000", ous: ["r-local"] },
          role: { name: "starling/discovery/scan" },
          regions: ["us-east-1", "eu-west-1"],
        },
      },
    },
  ]);
  const { status } = await waitFor("the first look", async () => {
    const found = await stack.session.call<DiscoveryObject>("GET", "/v1/clusterdiscoveries/all");
    return found.status.clusters === undefined ? undefined : found;
  });
  expect(status).toMatchObject({ accounts: 2, clusters: { found: 3, refused: 0 } });
  const found = await Promise.all(names.map(async (name) => (await cluster(name)).status.discovered));
  for (const discovered of found) {
    const account = discovered?.arn.split(":")[4];
    expect(discovered).toMatchObject({ by: "all", labels: { "starling.dev/account": account } });
  }
});
