/**
 * The policies of the stacks let the functions do their work: the whole path from a document to a fleet and back, each
 * function with clients that check every request against its synthesized role.
 */
import { createHmac } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { wireApi } from "#functions/api/wire.ts";
import { wireTick } from "#functions/tick/wire.ts";
import { wireWebhook } from "#functions/webhook/wire.ts";
import type { ApiSession } from "#local/api-session.ts";
import { type EventSourceLoop, startEventSource } from "#local/aws/event-source-loop.ts";
import { queueFunctions } from "#local/functions.ts";
import { webhookSecretName } from "#local/machine.ts";
import { addFleet, type Stack, startStack } from "#local/stack.ts";
import type { AwsClients } from "#shared/lambda/aws-clients.ts";
import type { QueueName } from "#shared/messages.ts";
import { guarded, mayDo } from "#test/support/policy-guard.ts";
import { functionNamed, roleOf, type Statement, statementsByRole, synthesize } from "#test/synth/synthesized.ts";

const { resources } = synthesize({ bundle: "templates" });
const byRole = statementsByRole(resources);

/** Statements of a function's role, the names of its queues without the hashes of their logical ids. */
function statementsOf(folder: string): readonly Statement[] {
  const role = roleOf(functionNamed(resources, folder));
  const text = JSON.stringify(byRole.get(role) ?? []);
  return JSON.parse(
    text.replace(/\{"Fn::GetAtt":\["(WiringTo[A-Za-z]+?Queue)[0-9A-F]+","Arn"\]\}/g, '"<$1>"'),
  ) as Statement[];
}

const refused = new Set<string>();
let folder = "";
let stack: Stack;
let loops: readonly EventSourceLoop[] = [];
let ticking = true;
let ticks: Promise<void> = Promise.resolve();
let api: ApiSession;
let push: (body: object) => Promise<{ readonly statusCode: number }>;

function clientsOf(name: string, aws: AwsClients): Promise<AwsClients> {
  return guarded(aws, {
    statements: statementsOf(name),
    onRefusal: (wish) => refused.add(`${name}: ${wish.action} ${wish.resource} ${wish.partition ?? ""}`.trim()),
  });
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "starling-policies-"));
  stack = await startStack({ repositories: folder, tickEveryMs: "manual" });
  const { machine } = stack;
  const { environment } = machine;
  const { table: STARLING_TABLE, queues } = environment;
  await Promise.all([...machine.sources.values()].flat().map((source) => source.pause()));
  loops = await Promise.all(
    Object.entries(queueFunctions).map(async ([name, { wire, timeoutSeconds, batchSize }]) =>
      startEventSource({
        functionName: name,
        sqs: machine.aws.sqs,
        queueUrl: queues[name as QueueName],
        handler: wire(environment, await clientsOf(name, machine.aws)),
        timeoutSeconds,
        batchSize,
      }),
    ),
  );
  const shared = { STARLING_TABLE, STARLING_QUEUE_RESOLVE: queues.resolve };
  const handler = wireApi({ ...shared, STARLING_QUEUE_ROLLOUT: queues.rollout }, await clientsOf("api", machine.aws));
  const call: ApiSession["call"] = async (method, path, body) => {
    const url = new URL(path, "http://api");
    const event = {
      rawPath: url.pathname,
      rawQueryString: url.search.slice(1),
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      requestContext: { http: { method }, authorizer: { iam: { userArn: "arn:aws:iam::123456789012:user/jane" } } },
    };
    const answer = await handler(event, {});
    if (answer.statusCode >= 300) throw new Error(`${method} ${path}: ${answer.statusCode} ${answer.body}`);
    return JSON.parse(answer.body);
  };
  api = {
    call,
    async apply(documents) {
      await call("POST", "/v1/apply", { documents, confirm: true });
    },
  };
  const webhook = wireWebhook(
    { ...shared, STARLING_WEBHOOK_SECRET: webhookSecretName },
    await clientsOf("webhook", machine.aws),
  );
  push = (body) => {
    const text = JSON.stringify(body);
    const signature = createHmac("sha256", machine.webhook.secret).update(text).digest("hex");
    const headers = { "x-github-event": "push", "x-hub-signature-256": `sha256=${signature}` };
    return webhook({ headers, body: text }, {});
  };
  const tick = wireTick(
    {
      ...shared,
      STARLING_QUEUE_RENDER: queues.render,
      STARLING_QUEUE_ROLLOUT: queues.rollout,
      STARLING_QUEUE_APPLY: queues.apply,
    },
    await clientsOf("tick", machine.aws),
  );
  ticks = (async () => {
    while (ticking) {
      await tick();
      await sleep(500);
    }
  })();
});

