/** `starling cluster add`: EKS clusters of several accounts, over HTTPS, with signed requests to EKS and STS. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { type ClusterConnection, type ClusterHost, startClusterHost } from "@starling/embedded-apiserver";
import { loadAll } from "js-yaml";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { eksAuthenticator } from "#local/aws/eks/eks-authenticator.ts";
import { clusterAdminPolicy, type EksCluster, EksRegister } from "#local/aws/eks/eks-register.ts";
import { type CallFailure, type EksStsCall, type EksStsServer, startEksAndSts } from "#local/aws/eks/eks-sts-server.ts";
import { IamRoles } from "#local/aws/iam/iam-roles.ts";
import { startCloudFormation } from "#local/aws/services/cloudformation-server.ts";
import { rbacManifests } from "#shared/fleet/access/cluster-rbac.ts";
import type { ClusterObject } from "#shared/fleet/api/objects.ts";
import { parseZoneNetworks } from "#shared/fleet/api/zone-object.ts";
import { type CliFixture, principal, startCliFixture } from "#test/integration/cli/cli-fixture.ts";

const [home, spoke, far] = ["111122223333", "444455556666", "777788889999"];
const applyRole = `arn:aws:iam::${home}:role/starling-control-Apply`;
const adminIn = (account: string) => `arn:aws:iam::${account}:role/admin`;
const arnOf = (name: string, account = spoke, region = "eu-west-1") =>
  `arn:aws:eks:${region}:${account}:cluster/${name}`;

let cli: CliFixture;
let roles: IamRoles;
let clusters: EksRegister;
let aws: EksStsServer;
let host: ClusterHost;
let failure: ((call: EksStsCall) => CallFailure | undefined) | undefined;
/** By the name of the embedded cluster. */
let arns: Map<string, string>;
beforeEach(async () => {
  cli = await startCliFixture({ zoneNetworks: parseZoneNetworks("fixed-eu=vpc+203.0.113.7") });
  [roles, clusters, arns, failure] = [new IamRoles(), new EksRegister(), new Map(), undefined];
  for (const account of [home, spoke]) roles.put({ arn: adminIn(account), trusts: [{ principalArn: principal }] });
  aws = await startEksAndSts({ principals: cli.principals, roles, clusters, fail: (call) => failure?.(call) });
  host = await startClusterHost({
    controllers: "off",
    authenticator: eksAuthenticator({
      clusters,
      stsEndpoint: aws.endpoint,
      now: () => new Date(),
      arnOf: (cluster) => arns.get(cluster),
    }),
  });
  for (const service of ["EKS", "STS"]) vi.stubEnv(`AWS_ENDPOINT_URL_${service}`, aws.endpoint);
  vi.stubEnv("AWS_MAX_ATTEMPTS", "1");
});
afterEach(async () => {
  vi.unstubAllEnvs();
  await Promise.all([host.stop(), aws.stop()]);
  await cli.stop();
});

function addCluster(arn: string, more: Partial<EksCluster> = {}): ClusterConnection {
  const [, , , region = "", accountId = "", resource = ""] = arn.split(":");
  const connection = host.addCluster(`c${arns.size}`);
  arns.set(connection.name, arn);
  clusters.put({
    arn,
    name: resource.replace("cluster/", ""),
    region,
    accountId,
    status: "ACTIVE",
    version: "1.36",
    endpoint: connection.server,
    caData: connection.caData,
    tags: { env: "prod" },
    createdAt: new Date("2026-01-01T00:00:00Z"),
    accessEntries: [
      { principalArn: adminIn(accountId), kubernetesGroups: [], username: "admin", policies: [clusterAdminPolicy] },
    ],
    ...more,
  });
  return connection;
}

/** A command whose words are parted by blanks. */
const add = (line: string) => cli.run(`cluster add ${line}`);
const full = `--apply-role ${applyRole}`;
const calls = () => aws.calls().map(({ service, operation, region }) => `${service} ${operation} ${region}`);
const registered = async () => {
  const { out } = await cli.run("get clusters -o json");
  const { items } = JSON.parse(out) as { readonly items: readonly ClusterObject[] };
  return items.map(({ metadata: { name, labels }, spec }) => ({ name, ...(labels ? { labels } : {}), spec }));
};
const entriesOf = (arn: string) =>
  clusters
    .get(arn)
    .accessEntries.filter(({ policies }) => policies.length === 0)
    .map(({ principalArn, kubernetesGroups }) => ({ principalArn, kubernetesGroups }));
