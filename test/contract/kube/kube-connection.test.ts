import { type AddressInfo, createServer } from "node:net";
import { afterEach, describe, expect, test } from "vitest";
import { createTlsCertificate } from "#local/base/tls-certificate.ts";
import { KubeConnection } from "#shared/adapters/kube/kube-connection.ts";
import type { KubeEndpoint } from "#shared/adapters/kube/kube-transport.ts";
import { systemClock } from "#shared/adapters/system.ts";
import type { SleepingClock } from "#shared/base/clock.ts";
import { starlingVersion } from "#shared/base/starling-version.ts";
import type { ClusterClient, KindInfo } from "#shared/kube/cluster-client.ts";
import { KubeError } from "#shared/kube/kube-error.ts";
import type { ManifestObject } from "#shared/kube/kube-object.ts";
import { aggregatedDiscovery, plainDiscovery } from "#test/support/discovery-documents.ts";
import { kindInfo } from "#test/support/kind-info.ts";
import {
  type RecordedReply,
  type RecordedRequest,
  type RecordingServer,
  startRecordingServer,
} from "#test/support/recording-server.ts";

const closers: (() => Promise<void> | void)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0)) await close();
});

interface Setup {
  readonly server: RecordingServer;
  readonly client: ClusterClient;
}

async function setUp(
  reply: (request: RecordedRequest) => RecordedReply,
  endpoint: Partial<KubeEndpoint> & { readonly prefix?: string; readonly deadlineMs?: number } = {},
  clock: SleepingClock = systemClock,
): Promise<Setup> {
  const server = await startRecordingServer(reply);
  const connection = new KubeConnection(
    {
      server: `${server.url}${endpoint.prefix ?? ""}`,
      caData: server.caData,
      credentials: { token: async () => "t0k3n" },
      ...endpoint,
    },
    clock,
  );
  closers.push(
    () => connection.close(),
    () => server.stop(),
  );
  return { server, client: connection.client({ deadlineMs: Date.now() + (endpoint.deadlineMs ?? 20_000) }) };
}

const secrets = kindInfo({ kind: "Secret", plural: "secrets" });
const object: ManifestObject = { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "a", namespace: "n" } };
const key = { namespace: "n", name: "a" };
const status = (code: number, reason: string, message: string, rest: object = {}): RecordedReply => ({
  status: code,
  body: { kind: "Status", status: "Failure", code, reason, message, ...rest },
});

