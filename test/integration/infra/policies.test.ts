/**
 * The policies of the stacks allow what the functions need, and nothing else. The test records every call on the whole
 * path from a document to a fleet and back, and compares it with the synthesized role of its function.
 */

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { InvokeCommand } from "@aws-sdk/client-lambda";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createCallRecorder } from "#local/aws/proxy/call-recorder.ts";
import { sendGithubPush } from "#local/git/github-push.ts";
import { ApiAnswer, type ApiSession, openApiSession } from "#local/machine/api-session.ts";
import { newAccessKey } from "#local/machine/machine.ts";
import { addFleet, type Stack, startStack } from "#local/machine/stack.ts";
import { DynamoTable } from "#shared/adapters/aws/dynamo-table.ts";
import type { LinkedArtifact } from "#shared/fleet/api/artifact-item.ts";
import type { ApiList, ReceiverObject, SourceObject, SyncGroupObject, SyncObject } from "#shared/fleet/api/objects.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import { commitIn } from "#shared/source/git-reference.ts";
import { mayDo, refusedCalls, requestsOf, statementsOf, unusedGrants } from "#test/support/policy-guard.ts";
import { synthesizeTemplates } from "#test/synth/synthesized.ts";

/** The other account of this machine's clusters (local/machine/register-eks-clusters.ts). */
const { resources } = await synthesizeTemplates({ clusterAccounts: "111111111111" });
const recorder = createCallRecorder();
let folder = "";
let stack: Stack;
let api: ApiSession;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "starling-policies-"));
  stack = await startStack({
    repositories: folder,
    tickEveryMs: 500,
    sandboxes: (name, wire) => wire({ aws: (clients) => recorder.watch(name, clients) }),
  });
  api = stack.session;
});

afterAll(async () => {
  await stack.stop();
  await rm(folder, { recursive: true, force: true });
});

const configMap = (value: string) => ({
  "all/settings.yaml": `apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings, namespace: default}\ndata: {value: "${value}"}\n`,
  "all/kustomization.yaml": "resources: [settings.yaml]\n",
});

const table = "<starling-state-table-arn>";
const secrets = "arn:<AWS::Partition>:secretsmanager:<AWS::Region>:<AWS::AccountId>:secret";
/** Grants that this test does not use, with the reason. Any other unused grant is one too many. */
const mayGoUnused = new Set([
  // No cluster of this test is slow.
  "apply sqs:SendMessage <WiringToApplySlowQueue>",
  // No host of the test states a limit.
  "resolve LIMIT#*",
  // The api reads it only for a discovered Cluster.
  "api FOUND",
  // The test has no Sync that a user wrote.
  ...["api", "apply", "dashboard", "discover", "rollout", "tick"].map((name) => `${name} NS#*#Sync`),
  // The api reads it only for the users of a Source, or when a Source in use is deleted.
  "api USES#*",
  // No target of this test is unreachable in a zone.
  ...["api", "dashboard"].map((name) => `${name} ZONE#*`),
  // They read it only for a Sync that another rollout than its last one will change.
  ...["api", "dashboard"].map((name) => `${name} REND#*`),
  // The test pushes no version.
  ...["GetObject", "PutObject"].map((action) => `api s3:${action} <starling-state-blobs-arn>/uploads/*`),
  "resolve s3:GetObject <starling-state-blobs-arn>/uploads/*",
  // Clients read these objects with presigned URLs from the api.
  ...["artifacts", "renderings"].map((name) => `api s3:GetObject <starling-state-blobs-arn>/${name}/*`),
  // A role may read its partitions with all three actions or with none.
  ...["apply", "render", "report", "resolve", "rollout", "tick", "webhook"].flatMap((name) =>
    ["GetItem", "Query", "BatchGetItem"].map((action) => `${name} dynamodb:${action} ${table}`),
  ),
  // Only a transaction that checks a row without changing it needs this.
  `apply dynamodb:ConditionCheckItem ${table}`,
  // Only drift, clusters with a token, and work for a second invocation need these.
  "apply s3:GetObject <starling-state-blobs-arn>/inventories/*",
  `apply secretsmanager:GetSecretValue ${secrets}:starling/clusters/*`,
  // S3 itself checks this, when a key does not exist.
  ...["api", "apply", "dashboard", "render", "resolve", "rollout"].map(
    (name) => `${name} s3:ListBucket <starling-state-blobs-arn>`,
  ),
  // Only objects that were stored more than a day ago need these; a test below shows that they suffice.
  "apply s3:PutObject <starling-state-blobs-arn>/renderings/*",
  ...["render", "rollout"].map((name) => `${name} s3:PutObject <starling-state-blobs-arn>/artifacts/*`),
  // Only objects that are lost from the bucket need these.
  "apply sqs:SendMessage <WiringToRenderQueue>",
  "render s3:GetObject <starling-state-blobs-arn>/renderings/*",
  "render sqs:SendMessage <WiringToResolveQueue>",
  "apply sqs:SendMessage <WiringToApplyQueue>",
  "resolve sqs:SendMessage <WiringToResolveQueue>",
  "rollout sqs:SendMessage <WiringToRolloutQueue>",
  // Starling reaches clusters of its own account as itself, unless they name a role.
  "apply sts:AssumeRole arn:<AWS::Partition>:iam::<AWS::AccountId>:role/starling/clusters/*",
  // The scanned account is another one.
  "discover sts:AssumeRole arn:<AWS::Partition>:iam::<AWS::AccountId>:role/starling/discovery/*",
  // Lambda itself sends failed ticks there, as the role of the function.
  "tick sqs:SendMessage <WiringEveryMinuteDeadLetters>",
  // Only lost entries in these partitions need these, and this test has few or none.
  ...["CL#*", "DISCOVERIES", "NS#*#Source", "NS#*#SyncGroup", "REND#*", "ROLL#*"].map((key) => `tick ${key}`),
  `tick dynamodb:UpdateItem ${table}`,
  ...["Apply", "Discover", "Render", "Resolve", "Rollout"].map(
    (queue) => `tick sqs:SendMessage <WiringTo${queue}Queue>`,
  ),
]);