const objectsOf = (name: string) =>
  host.objects(name).flatMap((object) => {
    const { kind, metadata } = object as { readonly kind: string; readonly metadata: { readonly name: string } };
    return metadata.name.startsWith("starling") ? [`${kind} ${metadata.name}`] : [];
  });

describe("by ARN", () => {
  test("the command writes Clusters, asks AWS nothing, and prints the remaining commands for each account", async () => {
    const ran = await add(`${arnOf("Prod_EU_1")} ${arnOf("own", home)} --label env=prod --label ring=broad ${full}`);
    expect(ran).toMatchObject({
      code: 0,
      err: expect.stringContaining("  next: starling cluster check prod-eu-1 own\n"),
    });
    const labels = { env: "prod", ring: "broad" };
    expect(await registered()).toEqual([
      { name: "own", labels, spec: { eks: { arn: arnOf("own", home) } } },
      {
        name: "prod-eu-1",
        labels,
        spec: { eks: { arn: arnOf("Prod_EU_1") }, access: { role: { name: "starling/clusters/prod-eu-1" } } },
      },
    ]);
    const trust = `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"sts:AssumeRole","Principal":{"AWS":"${applyRole}"},"Condition":{"StringEquals":{"sts:ExternalId":"starling.${home}.eu-west-1/prod-eu-1"}}}]}`;
    const policy = `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"eks:DescribeCluster","Resource":"${arnOf("Prod_EU_1")}"}]}`;
    expect(ran.out.split("\n")).toEqual([
      "cluster/prod-eu-1 created",
      "cluster/own created",
      `# prod-eu-1: run these commands (account ${spoke}, eu-west-1)`,
      `aws iam create-role --path /starling/clusters/ --role-name prod-eu-1 --assume-role-policy-document '${trust}'`,
      `aws iam put-role-policy --role-name prod-eu-1 --policy-name describe-cluster --policy-document '${policy}'`,
      `aws eks create-access-entry --region eu-west-1 --cluster-name Prod_EU_1 --principal-arn arn:aws:iam::${spoke}:role/starling/clusters/prod-eu-1 --kubernetes-groups starling`,
      "aws eks update-kubeconfig --region eu-west-1 --name Prod_EU_1",
      `starling cluster rbac --group starling | kubectl --context ${arnOf("Prod_EU_1")} apply --server-side -f -`,
      `# own: run these commands (account ${home}, eu-west-1)`,
      `aws eks create-access-entry --region eu-west-1 --cluster-name own --principal-arn ${applyRole} --kubernetes-groups starling`,
      "aws eks update-kubeconfig --region eu-west-1 --name own",
      `starling cluster rbac --group starling | kubectl --context ${arnOf("own", home)} apply --server-side -f -`,
      "",
    ]);
    expect(calls()).toEqual([]);
  });

  test("the command changes nothing when it is repeated, and keeps labels and values that exist", async () => {
    const { metadata, spec } = {
      metadata: { name: "a", labels: { ring: "canary" } },
      spec: { eks: { arn: arnOf("a") }, values: { x: "1" } },
    };
    cli.write("a.json", JSON.stringify({ apiVersion: "starling.dev/v1alpha1", kind: "Cluster", metadata, spec }));
    await cli.run("apply -f a.json");
    expect((await add(`${arnOf("a")} --label env=prod ${full}`)).out).toContain("cluster/a configured");
    const access = { role: { name: "starling/clusters/a" } };
    expect(await registered()).toEqual([
      { name: "a", labels: { env: "prod", ring: "canary" }, spec: { ...spec, access } },
    ]);
    expect((await add(`${arnOf("a")} --label env=prod ${full}`)).out).toContain("cluster/a unchanged");
  });

  test("the command keeps the zone and the address by which a Cluster is reached", async () => {
    const endpointOverride = { server: "https://a.eks.corp.example", tlsServerName: "kubernetes.default.svc" };
    const role = { name: "starling/clusters/a" };
    const spec = { eks: { arn: arnOf("a"), endpointOverride }, access: { role, zone: "home" } };
    const document = { apiVersion: "starling.dev/v1alpha1", kind: "Cluster", metadata: { name: "a" }, spec };
    cli.write("a.json", JSON.stringify(document));
    await cli.run("apply -f a.json");
    expect((await add(`${arnOf("a")} ${full}`)).out).toContain("cluster/a unchanged");
    expect((await add(`${arnOf("a")} --label env=prod ${full}`)).out).toContain("cluster/a configured");
    expect(await registered()).toEqual([{ name: "a", labels: { env: "prod" }, spec }]);
  });

  test("-o yaml prints the documents, --dry-run asks the API, and neither writes", async () => {
    const printed = await add(`${arnOf("a")} --role starling/clusters/shared -o yaml`);
    expect(loadAll(printed.out)).toEqual([
      {
        apiVersion: "starling.dev/v1alpha1",
        kind: "Cluster",
        metadata: { name: "a" },
        spec: { eks: { arn: arnOf("a") }, access: { role: { name: "starling/clusters/shared" } } },
      },
    ]);
    const tried = await add(`${arnOf("a")} --dry-run ${full}`);
    expect(tried.out).toContain("cluster/a created (dry run, server)\n# a: run these commands");
    expect(await registered()).toEqual([]);
  });

  test("the command without a role to trust says where to find the role, and prints a placeholder", async () => {
    const ran = await add(arnOf("a"));
    expect(ran.err).toContain("APPLY_ROLE stands for Starling's apply role; to fill it in: --apply-role ARN");
    expect(ran.out).toContain('"Principal":{"AWS":"APPLY_ROLE"}');
    expect((await add(`${arnOf("a")} --grant`)).code).toBe(2);
  });
});