describe("requests", () => {
  test("an apply is a server-side apply by the field manager starling", async () => {
    const { server, client } = await setUp(({ body }) => ({ status: 201, body }));
    const answer = await client.apply(kindInfo(), object);
    expect(server.requests).toMatchObject([
      {
        method: "PATCH",
        url: "/api/v1/namespaces/n/configmaps/a?fieldManager=starling&force=true&fieldValidation=Strict",
        headers: {
          "content-type": "application/apply-patch+yaml",
          authorization: "Bearer t0k3n",
          "user-agent": `starling/${starlingVersion}`,
        },
      },
    ]);
    expect(answer).toMatchObject({ created: true, object });
  });

  test("a dry run is sent as a dry run", async () => {
    const { server, client } = await setUp(({ body }) => ({ body }));
    await client.apply(kindInfo(), object, { dryRun: true });
    expect(server.requests[0]?.url).toContain("&dryRun=All");
  });

  test("the path of the server's address precedes the path of each request", async () => {
    const { server, client } = await setUp(() => ({ body: object }), { prefix: "/clusters/prod/" });
    await client.get(kindInfo({ group: "apps", kind: "Deployment", plural: "deployments" }), key);
    expect(server.requests[0]?.url).toBe("/clusters/prod/apis/apps/v1/namespaces/n/deployments/a");
  });

  test("a certificate must have the name in tlsServerName", async () => {
    const { client } = await setUp(() => ({ body: object }), { tlsServerName: "api.example.com" });
    await expect(client.get(kindInfo(), key)).resolves.toBeDefined();
    const wrong = await setUp(() => ({}), { tlsServerName: "evil.example.com" });
    await expect(wrong.client.get(kindInfo(), key)).rejects.toMatchObject({ verdict: { class: "unreachable" } });
  });

  test("a server with a certificate of another authority counts as unreachable", async () => {
    const other = await startRecordingServer(() => ({}));
    closers.push(() => other.stop());
    const { client } = await setUp(() => ({}), { caData: other.caData });
    await expect(client.get(kindInfo(), key)).rejects.toMatchObject({ verdict: { class: "unreachable" } });
  });

  test("a server without TLS is refused before any request", () => {
    const credentials = { token: async () => "t" };
    const begin = () => new KubeConnection({ server: "http://127.0.0.1:8080", caData: "", credentials });
    expect(begin).toThrow(/^the server of a cluster must be an https URL, got "http:\/\/127/);
  });

  test("onUnreachable is called only if the server does not answer, and for no other failure", async () => {
    let reported = 0;
    const onUnreachable = () => {
      reported += 1;
    };
    const other = await startRecordingServer(() => ({}));
    closers.push(() => other.stop());
    const elsewhere = await setUp(() => ({}), { caData: other.caData, onUnreachable });
    await expect(elsewhere.client.get(kindInfo(), key)).rejects.toMatchObject({ verdict: { class: "unreachable" } });
    expect(reported).toBeGreaterThan(0);
    reported = 0;
    const broken = await setUp(inTurn({ drop: true }, { body: "x".repeat(9 * 1024 * 1024) }), { onUnreachable });
    await expect(broken.client.get(kindInfo(), key)).rejects.toMatchObject({ reason: "AnswerTooLarge" });
    expect(reported).toBe(0);
  });

  test("a server that accepts the connection and sends nothing counts as unreachable", async () => {
    const silent = createServer();
    await new Promise<void>((resolve) => silent.listen(0, "127.0.0.1", resolve));
    closers.push(() => void silent.close());
    const { port } = silent.address() as AddressInfo;
    const { client } = await setUp(() => ({}), { server: `https://127.0.0.1:${port}`, connectTimeoutMs: 200 });
    await expect(client.get(kindInfo(), key)).rejects.toMatchObject({
      reason: "ERR_CONNECT_TIMEOUT",
      verdict: { class: "unreachable" },
    });
  });

  test.each<readonly [string, string, (client: ClusterClient) => Promise<unknown>]>([
    ["POST", "application/json", (client) => client.create(kindInfo(), object)],
    ["PUT", "application/json", (client) => client.replace(kindInfo(), object)],
    ["DELETE", "application/json", (client) => client.delete(kindInfo(), key, { uid: "u1" })],
    ["PATCH", "application/json-patch+json", (client) => client.patch(kindInfo(), key, [])],
  ])("a %s has a body of the type %s", async (method, contentType, send) => {
    const { server, client } = await setUp(() => ({ body: object }));
    await send(client);
    expect(server.requests).toMatchObject([{ method, headers: { "content-type": contentType } }]);
  });

  test.each(["base64", "utf8"] as const)("a client certificate in %s is used instead of a token", async (encoding) => {
    const { cert, key: secret } = await createTlsCertificate(["client.example.com"]);
    const given = (pem: string) => Buffer.from(pem).toString(encoding);
    const credentials = { clientCertificate: { certData: given(cert), keyData: given(secret) } };
    const { server, client } = await setUp(() => ({ body: object }), { credentials });
    await expect(client.get(kindInfo(), key)).resolves.toMatchObject(object);
    expect(server.requests[0]?.headers).not.toHaveProperty("authorization");
  });

  test("a delete has the uid as a precondition, and deletes dependents in the background", async () => {
    const { server, client } = await setUp(() => ({}));
    await client.delete(kindInfo(), key, { uid: "u1" });
    expect(JSON.parse(server.requests[0]?.body ?? "")).toEqual({
      apiVersion: "v1",
      kind: "DeleteOptions",
      preconditions: { uid: "u1" },
      propagationPolicy: "Background",
    });
  });

  const success = { kind: "Status", apiVersion: "v1", status: "Success" };

  test.each<[string, unknown, "gone" | "asked"]>([
    ["that names its uid", { ...success, details: { name: "web", uid: "u1" } }, "gone"],
    ["that names another uid", { ...success, details: { name: "web", uid: "u2" } }, "asked"],
    ["that names no uid", success, "asked"],
    ["with the status Failure", { ...success, status: "Failure", details: { uid: "u1" } }, "asked"],
    ["that is the object", { ...object, details: { uid: "u1" }, status: "Success" }, "asked"],
    ["without a body", "", "asked"],
  ])("a delete with an answer %s is reported as %j", async (_what, body, expected) => {
    const { client } = await setUp(() => ({ body }));
    expect(await client.delete(kindInfo(), key, { uid: "u1" })).toBe(expected);
  });

  test("a client that impersonates a user sends that user's name", async () => {
    const server = await startRecordingServer(() => ({ body: object }));
    const connection = new KubeConnection({
      server: server.url,
      caData: server.caData,
      credentials: { token: async () => "t" },
    });
    closers.push(
      () => connection.close(),
      () => server.stop(),
    );
    const user = "system:serviceaccount:payments:starling";
    await connection.client({ deadlineMs: Date.now() + 5000, impersonate: { user } }).get(kindInfo(), key);
    expect(server.requests[0]?.headers["impersonate-user"]).toBe(user);
  });
});

describe("names that would lead to another path", () => {
  test.each<readonly [string, KindInfo, { readonly namespace: string; readonly name: string }]>([
    ["the name ..", kindInfo(), { namespace: "n", name: ".." }],
    ["a name with slashes", kindInfo(), { namespace: "n", name: "../../secrets/x" }],
    ["an encoded name", kindInfo(), { namespace: "n", name: "%2e%2e" }],
    ["half of a surrogate pair", kindInfo(), { namespace: "n", name: "\ud800" }],
    ["an empty name", kindInfo(), { namespace: "n", name: "" }],
    ["the namespace ..", kindInfo(), { namespace: "..", name: "a" }],
    ["a resource with slashes", kindInfo({ plural: "../secrets" }), key],
    ["the group ..", kindInfo({ group: ".." }), key],
    ["a version with slashes", kindInfo({ version: "v1/x" }), key],
  ])("%s is refused before any request", async (_name, info, place) => {
    const { server, client } = await setUp(() => ({ body: object }));
    const manifest = { ...object, metadata: place };
    const refused = { reason: "InvalidName", verdict: { class: "invalid" } };
    await expect(client.get(info, place)).rejects.toMatchObject(refused);
    await expect((async () => client.apply(info, manifest))()).rejects.toMatchObject(refused);
    await expect(client.delete(info, place, { uid: "u" })).rejects.toMatchObject(refused);
    expect(server.requests).toEqual([]);
  });

  test("a valid name with reserved characters is encoded", async () => {
    const { server, client } = await setUp(({ url }) => ({
      body: { metadata: { name: decodeURIComponent(url.split("/").at(-1) ?? "") } },
    }));
    await client.get(kindInfo({ namespaced: false }), { namespace: "", name: "a?b#c d:e" });
    expect(server.requests[0]?.url).toBe("/api/v1/configmaps/a%3Fb%23c%20d%3Ae");
  });
});

describe("tokens", () => {
  test("a refused token is refreshed once", async () => {
    const asked: boolean[] = [];
    const token = async ({ refresh }: { readonly refresh: boolean }) => {
      asked.push(refresh);
      return refresh ? "new" : "old";
    };
    const { client } = await setUp(
      ({ headers }) =>
        headers.authorization === "Bearer new" ? { body: object } : status(401, "Unauthorized", "Unauthorized"),
      { credentials: { token } },
    );
    await expect(client.get(kindInfo(), key)).resolves.toBeDefined();
    expect(asked).toEqual([false, true]);
  });

  test("a token that is refused again after its refresh is an error", async () => {
    const { server, client } = await setUp(() => status(401, "Unauthorized", "Unauthorized"));
    await expect(client.get(kindInfo(), key)).rejects.toMatchObject({ verdict: { class: "auth" } });
    expect(server.requests).toHaveLength(2);
  });
});

/** Gives the replies in turn, and the last one again and again. */
function inTurn(...replies: readonly RecordedReply[]): () => RecordedReply {
  let turn = 0;
  return () => replies[Math.min(turn++, replies.length - 1)] ?? {};
}

describe("retries", () => {
  test.each<readonly [string, RecordedReply]>([
    ["a dropped connection", { drop: true }],
    ["503", status(503, "ServiceUnavailable", "try later")],
    ["an error of etcd", status(500, "", "etcdserver: leader changed")],
    ["429", { ...status(429, "TooManyRequests", "slow down"), headers: { "retry-after": "1" } }],
    ["a webhook that cannot be called", status(500, "InternalError", 'failed calling webhook "w": connection refused')],
    ["a conflict without resourceVersion", status(409, "Conflict", "the object has been modified")],
  ])("an apply is sent again after %s", async (_name, first) => {
    const { server, client } = await setUp(inTurn(first, { body: object }));
    await expect(client.apply(kindInfo(), object)).resolves.toMatchObject({ created: false });
    expect(server.requests).toHaveLength(2);
  });

  test.each<readonly [string, RecordedReply, string]>([
    ["422", status(422, "Invalid", "is invalid"), "invalid"],
    ["403", status(403, "Forbidden", "cannot patch resource"), "forbidden"],
    [
      "a schema error",
      status(500, "", "failed to create typed patch object (/a): .x: field not declared in schema"),
      "invalid",
    ],
  ])("an apply is not sent again after %s", async (_name, reply, kindOfError) => {
    const { server, client } = await setUp(() => reply);
    await expect(client.apply(kindInfo(), object)).rejects.toMatchObject({ verdict: { class: kindOfError } });
    expect(server.requests).toHaveLength(1);
  });

  test("a read is sent again after 503", async () => {
    const { server, client } = await setUp(inTurn(status(503, "ServiceUnavailable", "try later"), { body: object }));
    await expect(client.get(kindInfo(), key)).resolves.toMatchObject(object);
    expect(server.requests).toHaveLength(2);
  });

  test("a PUT is not sent again after a conflict, because the caller decides", async () => {
    const { server, client } = await setUp(() => status(409, "Conflict", "the object has been modified"));
    await expect(client.replace(kindInfo(), object)).rejects.toMatchObject({ verdict: { class: "conflict" } });
    expect(server.requests).toHaveLength(1);
  });

  test("a request is not sent again if the wait would exceed the deadline", async () => {
    const reply = { ...status(429, "TooManyRequests", "slow down"), headers: { "retry-after": "20" } };
    const { server, client } = await setUp(() => reply, { deadlineMs: 5000 });
    await expect(client.apply(kindInfo(), object)).rejects.toMatchObject({ verdict: { class: "throttled" } });
    expect(server.requests).toHaveLength(1);
  });
});

describe("answers", () => {
  test("a missing object is undefined, and a missing kind is an error", async () => {
    const missing = await setUp(() => status(404, "NotFound", 'configmaps "a" not found'));
    await expect(missing.client.get(kindInfo(), key)).resolves.toBeUndefined();
    const unknown = await setUp(() => ({
      status: 404,
      body: "404 page not found",
      headers: { "content-type": "text/plain" },
    }));
    await expect(unknown.client.get(kindInfo(), key)).rejects.toMatchObject({ verdict: { class: "noMatch" } });
  });

  test("an answer with another object is an error", async () => {
    const { client } = await setUp(() => ({ body: { ...object, metadata: { name: "b", namespace: "n" } } }));
    await expect(client.get(kindInfo(), key)).rejects.toMatchObject({
      reason: "AnswerMalformed",
      message: expect.stringContaining("it contains a different object, b;"),
    });
  });

  test("an object that would take too much memory is an error, however small its text is", async () => {
    const withValues = (count: number) => `{"metadata":{"name":"a"},"x":[${"0,".repeat(count - 1)}0]}`;
    const { client } = await setUp(inTurn({ body: withValues(600_000) }, { body: withValues(800_000) }));
    await expect(client.get(kindInfo(), key)).resolves.toMatchObject({ metadata: { name: "a" } });
    await expect(client.get(kindInfo(), key)).rejects.toMatchObject({
      reason: "AnswerTooLarge",
      message: expect.stringContaining("more than 48 MiB of memory"),
    });
  });

  test("the result of an apply has each warning once", async () => {
    const warning = '299 - "v1beta1 is \\"old\\"", 299 - "second", 299 - "second"';
    const { client } = await setUp(() => ({ headers: { warning }, body: object }));
    expect((await client.apply(kindInfo(), object)).warnings).toEqual(['v1beta1 is "old"', "second"]);
  });

  test("an error has the causes of the answer, but never the rest of its body", async () => {
    const canary = "canary-in-the-body";
    const { client } = await setUp(() =>
      status(422, "Invalid", "is invalid", {
        details: { causes: [{ reason: "FieldValueInvalid", field: "spec.x", message: "bad" }], uid: canary },
      }),
    );
    const error = await client.apply(kindInfo(), object).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(KubeError);
    expect(error).toMatchObject({ status: 422, reason: "Invalid", causes: [{ field: "spec.x", message: "bad" }] });
    expect(JSON.stringify(error) + String(error)).not.toContain(canary);
  });

  test("a refusal whose body is too large still has its status", async () => {
    const { client } = await setUp(() => ({ status: 422, body: "x".repeat(9 * 1024 * 1024) }));
    await expect(client.apply(kindInfo(), object)).rejects.toMatchObject({
      status: 422,
      verdict: { class: "invalid" },
    });
  });

  test("an error about a Secret repeats nothing of the server's message", async () => {
    const canary = "hunter2";
    const { client } = await setUp(() => status(400, "BadRequest", `illegal base64 data: ${canary}`));
    const secret: ManifestObject = { ...object, kind: "Secret", data: { k: canary } };
    const error = await client.apply(secrets, secret).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ verdict: { class: "invalid" } });
    expect(JSON.stringify(error) + String(error)).not.toContain(canary);
  });

  test("integers beyond 2^53 are read digit for digit", async () => {
    const { client } = await setUp(() => ({ body: '{"metadata":{"name":"a"},"n":9007199254740993}' }));
    expect(await client.get(kindInfo(), key)).toMatchObject({ n: 9007199254740993n });
  });
});