const ns = "/v1/namespaces/shop";

/** A person whose role has one of the policies for people. */
function personWith(policy: "Viewer" | "Reader" | "Operator" | "Administrator"): ApiSession {
  const { machine } = stack;
  const credentials = newAccessKey();
  const principalArn = `arn:aws:iam::000000000000:user/${policy}`;
  machine.principals.add({ ...credentials, principalArn, invokes: requestsOf(resources, policy) });
  return openApiSession({ ...machine.api, credentials });
}

/** Requests the dashboard like CloudWatch. */
async function widget(path: string): Promise<string> {
  const asked = { FunctionName: "dashboard", Payload: JSON.stringify({ path }) };
  const answer = await stack.machine.aws.lambda.send(new InvokeCommand(asked));
  return JSON.parse(answer.Payload?.transformToString() ?? "");
}

const refused = () => refusedCalls(recorder.calls(), resources);

async function until(what: string, holds: () => boolean | Promise<boolean>): Promise<void> {
  const deadline = Date.now() + 45_000;
  while (!(await holds())) {
    if (Date.now() > deadline) throw new Error(`${what} did not happen; refused so far: ${refused().join("; ")}`);
    await sleep(100);
  }
}

function clustersWith(value: string): number {
  return stack.clusters
    .connections()
    .filter(({ name }) => JSON.stringify(stack.clusters.objects(name)).includes(`"value":"${value}"`)).length;
}

/** Marks the cluster as gone for two hours, and adds a similar cluster that was forgotten long ago. */
async function markAsGone(arn: string): Promise<void> {
  const { aws, environment } = stack.machine;
  const table = new DynamoTable(aws.dynamo, environment.table);
  const row = await table.get(keys.found(arn));
  if (row === undefined) throw new Error(`${arn} was not found`);
  const ago = (hours: number) => new Date(Date.now() - hours * 3_600_000).toISOString();
  const gone = { ...row, goneSince: ago(2), describedAt: ago(0), version: row.version + 1 };
  const forgotten = { ...row, ...keys.found(`${arn}-before`), arn: `${arn}-before`, forgotten: { at: ago(48) } };
  await table.write([{ put: gone, when: { version: row.version } }, { put: forgotten }]);
}