describe("in a zone", () => {
  const stack = (outputs: Readonly<Record<string, string>>) => ({
    ...{ name: "starling-control", arn: `arn:aws:cloudformation:eu-west-1:${home}:stack/starling-control/1` },
    ...{ status: "UPDATE_COMPLETE", outputs },
  });
  /** Writes the name of the stack into the context, as `context add --stack` does. */
  const knowStack = () => {
    const path = join(cli.folder, ".config", "config.json");
    const config = JSON.parse(readFileSync(path, "utf8")) as { contexts: { here: object } };
    config.contexts.here = { ...config.contexts.here, stack: "starling-control" };
    cli.write(join(".config", "config.json"), JSON.stringify(config));
  };
  const zoneRole = `arn:aws:iam::${home}:role/starling-control-Fixed`;

  test("--zone writes the zone, and the commands let in the role of the zone from the context's stack", async () => {
    const deployed = stack({ ApplyRole: applyRole, ZoneFixedEuRole: zoneRole });
    const cloudFormation = await startCloudFormation({
      principals: cli.principals,
      stacks: () => [deployed],
      allows: () => true,
    });
    try {
      vi.stubEnv("AWS_ENDPOINT_URL_CLOUDFORMATION", cloudFormation.endpoint);
      const keys = "[default]\naws_access_key_id = AKTEST\naws_secret_access_key = not-a-secret\n";
      vi.stubEnv("AWS_SHARED_CREDENTIALS_FILE", cli.write("credentials", keys));
      knowStack();
      const ran = await add(`${arnOf("a")} --zone fixed-eu`);
      expect(ran).toMatchObject({ code: 0, out: expect.stringContaining(`"Principal":{"AWS":"${zoneRole}"}`) });
      expect(ran.out).not.toContain(applyRole);
      expect((await registered())[0]?.spec.access).toEqual({ role: { name: "starling/clusters/a" }, zone: "fixed-eu" });
      // Repeated without the flag, the Cluster stays in its zone, and the others are in home.
      const again = await add(`${arnOf("a")} ${arnOf("own", home)}`);
      expect(again.out).toContain("cluster/a unchanged");
      expect(again.out).toContain(`"Principal":{"AWS":"${zoneRole}"}`);
      expect(again.out).toContain(`--cluster-name own --principal-arn ${applyRole}`);
    } finally {
      await cloudFormation.stop();
    }
  });

  test("without a known stack, the placeholder and its note name the output of the zone", async () => {
    const ran = await add(`${arnOf("a")} --zone fixed-eu`);
    expect(ran.out).toContain('"Principal":{"AWS":"ROLE_OF_ZONE_FIXED_EU"}');
    expect(ran.err).toContain(
      "ROLE_OF_ZONE_FIXED_EU stands for the role of zone fixed-eu; to fill it in: --apply-role ARN, output ZoneFixedEuRole of the control stack",
    );
    expect(await add(`${arnOf("a")} --zone fixed-eu --grant`)).toMatchObject({
      code: 2,
      err: expect.stringContaining("the role of zone fixed-eu is not known"),
    });
  });

  test.each([
    [
      "fixde-eu",
      ' --zone is "fixde-eu", and the installation has only the zones home, fixed-eu (did you mean fixed-eu?)',
    ],
    ["spoke", '--zone is "spoke", and the installation has only the zones home, fixed-eu'],
  ])("the zone %s is refused, and nothing is written", async (zone, message) => {
    const ran = await add(`${arnOf("a")} --zone ${zone} ${full}`);
    expect(ran).toMatchObject({ code: 2, out: "", err: expect.stringContaining(message.trim()) });
    expect(ran.err).toContain("starling get zones");
    expect(await registered()).toEqual([]);
  });
});