describe("lists", () => {
  const page = (names: readonly string[], token?: string) => ({
    body: { metadata: { continue: token ?? "" }, items: names.map((name) => ({ metadata: { name } })) },
  });
  const names = (items: readonly unknown[]) =>
    items.map((item) => (item as { metadata: { name: string } }).metadata.name);

  test("a list reads all pages and gives each item its kind", async () => {
    const { server, client } = await setUp(({ url }) =>
      url.includes("continue=t1") ? page(["b"]) : page(["a"], "t1"),
    );
    const items = await client.list(kindInfo(), { labelSelector: "app in (x,y)", namespace: "n" });
    expect(names(items)).toEqual(["a", "b"]);
    expect(items[0]).toMatchObject({ apiVersion: "v1", kind: "ConfigMap" });
    expect(server.requests[0]?.url).toBe("/api/v1/namespaces/n/configmaps?limit=500&labelSelector=app+in+%28x%2Cy%29");
  });

  test("a list starts over when its continue token has expired", async () => {
    const expired = status(410, "Expired", "The provided continue parameter is too old");
    const { client } = await setUp(inTurn(page(["a"], "t1"), expired, page(["a"], "t2"), page(["b"])));
    expect(names(await client.list(kindInfo(), {}))).toEqual(["a", "b"]);
  });

  test("a list fails after four starts if its continue token expires each time", async () => {
    const expired = status(410, "Expired", "The provided continue parameter is too old");
    const { server, client } = await setUp(({ url }) => (url.includes("continue=") ? expired : page(["a"], "t1")));
    await expect(client.list(kindInfo(), {})).rejects.toMatchObject({ verdict: { class: "expired" } });
    expect(server.requests.filter(({ url }) => !url.includes("continue="))).toHaveLength(4);
  });

  test("a list fails if its pages together take too much memory", async () => {
    const filler = `[${"0,".repeat(1_400_000)}0]`;
    const large = (name: string, token: string) =>
      `{"metadata":{"continue":"${token}"},"items":[{"metadata":{"name":"${name}"},"x":${filler}}]}`;
    const { server, client } = await setUp(
      inTurn({ body: large("a", "t1") }, { body: large("b", "t2") }, { body: large("c", "t3") }),
    );
    await expect(client.list(kindInfo(), {})).rejects.toMatchObject({ reason: "AnswersTooLarge" });
    expect(server.requests).toHaveLength(3);
  });

  test("a list with metadataOnly asks for metadata", async () => {
    const { server, client } = await setUp(() => page(["a"]));
    await client.list(kindInfo(), { metadataOnly: true });
    expect(server.requests[0]?.headers.accept).toContain("as=PartialObjectMetadataList");
  });

  test.each<readonly [string, RecordedReply]>([
    ["when a page is too large", { body: "x".repeat(25 * 1024 * 1024) }],
    [
      "when the server answers that a page is too large",
      { status: 413, body: "too large", headers: { "content-type": "text/plain" } },
    ],
  ])("a list is tried with smaller pages %s", async (_when, large) => {
    const { server, client } = await setUp(({ url }) => (url.includes("limit=500") ? large : page(["a"])));
    expect(names(await client.list(kindInfo(), {}))).toEqual(["a"]);
    expect(server.requests.map(({ url }) => url)).toEqual([
      "/api/v1/configmaps?limit=500",
      "/api/v1/configmaps?limit=125",
    ]);
  });

  test("a list stops at maxItems", async () => {
    const { server, client } = await setUp(() => page(["a", "b"], "more"));
    await client.list(kindInfo(), { maxItems: 2 });
    expect(server.requests).toHaveLength(1);
    expect(server.requests[0]?.url).toContain("limit=2");
  });
});