const version = { apiVersion: "starling.dev/v1alpha1" };
const aGroup = {
  ...version,
  kind: "SyncGroup",
  metadata: { namespace: "shop", name: "mine" },
  spec: { clusters: { all: true }, templates: [{ name: "app", source: "app", path: "all" }] },
};
const reason = { reason: "a test" };

describe("the policies for people", () => {
  type Request = readonly ["GET" | "POST" | "DELETE", string, unknown?];
  const view: readonly Request[] = [
    ["GET", "/v1/version"],
    ["GET", "/v1/whoami"],
    ["GET", "/v1/clusters"],
    ["GET", "/v1/freezes"],
    ["GET", "/v1/zones"],
    ["GET", "/v1/syncgroups?limit=10"],
    ["GET", "/v1/sources/shop/none/artifacts"],
  ];
  /** The content of git, which may contain secrets. */
  const read: readonly Request[] = [
    ["POST", `${ns}/syncgroups/none/contents`, { renderings: [] }],
    ["POST", `${ns}/sources/none/contents`, { artifacts: [] }],
    ["GET", "/v1/sources/shop/none/artifacts/main"],
  ];
  /** The changes that an operator may make. The function answers 404 for an object that does not exist. */
  const operate: readonly Request[] = [
    ["POST", "/v1/freezes/halt", reason],
    ["DELETE", "/v1/freezes/halt"],
    ...["suspend", "resume", "reconcile", "refresh"].map(
      (verb): Request => ["POST", `${ns}/syncgroups/none/${verb}`, reason],
    ),
    ["POST", "/v1/clusters/none/accept", { ...reason, uid: "00000000-0000-0000-0000-000000000000" }],
    ["POST", "/v1/clusters/none/recover", reason],
    ["POST", `${ns}/receivers/none/trigger`, reason],
    ["POST", "/v1/clusters/none/cordon", reason],
    ["POST", "/v1/clusters/none/uncordon", reason],
  ];
  const administer: readonly Request[] = [
    ["POST", "/v1/apply", { documents: [aGroup], dryRun: true }],
    ["DELETE", `${ns}/syncgroups/none?confirm=true`],
    ["DELETE", "/v1/clusters/none?confirm=true"],
    ["POST", `${ns}/syncs/none/prune`, { ...reason, uids: [] }],
  ];

  /** The gateway's answer, or that it let the request through to the function. */
  async function answerTo(person: ApiSession, [method, path, body]: Request): Promise<string> {
    try {
      await person.call(method, path, body);
      return "let in";
    } catch (error) {
      if (!(error instanceof ApiAnswer)) throw error;
      return error.status === 403 && error.message.endsWith('{"message":"Forbidden"}') ? "refused" : "let in";
    }
  }

  test.each([
    ["Viewer", { view: "let in", read: "refused", operate: "refused", administer: "refused" }],
    ["Reader", { view: "let in", read: "let in", operate: "refused", administer: "refused" }],
    ["Operator", { view: "let in", read: "refused", operate: "let in", administer: "refused" }],
    ["Administrator", { view: "let in", read: "let in", operate: "let in", administer: "let in" }],
  ] as const)("the requests of a %s have these answers: %j", async (policy, expected) => {
    const person = personWith(policy);
    for (const [requests, answer] of [
      [view, expected.view],
      [read, expected.read],
      [operate, expected.operate],
      [administer, expected.administer],
    ] as const) {
      for (const request of requests) expect([request, await answerTo(person, request)]).toEqual([request, answer]);
    }
  });
});