describe("names", () => {
  test("two clusters whose names collide are both refused, and nothing is written", async () => {
    const ran = await add(`${arnOf("a")} ${arnOf("a", far)} ${arnOf("b")} ${full}`);
    expect(ran).toMatchObject({ code: 2, out: "" });
    expect(ran.err).toContain(`${arnOf("a")} and ${arnOf("a", far)} would both have the name a`);
    expect(ran.err).toContain("1 of 3 clusters cannot be added; nothing was written");
    expect(ran.err).toContain(
      "next: starling cluster add ... --name '{{ eks.name }}-{{ eks.accountId }}-{{ eks.region }}'",
    );
    expect(await registered()).toEqual([]);
    const apart = ["cluster", "add", arnOf("a"), arnOf("a", far), "--name", "{{ eks.name }}-{{ eks.accountId }}"];
    expect((await cli.run([...apart, "--apply-role", applyRole])).out).toMatch(
      /^cluster\/a-444455556666 created\ncluster\/a-777788889999 created\n/,
    );
  });

  test("names of other clusters, and clusters with other names, are left alone", async () => {
    await add(`${arnOf("a")} ${full}`);
    const taken = await add(`${arnOf("a", far)} ${full}`);
    expect(taken.err).toContain(`${arnOf("a", far)} would have the name a, which ${arnOf("a")} already has`);
    const twice = await cli.run([
      "cluster",
      "add",
      arnOf("a"),
      "--name",
      "x-{{ eks.name }}",
      "--apply-role",
      applyRole,
    ]);
    expect(twice.err).toContain(`${arnOf("a")} is already registered as Cluster a; a second name is refused: x-a`);
    expect(twice.err).toContain("next: starling get cluster/a -o yaml > FILE\n");
    expect((await registered()).map(({ name }) => name)).toEqual(["a"]);
  });

  test.each([
    ["arn:aws:eks:eu-west-1:1:cluster/a", '"arn:aws:eks:eu-west-1:1:cluster/a" is not the ARN of an EKS cluster'],
    [`${arnOf("a")} --label env`, '--label is "env"; expected KEY=VALUE'],
    [`${arnOf("a")} --label env=a/b`, "metadata.labels"],
    [`${arnOf("a")} --name same`, '--name "same" is the same for every cluster'],
    [`${arnOf("x".repeat(64))}`, "has 64 characters; a name has at most 63: give another --name"],
    [`${arnOf("a")} --role a/${"r".repeat(65)} ${full}`, "has 65 characters; at most 64 are allowed; set --role"],
    [`${arnOf("a")} --apply-role admin`, '--apply-role is "admin"; expected the ARN of a role'],
    [`${arnOf("a")} --group system:masters`, '--group is "system:masters"; expected a name of a-z, 0-9, . and -'],
    ["", "neither ARNs nor -l are given"],
    [`${arnOf("a")} -l env=prod`, "both ARNs and -l are given; expected one of them"],
    ["-l env --regions eu-west-1", '-l is "env"; expected tags'],
    ["-l env=prod", "no region is given"],
    ["-l env=prod --regions europe", "--regions: this version knows no AWS region europe"],
    ["-l env=prod --regions us-esat-1", "this version knows no AWS region us-esat-1 (did you mean us-east-1?)"],
    ["arn:aws:eks:eu-wst-1:111122223333:cluster/a", "(did you mean eu-west-1?)"],
    ["-l env=prod --regions eu-west-1 --account 12", '--account has "12"; expected ids of 12 digits'],
    [`-l env=prod --regions eu-west-1 --account ${home},${spoke}`, "--assume-role NAME"],
  ])("the command refuses %s, and writes nothing", async (line, message) => {
    const ran = await cli.run(["cluster", "add", ...line.split(" ").filter((word) => word !== "")]);
    expect(ran).toMatchObject({ code: 2, out: "" });
    expect(ran.err).toContain(message);
    expect(await registered()).toEqual([]);
  });
});

