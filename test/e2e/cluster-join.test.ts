/** A cluster of another account joins by commands alone: cluster add, the commands that it prints, check and grant. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { ClusterConnection } from "@starling/embedded-apiserver";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { eksAuthenticator } from "#local/aws/eks/eks-authenticator.ts";
import { clusterAdminPolicy } from "#local/aws/eks/eks-register.ts";
import { pacedClock } from "#local/base/paced-clock.ts";
import { startKubeApiServer } from "#local/clusters/kube-apiserver.ts";
import type { KubeAssets } from "#local/clusters/kube-assets.ts";
import { type Stack, startStack } from "#local/machine/stack.ts";
import type { SyncGroupObject } from "#shared/fleet/api/objects.ts";
import { kubeAssets } from "#test/contract/targets.ts";
import { configMap, namespaceManifest } from "#test/support/e2e-documents.ts";
import { byHand } from "#test/support/kube-call.ts";
import { startTokenWebhook } from "#test/support/token-webhook.ts";
import { openWorldCli, type WorldCli } from "#test/support/world-cli.ts";

const account = "111111111111";
/** The address and account under which this machine's authenticator knows the embedded cluster of this name. */
const arn = `arn:aws:eks:eu-west-1:${account}:cluster/team-a`;
const admin = `arn:aws:iam::${account}:role/admin`;
const version = { apiVersion: "starling.dev/v1alpha1" };

/** An API server that checks tokens as EKS does, and admits the roles of its access entries. */
interface TeamServer {
  /** The credentials of the cluster's creator. */
  readonly connection: ClusterConnection;
  stop(): Promise<void>;
}

async function startEmbedded({ clusters }: Stack): Promise<TeamServer> {
  return { connection: clusters.addCluster("team-a"), stop: async () => undefined };
}

async function startReal(assets: KubeAssets, { machine }: Stack): Promise<TeamServer> {
  const authenticator = eksAuthenticator({ ...machine.eks, stsEndpoint: machine.eks.endpoint, arnOf: () => arn });
  const webhook = await startTokenWebhook(authenticator, "team-a");
  const started = await startKubeApiServer({ assets, tokenWebhook: webhook.url });
  return {
    connection: { name: "team-a", ...started },
    async stop() {
      await started.stop();
      await webhook.stop();
    },
  };
}

const servers: readonly (readonly [string, (stack: Stack) => Promise<TeamServer>])[] = [
  ["the embedded API server", startEmbedded],
  ...[kubeAssets].flatMap((assets) =>
    assets === undefined ? [] : [["kube-apiserver", (stack: Stack) => startReal(assets, stack)] as const],
  ),
];

/** The server authorizes by its own copy of the objects, which may be late. */
const patience = { timeout: 60_000, interval: 500 };

let folder: string;
let stack: Stack;
let cli: WorldCli;
const stops: (() => Promise<void>)[] = [];
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "starling-join-"));
  stack = await startStack({ repositories: folder, clock: pacedClock(10), tickEveryMs: 250 });
  cli = openWorldCli(stack);
  for (const service of ["EKS", "STS"]) vi.stubEnv(`AWS_ENDPOINT_URL_${service}`, stack.machine.eks.endpoint);
});
afterEach(async () => {
  vi.unstubAllEnvs();
  cli.close();
  for (const stop of stops.splice(0)) await stop();
  await stack.stop();
  await rm(folder, { recursive: true, force: true });
});

/** Makes the role as the printed `aws iam create-role` does, with the printed trust policy. */
function createRole(printed: string): void {
  const [, path = "", name = "", policy = "{}"] =
    /^aws iam create-role --path (\S+) --role-name (\S+) --assume-role-policy-document '(.*)'$/m.exec(printed) ?? [];
  const { Statement } = JSON.parse(policy) as {
    readonly Statement: readonly {
      readonly Principal: { readonly AWS: string };
      readonly Condition: { readonly StringEquals: { readonly "sts:ExternalId": string } };
    }[];
  };
  const trusts = Statement.map(({ Principal, Condition }) => ({
    principalArn: Principal.AWS,
    externalId: Condition.StringEquals["sts:ExternalId"],
  }));
  stack.machine.eks.roles.put({ arn: `arn:aws:iam::${account}:role${path}${name}`, trusts });
}

async function checked(): Promise<string> {
  const { code, out } = await cli.run("cluster check team-a");
  const [, row = ""] = out.split("\n");
  return `${code} ${row.split(/\s+/).slice(1, 3).join(" ")}`;
}

test.each(servers)(
  "a cluster that is added, granted access by the printed commands and checked comes into sync, on %s",
  async (_, start) => {
    const { eks } = stack.machine;
    const team = await start(stack);
    stops.push(() => team.stop());
    const { server, caData } = team.connection;
    eks.roles.put({ arn: admin, trusts: [{ principalArn: "arn:aws:iam::000000000000:user/local" }] });
    eks.clusters.put({
      ...{ arn, name: "team-a", region: "eu-west-1", accountId: account, status: "ACTIVE", version: "1.36" },
      ...{ endpoint: server, caData, tags: { env: "prod" }, createdAt: eks.now() },
      accessEntries: [{ principalArn: admin, username: "admin", kubernetesGroups: [], policies: [clusterAdminPolicy] }],
    });
    const add = `cluster add -l env=prod --account ${account} --regions eu-west-1 --assume-role admin --label env=prod --apply-role ${eks.callerArn}`;
    const { code, out } = await cli.run(add);
    expect(code, out).toBe(0);
    expect(await checked()).toBe("1 role broken");
    createRole(out);
    expect(await checked()).toBe("1 accessEntry broken");
    expect((await cli.run(`${add} --grant`)).code).toBe(0);
    expect(await checked()).toBe("0 all ok");

    await stack.git.createRepository("shop/web", {
      "deploy/settings.yaml": namespaceManifest + configMap("settings", { color: "blue" }),
    });
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
          clusters: { selector: { matchLabels: { env: "prod" } } },
          templates: [{ name: "app", source: "web", path: "deploy" }],
        },
      },
    ]);
    const ready = async () =>
      (await stack.session.call<SyncGroupObject>("GET", "/v1/namespaces/shop/syncgroups/web")).status.clusters?.ready;
    for (const until = performance.now() + 240_000; (await ready()) !== 1; await sleep(100)) {
      if (performance.now() > until) throw new Error(JSON.stringify(await stack.session.call("GET", "/v1/syncs")));
    }
    const made = await byHand(team.connection, { method: "GET", path: "/api/v1/namespaces/shop/configmaps/settings" });
    expect(made.object).toMatchObject({ data: { color: "blue" } });

    // Starling used only the access that was granted.
    const bindings = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";
    for (const [binding, lacking] of [
      ["starling-fleet", "manifests of a fleet may not get/create/patch/delete configmaps"],
      ["starling", "Starling may not "],
    ]) {
      await byHand(team.connection, { method: "DELETE", path: `${bindings}/${binding}` });
      const says = async () => (await cli.run("cluster check team-a")).out;
      await vi.waitFor(async () => expect(await says()).toContain(lacking), patience);
    }
  },
  700_000,
);