afterAll(async () => {
  ticking = false;
  await ticks;
  await Promise.all(loops.map((loop) => loop.stop()));
  await stack.stop();
  await rm(folder, { recursive: true, force: true });
});

const configMap = (value: string) => ({
  "all/settings.yaml": `apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings, namespace: default}\ndata: {value: "${value}"}\n`,
  "all/kustomization.yaml": "resources: [settings.yaml]\n",
});

async function until(what: string, holds: () => boolean | Promise<boolean>): Promise<void> {
  const deadline = Date.now() + 45_000;
  while (!(await holds())) {
    if (Date.now() > deadline) throw new Error(`${what} did not happen; refused so far: ${[...refused].join("; ")}`);
    await sleep(100);
  }
}

function clustersWith(value: string): number {
  return stack.clusters
    .connections()
    .filter(({ name }) => JSON.stringify(stack.clusters.objects(name)).includes(`"value":"${value}"`)).length;
}

const ns = "/v1/namespaces/shop";

describe("a role lets its function do its work", () => {
  test("from documents to a fleet, a push, the verbs, every answer, and the end of it all", async () => {
    await stack.machine.putSecret("starling/git/shop", JSON.stringify({ username: "u", password: "p" }));
    await stack.git.createRepository("shop/app", configMap("one"));
    await addFleet({ ...stack, session: api }, 2);
    const version = { apiVersion: "starling.dev/v1alpha1" };
    await api.apply([
      {
        ...version,
        kind: "Source",
        metadata: { namespace: "shop", name: "app" },
        spec: {
          git: { url: stack.git.url("shop/app"), credentials: { secret: "starling/git/shop", kind: "basic" } },
          interval: "10s",
        },
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
    const answer = await push({ ref: "refs/heads/main", repository: { clone_url: stack.git.url("shop/app") } });
    expect(answer.statusCode).toBe(202);
    await until("the second revision", () => clustersWith("two") === 2);

    const post = (path: string) => api.call("POST", path, { reason: "a test" });
    await post(`${ns}/syncgroups/web/suspend`);
    await post(`${ns}/syncgroups/web/resume`);
    await post(`${ns}/syncgroups/web/reconcile`);
    await post(`${ns}/sources/app/reconcile`);
    for (const path of [
      "/v1/version",
      "/v1/clusters",
      "/v1/sources",
      "/v1/syncgroups",
      "/v1/syncs",
      `${ns}/sources/app`,
      `${ns}/sources/app/events`,
      `${ns}/syncgroups`,
      `${ns}/syncgroups/web/events`,
      `${ns}/syncgroups/web/syncs`,
      `${ns}/syncgroups/web/rollouts`,
      `${ns}/syncgroups/web/rollouts/2`,
      `${ns}/syncgroups/web/rollouts/2/targets`,
      ...stack.clusters.connections().flatMap(({ name }) => [`/v1/clusters/${name}`, `/v1/clusters/${name}/syncs`]),
    ]) {
      await api.call("GET", path);
    }

    await api.call("DELETE", `${ns}/syncgroups/web?cascade=delete&confirm=true`);
    await until("the deletion of the objects", () => clustersWith("two") === 0);
    await until("the deletion of the group", () =>
      api.call("GET", `${ns}/syncgroups/web`).then(
        () => false,
        () => true,
      ),
    );
    await api.call("DELETE", `${ns}/sources/app?confirm=true`);
    for (const { name } of stack.clusters.connections()) await api.call("DELETE", `/v1/clusters/${name}?confirm=true`);

    expect([...refused]).toEqual([]);
  }, 120_000);
});

test.each([
  ["render", { action: "secretsmanager:GetSecretValue", resource: "arn:x:secret:starling/git/shop-AbCdEf" }],
  ["render", { action: "dynamodb:GetItem", resource: "<starling-state-table-arn>", partition: "CL#c1" }],
  ["render", { action: "s3:GetObject", resource: "<starling-state-blobs-arn>/renderings/0.json" }],
  ["webhook", { action: "dynamodb:PutItem", resource: "<starling-state-table-arn>", partition: "REPO#a" }],
  ["api", { action: "dynamodb:Scan", resource: "<starling-state-table-arn>", partition: "NS#shop#Source" }],
  ["resolve", { action: "dynamodb:PutItem", resource: "<starling-state-table-arn>", partition: "NS#shop#SyncGroup" }],
  ["report", { action: "sqs:SendMessage", resource: "<WiringToApplyQueue>" }],
])("%s may not %o", (name, wish) => {
  expect(mayDo(wish, statementsOf(name))).toBe(false);
});
