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
  test("server-side apply", async () => {
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

  test("a dry run says so", async () => {
    const { server, client } = await setUp(({ body }) => ({ body }));
    await client.apply(kindInfo(), object, { dryRun: true });
    expect(server.requests[0]?.url).toContain("&dryRun=All");
  });

  test("a server with a path prefix", async () => {
    const { server, client } = await setUp(() => ({ body: object }), { prefix: "/clusters/prod/" });
    await client.get(kindInfo({ group: "apps", kind: "Deployment", plural: "deployments" }), key);
    expect(server.requests[0]?.url).toBe("/clusters/prod/apis/apps/v1/namespaces/n/deployments/a");
  });

  test("a certificate for another name", async () => {
    const { client } = await setUp(() => ({ body: object }), { tlsServerName: "api.example.com" });
    await expect(client.get(kindInfo(), key)).resolves.toBeDefined();
    const wrong = await setUp(() => ({}), { tlsServerName: "evil.example.com" });
    await expect(wrong.client.get(kindInfo(), key)).rejects.toMatchObject({ verdict: { class: "unreachable" } });
  });

  test("an authority that is not ours", async () => {
    const other = await startRecordingServer(() => ({}));
    closers.push(() => other.stop());
    const { client } = await setUp(() => ({}), { caData: other.caData });
    await expect(client.get(kindInfo(), key)).rejects.toMatchObject({ verdict: { class: "unreachable" } });
  });

  test("a server without TLS is asked nothing", () => {
    const credentials = { token: async () => "t" };
    const begin = () => new KubeConnection({ server: "http://127.0.0.1:8080", caData: "", credentials });
    expect(begin).toThrow(/^the server of a cluster must be an https URL, got "http:\/\/127/);
  });

  test("whoever gave the address is told when nobody is found there, and of no other failure", async () => {
    let told = 0;
    const onUnreachable = () => {
      told += 1;
    };
    const other = await startRecordingServer(() => ({}));
    closers.push(() => other.stop());
    const elsewhere = await setUp(() => ({}), { caData: other.caData, onUnreachable });
    await expect(elsewhere.client.get(kindInfo(), key)).rejects.toMatchObject({ verdict: { class: "unreachable" } });
    expect(told).toBeGreaterThan(0);
    told = 0;
    const broken = await setUp(inTurn({ drop: true }, { body: "x".repeat(9 * 1024 * 1024) }), { onUnreachable });
    await expect(broken.client.get(kindInfo(), key)).rejects.toMatchObject({ reason: "AnswerTooLarge" });
    expect(told).toBe(0);
  });

  test("a server that takes the connection and never speaks", async () => {
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
  ])("%s says that its body is %s", async (method, contentType, send) => {
    const { server, client } = await setUp(() => ({ body: object }));
    await send(client);
    expect(server.requests).toMatchObject([{ method, headers: { "content-type": contentType } }]);
  });

  test.each(["base64", "utf8"] as const)("a client certificate, in %s", async (encoding) => {
    const { cert, key: secret } = await createTlsCertificate(["client.example.com"]);
    const given = (pem: string) => Buffer.from(pem).toString(encoding);
    const credentials = { clientCertificate: { certData: given(cert), keyData: given(secret) } };
    const { server, client } = await setUp(() => ({ body: object }), { credentials });
    await expect(client.get(kindInfo(), key)).resolves.toMatchObject(object);
    expect(server.requests[0]?.headers).not.toHaveProperty("authorization");
  });

  test("deletes under a uid, in the background", async () => {
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
    ["that names it", { ...success, details: { name: "web", uid: "u1" } }, "gone"],
    ["that names another one", { ...success, details: { name: "web", uid: "u2" } }, "asked"],
    ["that names none", success, "asked"],
    ["of a failure", { ...success, status: "Failure", details: { uid: "u1" } }, "asked"],
    ["that is the object", { ...object, details: { uid: "u1" }, status: "Success" }, "asked"],
    ["that is nothing", "", "asked"],
  ])("by an answer %s a deletion is or is not over", async (_what, body, expected) => {
    const { client } = await setUp(() => ({ body }));
    expect(await client.delete(kindInfo(), key, { uid: "u1" })).toBe(expected);
  });

  test("impersonates", async () => {
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

describe("names that would lead elsewhere", () => {
  test.each<readonly [string, KindInfo, { readonly namespace: string; readonly name: string }]>([
    ["a name", kindInfo(), { namespace: "n", name: ".." }],
    ["a name with slashes", kindInfo(), { namespace: "n", name: "../../secrets/x" }],
    ["an encoded name", kindInfo(), { namespace: "n", name: "%2e%2e" }],
    ["half of a surrogate pair", kindInfo(), { namespace: "n", name: "\ud800" }],
    ["an empty name", kindInfo(), { namespace: "n", name: "" }],
    ["a namespace", kindInfo(), { namespace: "..", name: "a" }],
    ["a resource", kindInfo({ plural: "../secrets" }), key],
    ["a group", kindInfo({ group: ".." }), key],
    ["a version", kindInfo({ version: "v1/x" }), key],
  ])("%s is in no request", async (_name, info, place) => {
    const { server, client } = await setUp(() => ({ body: object }));
    const manifest = { ...object, metadata: place };
    const refused = { reason: "InvalidName", verdict: { class: "invalid" } };
    await expect(client.get(info, place)).rejects.toMatchObject(refused);
    await expect((async () => client.apply(info, manifest))()).rejects.toMatchObject(refused);
    await expect(client.delete(info, place, { uid: "u" })).rejects.toMatchObject(refused);
    expect(server.requests).toEqual([]);
  });

  test("what only looks like it is encoded", async () => {
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

  test("and not twice", async () => {
    const { server, client } = await setUp(() => status(401, "Unauthorized", "Unauthorized"));
    await expect(client.get(kindInfo(), key)).rejects.toMatchObject({ verdict: { class: "auth" } });
    expect(server.requests).toHaveLength(2);
  });
});

/** Answers given in turn; the last for ever. */
function inTurn(...replies: readonly RecordedReply[]): () => RecordedReply {
  let turn = 0;
  return () => replies[Math.min(turn++, replies.length - 1)] ?? {};
}

describe("retries", () => {
  test.each<readonly [string, RecordedReply]>([
    ["a dropped connection", { drop: true }],
    ["503", status(503, "ServiceUnavailable", "try later")],
    ["etcd", status(500, "", "etcdserver: leader changed")],
    ["429", { ...status(429, "TooManyRequests", "slow down"), headers: { "retry-after": "1" } }],
    ["a webhook", status(500, "InternalError", 'failed calling webhook "w": connection refused')],
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

  test("a read is sent again, too", async () => {
    const { server, client } = await setUp(inTurn(status(503, "ServiceUnavailable", "try later"), { body: object }));
    await expect(client.get(kindInfo(), key)).resolves.toMatchObject(object);
    expect(server.requests).toHaveLength(2);
  });

  test("a conflict of a PUT is decided anew by the caller", async () => {
    const { server, client } = await setUp(() => status(409, "Conflict", "the object has been modified"));
    await expect(client.replace(kindInfo(), object)).rejects.toMatchObject({ verdict: { class: "conflict" } });
    expect(server.requests).toHaveLength(1);
  });

  test("nothing is waited for beyond the deadline", async () => {
    const reply = { ...status(429, "TooManyRequests", "slow down"), headers: { "retry-after": "20" } };
    const { server, client } = await setUp(() => reply, { deadlineMs: 5000 });
    await expect(client.apply(kindInfo(), object)).rejects.toMatchObject({ verdict: { class: "throttled" } });
    expect(server.requests).toHaveLength(1);
  });
});

describe("answers", () => {
  test("404 of an object is undefined, 404 of a kind is an error", async () => {
    const missing = await setUp(() => status(404, "NotFound", 'configmaps "a" not found'));
    await expect(missing.client.get(kindInfo(), key)).resolves.toBeUndefined();
    const unknown = await setUp(() => ({
      status: 404,
      body: "404 page not found",
      headers: { "content-type": "text/plain" },
    }));
    await expect(unknown.client.get(kindInfo(), key)).rejects.toMatchObject({ verdict: { class: "noMatch" } });
  });

  test("an answer about another object is none", async () => {
    const { client } = await setUp(() => ({ body: { ...object, metadata: { name: "b", namespace: "n" } } }));
    await expect(client.get(kindInfo(), key)).rejects.toMatchObject({
      reason: "AnswerMalformed",
      message: expect.stringContaining("it contains a different object, b;"),
    });
  });

  test("an object is not read that would take more memory than one may, however small its text is", async () => {
    const withValues = (count: number) => `{"metadata":{"name":"a"},"x":[${"0,".repeat(count - 1)}0]}`;
    const { client } = await setUp(inTurn({ body: withValues(600_000) }, { body: withValues(800_000) }));
    await expect(client.get(kindInfo(), key)).resolves.toMatchObject({ metadata: { name: "a" } });
    await expect(client.get(kindInfo(), key)).rejects.toMatchObject({
      reason: "AnswerTooLarge",
      message: expect.stringContaining("more than 48 MiB of memory"),
    });
  });

  test("warnings are collected, each once", async () => {
    const warning = '299 - "v1beta1 is \\"old\\"", 299 - "second", 299 - "second"';
    const { client } = await setUp(() => ({ headers: { warning }, body: object }));
    expect((await client.apply(kindInfo(), object)).warnings).toEqual(['v1beta1 is "old"', "second"]);
  });

  test("an error carries causes, and never the body", async () => {
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

  test("of a refusal that is too large its status is enough", async () => {
    const { client } = await setUp(() => ({ status: 422, body: "x".repeat(9 * 1024 * 1024) }));
    await expect(client.apply(kindInfo(), object)).rejects.toMatchObject({
      status: 422,
      verdict: { class: "invalid" },
    });
  });

  test("an error about a Secret repeats nothing the server said", async () => {
    const canary = "hunter2";
    const { client } = await setUp(() => status(400, "BadRequest", `illegal base64 data: ${canary}`));
    const secret: ManifestObject = { ...object, kind: "Secret", data: { k: canary } };
    const error = await client.apply(secrets, secret).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ verdict: { class: "invalid" } });
    expect(JSON.stringify(error) + String(error)).not.toContain(canary);
  });

  test("integers beyond 2^53 come back digit for digit", async () => {
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

  test("follows pages and gives items their kind", async () => {
    const { server, client } = await setUp(({ url }) =>
      url.includes("continue=t1") ? page(["b"]) : page(["a"], "t1"),
    );
    const items = await client.list(kindInfo(), { labelSelector: "app in (x,y)", namespace: "n" });
    expect(names(items)).toEqual(["a", "b"]);
    expect(items[0]).toMatchObject({ apiVersion: "v1", kind: "ConfigMap" });
    expect(server.requests[0]?.url).toBe("/api/v1/namespaces/n/configmaps?limit=500&labelSelector=app+in+%28x%2Cy%29");
  });

  test("starts over when the server has forgotten the page", async () => {
    const expired = status(410, "Expired", "The provided continue parameter is too old");
    const { client } = await setUp(inTurn(page(["a"], "t1"), expired, page(["a"], "t2"), page(["b"])));
    expect(names(await client.list(kindInfo(), {}))).toEqual(["a", "b"]);
  });

  test("ends when the server forgets each page before the next", async () => {
    const expired = status(410, "Expired", "The provided continue parameter is too old");
    const { server, client } = await setUp(({ url }) => (url.includes("continue=") ? expired : page(["a"], "t1")));
    await expect(client.list(kindInfo(), {})).rejects.toMatchObject({ verdict: { class: "expired" } });
    expect(server.requests.filter(({ url }) => !url.includes("continue="))).toHaveLength(4);
  });

  test("ends when its pages take more memory together than one look may", async () => {
    const filler = `[${"0,".repeat(1_400_000)}0]`;
    const large = (name: string, token: string) =>
      `{"metadata":{"continue":"${token}"},"items":[{"metadata":{"name":"${name}"},"x":${filler}}]}`;
    const { server, client } = await setUp(
      inTurn({ body: large("a", "t1") }, { body: large("b", "t2") }, { body: large("c", "t3") }),
    );
    await expect(client.list(kindInfo(), {})).rejects.toMatchObject({ reason: "AnswersTooLarge" });
    expect(server.requests).toHaveLength(3);
  });

  test("asks for metadata only", async () => {
    const { server, client } = await setUp(() => page(["a"]));
    await client.list(kindInfo(), { metadataOnly: true });
    expect(server.requests[0]?.headers.accept).toContain("as=PartialObjectMetadataList");
  });

  test.each<readonly [string, RecordedReply]>([
    ["when a page is too large", { body: "x".repeat(25 * 1024 * 1024) }],
    ["when the server says that it is", { status: 413, body: "too large", headers: { "content-type": "text/plain" } }],
  ])("takes smaller pages %s", async (_when, large) => {
    const { server, client } = await setUp(({ url }) => (url.includes("limit=500") ? large : page(["a"])));
    expect(names(await client.list(kindInfo(), {}))).toEqual(["a"]);
    expect(server.requests.map(({ url }) => url)).toEqual([
      "/api/v1/configmaps?limit=500",
      "/api/v1/configmaps?limit=125",
    ]);
  });

  test("stops at the number asked for", async () => {
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

  test("finds kinds, and asks once", async () => {
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

  test("says which versions are served instead", async () => {
    const { client } = await setUp(discovery);
    const query = { group: "apps", kind: "Deployment", version: "v1beta1" };
    expect(await client.lookup(query)).toEqual({ outcome: "absent", served: ["v1"] });
  });

  test("a group whose server is down is unavailable, and no other is", async () => {
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

  test("a group that may not be read is no silent one", async () => {
    if (form === "aggregated") return;
    const { client } = await setUp((request) =>
      request.url.startsWith("/apis/apps/") ? status(403, "Forbidden", "not for you") : discovery(request),
    );
    await expect(client.lookup({ group: "apps", kind: "Deployment" })).rejects.toMatchObject({ status: 403 });
    expect(await client.lookup({ group: "", kind: "Namespace" })).toMatchObject({ outcome: "found" });
  });

  test("a kind that is not served is asked for again after a second of the connection's clock, and not before", async () => {
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

  test("a discovery that fails is no empty discovery", async () => {
    const { client } = await setUp(() => status(403, "Forbidden", "no"));
    await expect(client.lookup({ group: "apps", kind: "Deployment" })).rejects.toMatchObject({ status: 403 });
  });
});

test("of several versions a kind is taken in the one that the server prefers", async () => {
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