describe("by tags", () => {
  const search = `-l env=prod --regions eu-west-1,us-east-1 --account ${home},${spoke} --assume-role admin ${full}`;

  test("the command finds the clusters with these tags in all accounts and regions", async () => {
    for (let i = 0; i < 120; i += 1) {
      clusters.put({ ...template(`n${String(i).padStart(3, "0")}`), tags: { env: i < 3 ? "prod" : "test" } });
    }
    addCluster(arnOf("a", home, "us-east-1"));
    addCluster(arnOf("b", home, "us-east-1"), { tags: { env: "prod-2" } });
    addCluster(arnOf("c", far));
    expect((await add(search)).out).toMatch(
      /^cluster\/n000 created\ncluster\/n001 created\ncluster\/n002 created\ncluster\/a created\n#/,
    );
    expect(calls().filter((call) => call.startsWith("sts"))).toHaveLength(2);
  });

  test("the command records the Kubernetes version, and records the new one after an upgrade", async () => {
    addCluster(arnOf("a"), { version: "1.35" });
    await add(search);
    expect((await registered()).map(({ name, spec }) => [name, spec.kubeVersion])).toEqual([["a", "1.35"]]);
    const { out } = await cli.run("get clusters -o json");
    const { items } = JSON.parse(out) as { readonly items: readonly ClusterObject[] };
    expect(items[0]?.status.labels).toEqual({ "starling.dev/version": "1.35" });
    clusters.put({ ...clusters.get(arnOf("a")), version: "1.36" });
    await add(search);
    // A cluster that is given by its ARN is not asked: its version stays.
    await add(`${arnOf("a")} ${full}`);
    expect((await registered()).map(({ spec }) => spec.kubeVersion)).toEqual(["1.36"]);
  });

  test("the command writes nothing if an account or a region does not answer, because half a list is not a list", async () => {
    addCluster(arnOf("a"));
    failure = ({ operation, region }) =>
      operation === "ListClusters" && region === "us-east-1"
        ? { status: 403, code: "AccessDeniedException", message: "no" }
        : undefined;
    const ran = await add(search);
    expect(ran).toMatchObject({ code: 3, out: "" });
    expect(ran.err).toContain(`account ${home}, us-east-1: AWS does not allow it (no)`);
    expect(ran.err).toContain("next: exclude them with --account and --regions");
    const refused = await add(search.replace(spoke, far));
    expect(refused.err).toContain(
      `cannot assume ${adminIn(far)}: ${principal} is not allowed to sts:AssumeRole (User: ${principal} is not authorized`,
    );
    expect(await registered()).toEqual([]);
  });

  test("the command says when no cluster has the tags", async () => {
    expect(await add(search)).toMatchObject({
      code: 1,
      err: expect.stringContaining("no cluster has the tags env=prod"),
    });
  });
});

function template(name: string): EksCluster {
  return {
    ...{ arn: arnOf(name), name, region: "eu-west-1", accountId: spoke, status: "ACTIVE", version: "1.36" },
    ...{ endpoint: "https://127.0.0.1:9", caData: "QQ==", createdAt: new Date(), accessEntries: [], tags: {} },
  };
}

