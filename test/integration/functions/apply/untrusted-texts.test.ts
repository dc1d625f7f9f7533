/** Rows get only short, harmless lines of a cluster's answers, whatever the answers contain. */
import { describe, expect, test } from "vitest";
import { keys } from "#shared/fleet/rows/keys.ts";
import { rowBytes } from "#shared/fleet/rows/row-size.ts";
import { configMap, manifest } from "#test/support/cluster-fixture.ts";
import { forEachTest } from "#test/support/for-tests.ts";
import { type Attack, answerJson } from "#test/support/hostile-api.ts";
import { startHostileWorker } from "#test/support/hostile-worker.ts";

const worker = forEachTest(startHostileWorker);
const objects = [configMap("default/a"), configMap("default/b")];
const megabytes = "x\u001b[2J\u0000\r\n\u202e".repeat(700_000);
const harmful = /[\p{Cc}\u202a-\u202e\u2066-\u2069]/u;

/** Answers each request with this method whose path contains `part`. */
function answering(method: string, part: string, answer: { readonly status: number; readonly body: unknown }): Attack {
  const text = JSON.stringify(answer.body);
  return (request, response) =>
    request.method === method && request.url?.includes(part) === true && answerJson(response, text, answer.status);
}

const status = (code: number, more: object) => ({
  status: code,
  body: { kind: "Status", status: "Failure", code, ...more },
});

async function rows() {
  const sync = await worker.world.sync("web");
  const cluster = await worker.world.table.get(keys.cluster("c1"));
  if (sync === undefined || cluster === undefined) throw new Error("a row is missing");
  return { sync, cluster };
}

async function expectFitRows(): Promise<void> {
  for (const row of Object.values(await rows())) {
    expect(rowBytes(row)).toBeLessThan(30_000);
    for (const text of textsOf(row)) expect(text).not.toMatch(harmful);
  }
}

function textsOf(value: unknown): string[] {
  if (typeof value === "string") return [value];
  return typeof value === "object" && value !== null ? Object.values(value).flatMap(textsOf) : [];
}

describe("a refusal", () => {
  test.each([
    ["with a reason and a message of megabytes", { reason: megabytes, message: megabytes }],
    [
      "with causes of megabytes",
      {
        reason: "Invalid",
        message: "no",
        details: {
          causes: Array(300).fill({
            reason: megabytes.slice(0, 10_000),
            field: megabytes.slice(0, 10_000),
            message: "x",
          }),
        },
      },
    ],
    [
      "whose reason is a number and whose message is a map",
      { reason: 7, message: { toString: 1 }, details: { causes: "x" } },
    ],
    ["with causes that are texts", { reason: "Invalid", message: "no", details: { causes: ["a", 1, null, [[]]] } }],
    ["with a message that is slow to match", { reason: "Invalid", message: "updates to ".repeat(100_000) }],
  ])("a refusal %s is reported in a few words", { timeout: 60_000 }, async (_name, more) => {
    worker.api.attack(answering("PATCH", "/configmaps/a", status(422, more)));
    await worker.world.assign("web", objects);
    await worker.world.work();
    const { phase, problems } = await worker.observed();
    expect({ phase, problems }).toMatchObject({ phase: "Failed", problems: [{ object: "ConfigMap default/a" }] });
    await expectFitRows();

    worker.api.attack(undefined);
    await worker.world.assign("web", [...objects, configMap("default/c")]);
    await worker.world.work();
    expect(await worker.observed()).toMatchObject({ phase: "Ready" });
    expect(worker.members()).toEqual(["a", "b", "c"]);
  });

  test("a refusal of every object is reported in a few words, too", async () => {
    worker.api.attack(answering("GET", "/", status(403, { reason: megabytes, message: megabytes })));
    await worker.world.assign("web", objects);
    await worker.world.work();
    expect(await worker.observed()).toMatchObject({ phase: "Failed" });
    await expectFitRows();
  });
});

test("the conditions of an object are reported in a few words", async () => {
  const deployment = manifest({
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: { name: "web", namespace: "default" },
  });
  const conditions = [
    { type: "Stalled", status: "True", reason: megabytes.slice(0, 500_000), message: megabytes.slice(0, 500_000) },
  ];
  const metadata = { name: "web", namespace: "default", uid: "u", resourceVersion: "1" };
  worker.api.attack(
    answering("PATCH", "/deployments/web", { status: 201, body: { metadata, status: { conditions } } }),
  );
  await worker.world.assign("web", [deployment]);
  await worker.world.work();
  expect(await worker.observed()).toMatchObject({
    phase: "Verifying",
    problems: [{ object: "Deployment default/web" }],
  });
  await expectFitRows();
});