describe.each(["aggregated", "plain"] as const)("%s discovery", (form) => {
  function discovery(request: RecordedRequest, stale: readonly string[] = []): RecordedReply {
    const path = request.url;
    const accepts = String(request.headers.accept).includes("as=APIGroupDiscoveryList");
    if (form === "aggregated" && accepts && (path === "/api" || path === "/apis"))
      return { body: aggregatedDiscovery(path, stale) };
    if (stale.some((group) => path.startsWith(`/apis/${group}/`))) return status(503, "ServiceUnavailable", "down");
    return { body: plainDiscovery(path) };
  }

  test("a lookup finds kinds, and sends the requests of discovery once", async () => {
    const { server, client } = await setUp(discovery);
    const found = await client.lookup({ group: "apps", kind: "Deployment", version: "v1" });
    expect(found).toMatchObject({
      outcome: "found",
      info: { group: "apps", version: "v1", plural: "deployments", namespaced: true, hasStatus: true },
    });
    if (form === "aggregated") expect(server.requests.map(({ url }) => url).sort()).toEqual(["/api", "/apis"]);
    const before = server.requests.length;
    await client.lookup({ group: "apps", kind: "Deployment" });
    expect(server.requests).toHaveLength(before);
    expect(await client.lookup({ group: "", kind: "Namespace" })).toMatchObject({ info: { namespaced: false } });
  });

  test("a lookup of a version that is not served names the served versions", async () => {
    const { client } = await setUp(discovery);
    const query = { group: "apps", kind: "Deployment", version: "v1beta1" };
    expect(await client.lookup(query)).toEqual({ outcome: "absent", served: ["v1"] });
  });

  test("a group whose server is down is unavailable, and other groups are still found", async () => {
    const { client } = await setUp((request) => discovery(request, ["metrics.example.com"]), { deadlineMs: 1500 });
    expect(await client.lookup({ group: "metrics.example.com", kind: "Load" })).toMatchObject({
      outcome: "unavailable",
    });
    expect(await client.lookup({ group: "apps", kind: "Deployment" })).toMatchObject({ outcome: "found" });
    await expect(client.listableKinds()).rejects.toMatchObject({
      status: 503,
      message: expect.stringContaining("APIService v1.metrics.example.com is announced, but does not answer"),
    });
  });

  test("a group that Starling may not read is an error, and does not count as unavailable", async () => {
    if (form === "aggregated") return;
    const { client } = await setUp((request) =>
      request.url.startsWith("/apis/apps/") ? status(403, "Forbidden", "not for you") : discovery(request),
    );
    await expect(client.lookup({ group: "apps", kind: "Deployment" })).rejects.toMatchObject({ status: 403 });
    expect(await client.lookup({ group: "", kind: "Namespace" })).toMatchObject({ outcome: "found" });
  });

  test("a kind that is not served is looked up again only after a second of the connection's clock", async () => {
    let now = Date.now();
    const clock = { ...systemClock, now: () => new Date(now) };
    const { server, client } = await setUp(discovery, {}, clock);
    const unknown = { group: "", kind: "Nothing" };
    await client.lookup(unknown);
    const once = server.requests.length;
    now += 1_000;
    for (let n = 0; n < 5; n += 1) expect(await client.lookup(unknown)).toEqual({ outcome: "absent", served: [] });
    expect(server.requests).toHaveLength(once);
    now += 1;
    await client.lookup(unknown);
    expect(server.requests).toHaveLength(2 * once);
  });

  test("a lookup is an error if discovery fails", async () => {
    const { client } = await setUp(() => status(403, "Forbidden", "no"));
    await expect(client.lookup({ group: "apps", kind: "Deployment" })).rejects.toMatchObject({ status: 403 });
  });
});

test("a kind with several versions is used in the one that the server prefers", async () => {
  const versions = ["v1alpha1", "v2", "v1"].map((version) => ({ version, groupVersion: `example.com/${version}` }));
  const group = { name: "example.com", versions, preferredVersion: versions[1] };
  const resource = { name: "widgets", kind: "Widget", namespaced: true, verbs: ["list"] };
  const { client } = await setUp(({ url }) => {
    if (url === "/api") return { body: { kind: "APIVersions", versions: [] } };
    if (url === "/apis") return { body: { kind: "APIGroupList", groups: [group] } };
    return { body: { kind: "APIResourceList", groupVersion: url.slice("/apis/".length), resources: [resource] } };
  });
  const query = { group: "example.com", kind: "Widget" };
  expect(await client.lookup(query)).toMatchObject({ info: { version: "v2" } });
  expect(await client.lookup({ ...query, version: "v1" })).toMatchObject({ info: { version: "v1" } });
  expect(await client.listableKinds()).toMatchObject([{ kind: "Widget", version: "v2" }]);
});