describe("the roles of the functions", () => {
  test("the roles allow all calls from documents to a fleet, and from a push to the deletion of everything", async () => {
    await stack.git.createRepository("shop/app", configMap("one"));
    await stack.git.createRepository("shop/notes", { "notes.md": "of another Source" });
    await addFleet(stack, 2);
    await api.apply([
      {
        ...version,
        kind: "Source",
        metadata: { namespace: "shop", name: "app" },
        spec: {
          git: stack.gitSpec(stack.git.url("shop/app")),
          interval: "10s",
          include: [{ source: "notes" }],
        },
      },
      {
        ...version,
        kind: "Source",
        metadata: { namespace: "shop", name: "notes" },
        spec: { git: stack.gitSpec(stack.git.url("shop/notes")) },
      },
      {
        ...version,
        kind: "SyncGroup",
        metadata: { namespace: "shop", name: "web" },
        spec: {
          clusters: { all: true },
          templates: [{ name: "app", source: "app", path: "all" }],
          rollout: { maxConcurrent: 1 },
        },
      },
    ]);
    await until("the first revision", () => clustersWith("one") === 2);

    await stack.git.commitFiles("shop/app", configMap("two"), { message: "two" });
    await until("the second revision", () => clustersWith("two") === 2);

    const [assigned] = (await api.call<ApiList<SyncObject>>("GET", "/v1/syncs")).items;
    const source = await api.call<SourceObject>("GET", `${ns}/sources/app`);
    const reader = personWith("Reader");
    type Links = Readonly<Record<string, string>>;
    const rendering = {
      digest: assigned?.status.desired?.renderDigest,
      cluster: assigned?.spec.cluster,
      sync: "web.app",
    };
    const { renderings } = await reader.call<{ readonly renderings: Links }>("POST", `${ns}/syncgroups/web/contents`, {
      renderings: [rendering],
    });
    const { artifacts } = await reader.call<{ readonly artifacts: Links }>("POST", `${ns}/sources/app/contents`, {
      artifacts: [source.status.artifact?.digest],
    });
    const asOf = encodeURIComponent(new Date().toISOString());
    const present = await reader.call<LinkedArtifact>("GET", `/v1/sources/shop/app/artifacts/${asOf}`);
    expect(present.digest).toBe(source.status.artifact?.digest);
    const urls = [...[renderings, artifacts].flatMap((links) => Object.values(links)), present.url];
    expect(urls).toHaveLength(3);
    for (const url of urls) expect((await fetch(url)).status).toBe(200);

    const bad = {
      "all/settings.yaml": configMap("two")["all/settings.yaml"].replace("name: settings", "name: NoName"),
    };
    await stack.git.commitFiles("shop/app", bad, { message: "wrong" });
    const state = async () => (await api.call<SyncGroupObject>("GET", `${ns}/syncgroups/web`)).status.state;
    await until("the halt", async () => (await state()) === "Halted");
    const { items } = await api.call<ApiList<SyncObject>>("GET", "/v1/syncs");
    expect(items.map(({ status }) => status.state).sort()).toEqual(["Failed", "OutOfSync"]);
    await stack.git.commitFiles("shop/app", configMap("two"), { message: "right" });
    await until("the end of it", async () => (await state()) === "Complete");

    // A commit that the Source had.
    const { revision = "" } = source.status.artifact ?? {};
    const pinned = { ...stack.gitSpec(stack.git.url("shop/app")), ref: { commit: commitIn(revision) } };
    const spec = { git: pinned, interval: "10s", include: [{ source: "notes" }] };
    await api.apply([{ ...version, kind: "Source", metadata: { namespace: "shop", name: "app" }, spec }]);
    const followed = async () => (await api.call<SourceObject>("GET", `${ns}/sources/app`)).status.artifact?.revision;
    await until("the pinned commit", async () => (await followed()) === `sha1:${commitIn(revision)}`);

    // A group and a Sync that stay at that commit, whatever the Source follows.
    const stays = { source: "app", path: "all", revision: commitIn(revision) };
    await api.apply([
      {
        ...version,
        kind: "SyncGroup",
        metadata: { namespace: "shop", name: "web" },
        spec: { clusters: { all: true }, templates: [{ name: "app", ...stays }], rollout: { maxConcurrent: 1 } },
      },
      {
        ...version,
        kind: "Sync",
        metadata: { namespace: "shop", name: "later" },
        spec: { cluster: "not-yet", ...stays },
      },
    ]);
    await until("the end of it", async () => (await state()) === "Complete");

    const viewer = personWith("Viewer");
    const post = (path: string) => api.call("POST", path, { reason: "a test" });
    for (const { name } of stack.clusters.connections()) {
      const check = `/v1/clusters/${name}/check`;
      await post(check);
      await until("a check", async () => "answer" in (await api.call<object>("GET", check)));
      await post(`/v1/clusters/${name}/cordon`);
      await post(`/v1/clusters/${name}/uncordon`);
    }
    await post("/v1/zones/home/check");
    await until("a check", async () => "answer" in (await api.call<object>("GET", "/v1/zones/home/check")));
    stack.machine.eks.roles.put({
      arn: "arn:aws:iam::111111111111:role/starling/discovery/scan",
      trusts: [
        { principalArn: "arn:aws:iam::000000000000:root", externalId: "starling.000000000000.us-east-1/discovery/all" },
      ],
    });
    const lost = "arn:aws:eks:eu-west-1:111111111111:cluster/lost";
    const [alike] = stack.machine.eks.clusters.list({ accountId: "111111111111", region: "eu-west-1" });
    if (alike === undefined) throw new Error("no cluster of this machine is in the other account");
    stack.machine.eks.clusters.put({ ...alike, arn: lost, name: "lost" });
    const discovery = (gone: object) => ({
      ...version,
      kind: "ClusterDiscovery",
      metadata: { name: "all" },
      spec: {
        eks: { accounts: ["111111111111"], role: { name: "starling/discovery/scan" }, regions: ["eu-west-1"] },
        name: "found-{{ eks.name }}",
        interval: "15m",
        ...gone,
      },
    });
    await api.apply([discovery({})]);
    const readDiscovery = () => api.call<object>("GET", "/v1/clusterdiscoveries/all");
    await until("a scan of an account", async () => JSON.stringify(await readDiscovery()).includes('"found":2'));
    stack.machine.eks.clusters.remove(lost);
    await markAsGone(lost);
    await api.apply([discovery({ gone: { after: "1h", action: "Forget", maxPerDay: 1 } })]);
    await until("a cluster that is forgotten", async () => JSON.stringify(await readDiscovery()).includes('"found":1'));
    await api.call("GET", "/v1/clusterdiscoveries");
    await api.call("DELETE", "/v1/clusterdiscoveries/all?confirm=true");
    const said = { clusters: { all: true }, values: { domain: "example.com" } };
    await api.apply([{ ...version, kind: "ClusterValues", metadata: { name: "every" }, spec: said }]);
    await api.call("GET", "/v1/clustervalues");
    await api.call("GET", "/v1/clustervalues/every");
    await api.call("DELETE", "/v1/clustervalues/every?confirm=true");
    const past = { start: "2020-01-01T00:00:00Z", end: "2020-01-02T00:00:00Z" };
    const times = { clusters: { all: true }, deny: [past] };
    await api.apply([{ ...version, kind: "Window", metadata: { name: "past" }, spec: times }]);
    await api.call("GET", "/v1/windows");
    await api.call("GET", "/v1/windows/past");
    await api.call("DELETE", "/v1/windows/past?confirm=true");
    await post("/v1/freezes/halt");
    await stack.machine.putSecret("starling/hooks/shop", JSON.stringify({ token: "s3cret" }));
    const wakes = { provider: "github", sources: ["app"], secrets: ["starling/hooks/shop"] };
    await api.apply([{ ...version, kind: "Receiver", metadata: { namespace: "shop", name: "hook" }, spec: wakes }]);
    const { items: found } = await api.call<ApiList<ReceiverObject>>("GET", "/v1/receivers");
    const update = { ref: "refs/heads/main", before: "1".repeat(40), after: "2".repeat(40) };
    const to = { webhookUrl: found[0]?.status.url ?? "", repository: "shop/app", cloneUrl: stack.git.url("shop/app") };
    expect(await sendGithubPush({ ...to, secret: "s3cret", update })).toBe(202);
    expect(await sendGithubPush({ ...to, secret: "other", update })).toBe(401);
    await post(`${ns}/receivers/hook/trigger`);
    const { status } = await api.call<ReceiverObject>("GET", `${ns}/receivers/hook`);
    expect(status).toMatchObject({ lastDelivery: { event: "push", polled: 1 }, lastRefusal: { status: 401 } });
    for (const path of ["/receivers", "/receivers/shop/hook"]) {
      const seen = await widget(path);
      expect(seen, path).toContain("github");
      expect(seen, path).not.toMatch(/could not be made|did not answer|does not exist/);
    }
    await api.call("DELETE", `${ns}/receivers/hook?confirm=true`);
    expect(await sendGithubPush({ ...to, secret: "s3cret", update })).toBe(404);
    await api.call("GET", "/v1/freezes");
    await api.call("DELETE", "/v1/freezes/halt");
    await post(`${ns}/syncgroups/web/suspend`);
    await post(`${ns}/syncgroups/web/resume`);
    await post(`${ns}/syncgroups/web/reconcile`);
    await post(`${ns}/syncgroups/web/refresh`);
    await post(`${ns}/sources/app/reconcile`);
    for (const path of [
      "/v1/version",
      "/v1/installation",
      "/v1/fleet",
      "/v1/events",
      "/v1/clusters",
      "/v1/sources",
      "/v1/syncgroups",
      "/v1/syncs",
      `${ns}/sources/app`,
      `${ns}/sources/app/events`,
      `${ns}/syncgroups`,
      `${ns}/syncgroups/web/events`,
      `${ns}/syncgroups/web/syncs`,
      `${ns}/syncgroups/web/fleet`,
      `${ns}/syncgroups/web/history`,
      `${ns}/sources/app/revisions`,
      "/v1/sources/shop/app/artifacts",
      `${ns}/syncgroups/web/rollout`,
      `${ns}/syncgroups/web/rollouts`,
      `${ns}/syncgroups/web/rollouts/2`,
      `${ns}/syncgroups/web/rollouts/2/targets`,
      ...stack.clusters
        .connections()
        .flatMap(({ name }) => [
          `/v1/clusters/${name}`,
          `/v1/clusters/${name}/syncs`,
          `${ns}/syncs/web.app/objects?cluster=${name}`,
        ]),
    ]) {
      await api.call("GET", path);
      await viewer.call("GET", path);
    }
    for (const path of [
      ...[
        "/",
        "/versions",
        "/clusters",
        "/sources",
        "/timeline",
        "/events",
        "/syncgroups/shop/web",
        "/syncgroups/shop/web/clusters",
      ],
      ...stack.clusters
        .connections()
        .flatMap(({ name }) => [`/clusters/${name}`, `/clusters/${name}/syncs/shop/web.app`]),
    ]) {
      const seen = await widget(path);
      expect(seen, path).not.toMatch(/could not be made|did not answer|does not exist/);
    }

    await api.call("DELETE", `${ns}/syncgroups/web?cascade=delete&confirm=true`);
    await until("the deletion of the objects", () => clustersWith("two") === 0);
    await until("the deletion of the group", () =>
      api.call("GET", `${ns}/syncgroups/web`).then(
        () => false,
        () => true,
      ),
    );
    await api.call("DELETE", `${ns}/syncs/later?confirm=true`);
    await post(`${ns}/sources/app/reconcile`);
    await until("the end of the revision that nothing names", async () =>
      unusedGrants(recorder.calls(), resources).every((grant) => !grant.startsWith("resolve dynamodb:DeleteItem")),
    );
    await expect(api.call("DELETE", `${ns}/sources/notes?confirm=true`)).rejects.toThrow("is used by Source/app");
    await api.call("DELETE", `${ns}/sources/app?confirm=true`);
    await api.call("DELETE", `${ns}/sources/notes?confirm=true`);
    for (const { name } of stack.clusters.connections()) await api.call("DELETE", `/v1/clusters/${name}?confirm=true`);

    expect(refused()).toEqual([]);
    const unexplained = unusedGrants(recorder.calls(), resources)
      .filter((grant) => !mayGoUnused.has(grant))
      // The test reads no logs.
      .filter((grant) => !grant.startsWith("api logs:FilterLogEvents "))
      // No stage of the test has an alarm.
      .filter((grant) => !grant.startsWith("tick cloudwatch:DescribeAlarm"));
    expect(unexplained).toEqual([]);
    const asked = stack.machine.eks.calls().map(({ operation, region }) => `${operation} ${region}`);
    expect(new Set(asked)).toEqual(
      new Set([
        // Each scanned account needs these.
        ...["AssumeRole us-east-1", "ListClusters eu-west-1", "GetResources eu-west-1"],
        "DescribeCluster eu-west-1",
        "DescribeCluster us-east-1",
        "GetCallerIdentity eu-west-1",
        "GetCallerIdentity us-east-1",
      ]),
    );
  }, 300_000);
});