describe("an answer of the cluster about itself", () => {
  test("a version that is too long is cut", async () => {
    worker.api.attack(
      answering("GET", "/version", { status: 200, body: { gitVersion: `v1.36${megabytes.slice(0, 700_000)}` } }),
    );
    await worker.world.assign("web", objects);
    await worker.world.work();
    const { cluster } = await rows();
    expect(cluster.status.version).toMatch(/^v1\.36x.*…$/);
    expect(cluster.status.version?.length).toBeLessThanOrEqual(100);
    await expectFitRows();
  });

  test.each([
    ["is not a text", 12],
    ["is a megabyte", "u".repeat(1_000_000)],
  ])("a uid that %s is not recorded", async (_name, uid) => {
    worker.api.attack(
      answering("GET", "/namespaces/kube-system", { status: 200, body: { metadata: { name: "kube-system", uid } } }),
    );
    await worker.world.assign("web", objects);
    await worker.world.work();
    expect(await worker.observed()).toMatchObject({ phase: "Retrying", reason: "AnswerMalformed" });
    expect((await rows()).cluster.status).not.toHaveProperty("uid");
    expect(worker.members()).toEqual([]);
  });
});

test("an object that was applied and has no uid is not recorded", async () => {
  worker.api.attack(
    answering("PATCH", "/configmaps/a", { status: 200, body: { metadata: { name: "a", namespace: "default" } } }),
  );
  await worker.world.assign("web", objects);
  await worker.world.work();
  expect(await worker.observed()).toMatchObject({
    phase: "Retrying",
    problems: [
      { object: "ConfigMap default/a", reason: "AnswerMalformed", message: expect.stringContaining("no uid") },
    ],
  });
  expect(await worker.recorded()).toEqual(["b"]);
});

describe("discovery", () => {
  const resource = (plural: unknown, kind: unknown = "Widget") => ({
    resource: plural,
    responseKind: { group: "", version: "", kind },
    scope: "Namespaced",
    operations: ["list", "get"],
  });
  const groups = (items: unknown) => ({ kind: "APIGroupDiscoveryList", apiVersion: "apidiscovery.k8s.io/v2", items });
  const group = (name: unknown, resources: unknown, version: unknown = "v1") => ({
    metadata: { name },
    versions: [{ version, resources }],
  });
  const widget = manifest({
    apiVersion: "example.com/v1",
    kind: "Widget",
    metadata: { name: "w", namespace: "default" },
  });

  test.each([
    ["a resource that leads elsewhere", [group("example.com", [resource("../../api/v1/secrets")])]],
    ["a resource that is encoded", [group("example.com", [resource("%2e%2e")])]],
    ["a resource with a query", [group("example.com", [resource("widgets?x=")])]],
    ["a kind with controls", [group("example.com", [resource("widgets", "Wid\u001bget")])]],
    ["a version that leads elsewhere", [group("example.com", [resource("widgets")], "v1/../../x")]],
  ])("kinds in a discovery answer with %s are unknown, and no request is sent for them", async (_name, items) => {
    worker.api.attack(
      (request, response) => request.url === "/apis" && answerJson(response, JSON.stringify(groups(items))),
    );
    await worker.world.assign("web", [widget, configMap("default/a")]);
    await worker.world.work();
    expect(await worker.observed()).toMatchObject({
      phase: "Retrying",
      problems: [
        {
          object: "Widget.example.com default/w",
          message: expect.stringMatching(/cannot be a part of an (API )?address|no matches for kind/),
        },
      ],
    });
    expect(worker.members()).toEqual(["a"]);
    expect(worker.api.requests().filter((request) => /\.\.|%|\?x=/.test(request.split("?")[0] ?? ""))).toEqual([]);
    await expectFitRows();
  });

  test.each([
    [
      "a million groups",
      JSON.stringify(groups([])).replace("[]", `[${'{"metadata":{"name":"a"}},'.repeat(1_000_000)}{}]`),
    ],
    ["6,000 groups", JSON.stringify(groups(Array.from({ length: 6_000 }, (_, index) => group(`g${index}.com`, []))))],
    [
      "20,000 kinds",
      JSON.stringify(
        groups([
          group(
            "example.com",
            Array.from({ length: 20_000 }, (_, index) => resource(`r${index}`, `R${index}`)),
          ),
        ]),
      ),
    ],
  ])("a discovery answer of %s is too large", { timeout: 60_000 }, async (_name, text) => {
    worker.api.attack((request, response) => request.url === "/apis" && answerJson(response, text));
    await worker.world.assign("web", objects);
    await worker.world.work();
    expect(await worker.observed()).toMatchObject({
      phase: "Failed",
      reason: "AnswerTooLarge",
      message: expect.stringContaining("cluster c1: GET /apis: "),
    });
    expect(worker.members()).toEqual([]);
  });

  test.each([
    ["an empty map", "{}"],
    ["a list", "[]"],
    ["groups that are a number", JSON.stringify({ kind: "APIGroupList", groups: 4 })],
  ])("a discovery answer that is %s is not taken for a cluster without kinds", async (_name, text) => {
    await worker.world.assign("web", objects);
    await worker.world.work();
    worker.api.attack((request, response) => request.url === "/apis" && answerJson(response, text));
    await worker.world.assign("web", [configMap("default/a"), widget]);
    await worker.checkAgain();
    expect((await worker.observed()).phase).not.toBe("Ready");
    expect(worker.members()).toEqual(expect.arrayContaining(["a", "b"]));
    expect(await worker.recorded()).toEqual(expect.arrayContaining(["a", "b"]));
  });
});