describe("with --grant", () => {
  const rbac = rbacManifests({ group: "starling" }).map(({ kind, metadata }) => `${kind} ${metadata.name}`);
  const role = (name: string) => `arn:aws:iam::${spoke}:role/starling/clusters/${name}`;

  test("the command makes the access entry and the RBAC objects, and changes nothing the second time", async () => {
    const connection = addCluster(arnOf("a"));
    const line = `${arnOf("a")} --assume-role admin --grant ${full}`;
    const ran = await add(line);
    expect(ran.out).toMatch(
      /^cluster\/a created\ncluster\/a access entry created, Namespace starling-system created, ClusterRole starling created, .*ClusterRoleBinding starling-fleet created\n# a: create the role, if it does not exist yet \(account 444455556666, eu-west-1\)\naws iam create-role /,
    );
    expect(ran.code).toBe(0);
    expect(entriesOf(arnOf("a"))).toEqual([{ principalArn: role("a"), kubernetesGroups: ["starling"] }]);
    expect(objectsOf(connection.name).sort()).toEqual([...rbac].sort());
    expect((await add(line)).out).toMatch(/^cluster\/a unchanged\ncluster\/a access unchanged\n/);
  });

  test("the command adds the group to an existing access entry", async () => {
    addCluster(arnOf("a"));
    clusters.addAccessEntry(arnOf("a"), {
      principalArn: role("a"),
      kubernetesGroups: ["viewers"],
      username: "s",
      policies: [],
    });
    expect((await add(`${arnOf("a")} --assume-role admin --grant ${full}`)).out).toContain(
      "group starling added to the access entry",
    );
    expect(entriesOf(arnOf("a"))).toEqual([{ principalArn: role("a"), kubernetesGroups: ["viewers", "starling"] }]);
  });

  test("the command continues after a cluster that refuses, names it, and completes it when repeated", async () => {
    addCluster(arnOf("a"), { authenticationMode: "CONFIG_MAP" });
    addCluster(arnOf("b"));
    // The caller has no access to this cluster: the entry is made, and then the cluster answers 401.
    addCluster(arnOf("c"), { accessEntries: [] });
    const line = `${["a", "b", "c"].map((name) => arnOf(name)).join(" ")} --assume-role admin --grant ${full}`;
    const ran = await add(line);
    expect(ran.code).toBe(1);
    expect(ran.out).toMatch(/cluster\/a access not granted: The cluster's authentication mode must be set to/);
    expect(ran.out).toMatch(/cluster\/b access entry created, /);
    expect(ran.out).toMatch(/cluster\/c access not granted: /);
    expect(ran.err).toContain("access to 2 of 3 clusters was not granted");
    expect(entriesOf(arnOf("c"))).toEqual([{ principalArn: role("c"), kubernetesGroups: ["starling"] }]);
    for (const [name, more] of [
      ["a", { authenticationMode: "API" }],
      ["c", {}],
    ] as const) {
      const { accessEntries } = clusters.get(arnOf("b"));
      const own = clusters.get(arnOf(name));
      const admin = accessEntries.filter(
        ({ policies }) =>
          policies.length > 0 && !own.accessEntries.some(({ principalArn }) => principalArn === adminIn(spoke)),
      );
      clusters.put({ ...own, ...more, accessEntries: [...own.accessEntries, ...admin] });
    }
    const again = await add(line);
    expect(again).toMatchObject({ code: 0, out: expect.stringContaining("cluster/b access unchanged") });
    expect(again.out).toMatch(/cluster\/a access entry created, /);
    expect(again.out).toMatch(/cluster\/c Namespace starling-system created, /);
  });

  test("the command refuses to enter another cluster of the same name in the caller's own account", async () => {
    addCluster(arnOf("a", "000000000000"));
    const ran = await add(`${arnOf("a")} --grant ${full}`);
    expect(ran.out).toContain(`these credentials belong to ${arnOf("a", "000000000000")}, not to ${arnOf("a")}`);
    expect(entriesOf(arnOf("a", "000000000000"))).toEqual([]);
  });
});

test("cluster rbac prints the objects of examples/cluster-access, with the group", async () => {
  const { out } = await cli.run("cluster rbac --group starling-dev");
  expect(loadAll(out)).toEqual(JSON.parse(JSON.stringify(rbacManifests({ group: "starling-dev" }))));
});