test.each([
  ["render", { action: "secretsmanager:GetSecretValue", resource: "arn:x:secret:starling/git/shop-AbCdEf" }],
  ["render", { action: "dynamodb:GetItem", resource: "<starling-state-table-arn>", partition: "CL#c1" }],
  ["render", { action: "s3:GetObject", resource: "<starling-state-blobs-arn>/inventories/c1/0.json" }],
  ["webhook", { action: "dynamodb:PutItem", resource: "<starling-state-table-arn>", partition: "REPO#a" }],
  ["webhook", { action: "dynamodb:PutItem", resource: "<starling-state-table-arn>", partition: "NS#shop#Receiver" }],
  ["discover", { action: "dynamodb:DeleteItem", resource: "<starling-state-table-arn>", partition: "DISCOVERIES" }],
  [
    "discover",
    { action: "dynamodb:DeleteItem", resource: "<starling-state-table-arn>", partition: "NS#shop#SyncGroup" },
  ],
  ["api", { action: "dynamodb:Scan", resource: "<starling-state-table-arn>", partition: "NS#shop#Source" }],
  ["resolve", { action: "dynamodb:PutItem", resource: "<starling-state-table-arn>", partition: "NS#shop#SyncGroup" }],
  ["api", { action: "sts:AssumeRole", resource: "arn:<AWS::Partition>:iam::111111111111:role/starling/clusters/a" }],
  ["apply", { action: "sts:AssumeRole", resource: "arn:<AWS::Partition>:iam::111111111111:role/admin" }],
  ["apply", { action: "sts:AssumeRole", resource: "arn:<AWS::Partition>:iam::111111111111:role/starling-apply" }],
  ["apply", { action: "sts:AssumeRole", resource: "arn:<AWS::Partition>:iam::222222222222:role/starling/clusters/a" }],
  ["apply", { action: "eks:DescribeCluster", resource: "arn:<AWS::Partition>:eks:eu-west-1:111111111111:cluster/a" }],
  ["report", { action: "sqs:SendMessage", resource: "<WiringToApplyQueue>" }],
  ["apply", { action: "s3:ListBucket", resource: "<starling-state-blobs-arn>", prefix: "artifacts/0.tar.gz" }],
  ["apply", { action: "s3:ListBucket", resource: "<starling-state-blobs-arn>" }],
  ["build", { action: "s3:ListBucket", resource: "<starling-state-blobs-arn>", prefix: "artifacts/0.tar.gz" }],
  [
    "apply",
    {
      action: "s3:PutObject",
      resource: "<starling-state-blobs-arn>/renderings/0.json",
      copySource: "<starling-state-blobs-name>/inventories/c1/0.json",
    },
  ],
  ["apply", { action: "s3:PutObject", resource: "<starling-state-blobs-arn>/renderings/0.json" }],
  ["rollout", { action: "s3:PutObject", resource: "<starling-state-blobs-arn>/artifacts/0.tar.gz" }],
])("the role of %s does not allow %o", (name, wish) => {
  expect(mayDo(wish, statementsOf(resources, name))).toBe(false);
});

test.each([
  ["rollout", "plans/0.json"],
  ["render", "artifacts/0.tar.gz"],
  ["render", "incoming/0"],
  ["api", "uploads/shop/app/0"],
  ["resolve", "uploads/shop/app/0"],
  ["apply", "renderings/0.json"],
  ["apply", "inventories/c1/0.json"],
])("the role of %s may learn from S3 that %s does not exist", (name, prefix) => {
  const wish = { action: "s3:ListBucket", resource: "<starling-state-blobs-arn>", prefix };
  expect(mayDo(wish, statementsOf(resources, name))).toBe(true);
});

test.each([
  ["rollout", "artifacts/0.tar.gz"],
  ["render", "artifacts/0.tar.gz"],
  ["render", "renderings/0.json"],
  ["resolve", "artifacts/0.tar.gz"],
  ["apply", "renderings/0.json"],
])("the role of %s may renew %s by a copy onto itself", (name, key) => {
  const calls = ["GetObject", "PutObject"].map((action) => ({
    action: `s3:${action}`,
    resource: `<starling-state-blobs-arn>/${key}`,
    copySource: `<starling-state-blobs-name>/${key}`,
  }));
  for (const wish of calls) expect(mayDo(wish, statementsOf(resources, name))).toBe(true);
});
