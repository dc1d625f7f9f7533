/** The limits of a client on the size and time of an API server's answers, and on what it repeats of them. */
import { createServer, type Server } from "node:https";
import { afterEach, describe, expect, test } from "vitest";
import { listenOnLoopback } from "#local/base/loopback-server.ts";
import { createTlsCertificate } from "#local/base/tls-certificate.ts";
import { KubeConnection } from "#shared/adapters/kube/kube-connection.ts";
import { type KubeEndpoint, KubeTransport } from "#shared/adapters/kube/kube-transport.ts";
import type { ClusterClient, KindInfo } from "#shared/kube/cluster-client.ts";
import { type ManifestObject, stringAt } from "#shared/kube/kube-object.ts";
import { aggregatedDiscovery } from "#test/support/discovery-documents.ts";
import { kindInfo } from "#test/support/kind-info.ts";
import { type RecordedReply, type RecordedRequest, startRecordingServer } from "#test/support/recording-server.ts";

const closers: (() => Promise<void> | void)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0)) await close();
});

const credentials = { token: async () => "t0k3n" };

async function connect(
  reply: (request: RecordedRequest, index: number) => RecordedReply,
  endpoint: Partial<KubeEndpoint> = {},
) {
  let count = 0;
  const server = await startRecordingServer((request) => reply(request, count++));
  const connection = new KubeConnection({ server: server.url, caData: server.caData, credentials, ...endpoint });
  closers.push(
    () => connection.close(),
    () => server.stop(),
  );
  const client = (impersonate?: { readonly user: string; readonly groups?: readonly string[] }) =>
    connection.client({ deadlineMs: Date.now() + 600_000, ...(impersonate === undefined ? {} : { impersonate }) });
  return { server, connection, client: client(), clientAs: client };
}

/** A server whose answers are all written by hand. */
async function transportTo(server: Server, caData: string, endpoint: Partial<KubeEndpoint> = {}) {
  const { origin, stop } = await listenOnLoopback(server);
  const transport = new KubeTransport({ server: origin, caData, credentials, ...endpoint });
  closers.push(() => transport.close(), stop);
  return (rest: { readonly timeoutMs?: number; readonly maxBodyBytes?: number; readonly path?: string } = {}) =>
    transport.send({ method: "GET", path: "/x", timeoutMs: 20_000, maxBodyBytes: 1_000, ...rest });
}

const key = { namespace: "n", name: "a" };
const object: ManifestObject = { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "a", namespace: "n" } };

function page(items: string, token = ""): RecordedReply {
  return { body: `{"metadata":{"continue":"${token}"},"items":${items}}` };
}

const expired: RecordedReply = {
  status: 410,
  body: { kind: "Status", code: 410, reason: "Expired", message: "The provided continue parameter is too old" },
};

describe("a list", () => {
  // A thousand requests take long on a busy machine.
  test("a list of more than a thousand pages is an error", { timeout: 300_000 }, async () => {
    const { server, client } = await connect((_request, index) => page("[]", `t${index}`));
    await expect(client.list(kindInfo(), {})).rejects.toMatchObject({
      reason: "ListTooLong",
      message: expect.stringContaining(
        "the list continues after 0 items on 1000 pages, and 100000 items on 1000 pages are the limit; delete objects",
      ),
    });
    expect(server.requests).toHaveLength(1_000);
  });

  test("a list of more than a hundred thousand items is an error, even if the caller keeps none of them", async () => {
    const items = (count: number) => `[${Array(count).fill('{"metadata":{"name":"a"}}').join(",")}]`;
    const keep = () => false;
    const longer = await connect((_request, index) => page(items(50_001), `t${index}`));
    await expect(longer.client.list(kindInfo(), { keep })).rejects.toMatchObject({
      reason: "ListTooLong",
      message: expect.stringContaining("the list continues after 100002 items on 2 pages"),
    });
    const ended = await connect((_request, index) => page(items(50_000), index < 2 ? `t${index}` : ""));
    expect(await ended.client.list(kindInfo(), { keep })).toEqual([]);
    expect(ended.server.requests).toHaveLength(3);
  });

  const large = (name: string) => `[{"metadata":{"name":"${name}"},"x":[${"0,".repeat(1_400_000)}0]}]`;

  test("pages of which the caller keeps nothing do not count against the memory limit of a list", async () => {
    const { client } = await connect((_request, index) => page(large(`a${index}`), index < 3 ? `t${index}` : ""));
    const found = await client.list(kindInfo(), { keep: (item) => stringAt(item, "metadata", "name") === "a3" });
    expect(found).toMatchObject([{ metadata: { name: "a3" } }]);
  });

  test("pages that are read again do not count twice against the memory limit of a list", async () => {
    const replies = [page(large("a"), "t1"), page(large("b"), "t2"), expired, page(large("a"), "t3"), page(large("b"))];
    const { client } = await connect((_request, index) => replies[index] ?? {});
    expect(await client.list(kindInfo(), {})).toHaveLength(2);
  });

  test("a list whose items are null is empty", async () => {
    const { client } = await connect(() => page("null"));
    expect(await client.list(kindInfo(), {})).toEqual([]);
  });

  test("a list is tried with smaller pages, down to one object a page, while the server refuses their size", async () => {
    const { server, client } = await connect(() => ({ status: 413, body: "too large" }));
    await expect(client.list(kindInfo(), { maxItems: 100 })).rejects.toMatchObject({ status: 413 });
    expect(server.requests.map(({ url }) => url.split("limit=")[1])).toEqual(["100", "25", "6", "1"]);
  });

  test("a list covers one namespace, all namespaces, or a kind without namespaces", async () => {
    const { server, client } = await connect(() => page("[]"));
    await client.list(kindInfo(), { namespace: "n" });
    await client.list(kindInfo(), {});
    await client.list(kindInfo({ namespaced: false }), { namespace: "n" });
    expect(server.requests.map(({ url }) => url.split("?")[0])).toEqual([
      "/api/v1/namespaces/n/configmaps",
      "/api/v1/configmaps",
      "/api/v1/configmaps",
    ]);
    expect(server.requests[0]?.headers.accept).toBe("application/json");
  });
});

describe("the message of a server about a value", () => {
  const secret = kindInfo({ kind: "Secret", plural: "secrets" });
  const calls: readonly (readonly [string, (client: ClusterClient, info: KindInfo) => Promise<unknown>])[] = [
    ["get", (client, info) => client.get(info, key)],
    ["list", (client, info) => client.list(info, {})],
    ["apply", (client, info) => client.apply(info, object)],
    ["create", (client, info) => client.create(info, object)],
    ["replace", (client, info) => client.replace(info, object)],
    ["patch", (client, info) => client.patch(info, key, [])],
    ["delete", (client, info) => client.delete(info, key, { uid: "u" })],
  ];

  test.each(calls)(
    "the error of %s repeats the message of the server, unless it may show the value of a Secret",
    async (_name, call) => {
      const { client } = await connect(() => ({
        status: 400,
        body: { kind: "Status", code: 400, reason: "BadRequest", message: "illegal value: hunter2" },
      }));
      await expect(call(client, secret)).rejects.toMatchObject({ message: expect.not.stringContaining("hunter2") });
      for (const shown of [kindInfo(), { ...secret, group: "example.com" }]) {
        await expect(call(client, shown)).rejects.toMatchObject({ message: "illegal value: hunter2" });
      }
    },
  );
});

describe("an answer", () => {
  test.each([
    [299, undefined],
    [300, "Http300"],
  ])("an answer with the status %i has the error %j", async (status, reason) => {
    const { client } = await connect(() => ({ status, body: object }));
    if (reason === undefined) await expect(client.get(kindInfo(), key)).resolves.toMatchObject(object);
    else await expect(client.get(kindInfo(), key)).rejects.toMatchObject({ status, reason });
  });

  test.each([
    ["[]", "it is a list, expected an object"],
    ['{"metadata":{}}', "metadata.name is missing, expected a name"],
  ])("the answer %s does not count as one of an API server", async (body, problem) => {
    const { client } = await connect(() => ({ body }));
    await expect(client.apply(kindInfo(), object)).rejects.toMatchObject({
      message: expect.stringContaining(`the answer does not come from an API server: ${problem}; check what answers`),
    });
  });

  test("the version of a server is empty if its answer has none", async () => {
    const { client } = await connect((_request, index) => ({ body: index === 0 ? { gitVersion: "v1.36.2" } : {} }));
    expect(await client.serverVersion()).toBe("v1.36.2");
    expect(await client.serverVersion()).toBe("");
  });
});

test("an apply over a version is not sent again after a conflict", async () => {
  const conflict = { status: 409, body: { kind: "Status", code: 409, reason: "Conflict", message: "modified" } };
  const { server, client } = await connect(() => conflict);
  const metadata = { ...object.metadata, resourceVersion: "5" };
  await expect(client.apply(kindInfo(), { ...object, metadata })).rejects.toMatchObject({ class: "conflict" });
  expect(server.requests).toHaveLength(1);
});

test("discovery is requested once for each identity, and its kinds are counted", async () => {
  const { server, connection, client, clientAs } = await connect(({ url }) => ({
    body: aggregatedDiscovery(url === "/api" ? "/api" : "/apis"),
  }));
  expect(connection.keptKinds).toBe(0);
  const ana = { user: "ana", groups: ["sre", "dev"] };
  const query = { group: "apps", kind: "Deployment" };
  for (const asking of [client, clientAs(), clientAs(ana), clientAs({ ...ana }), clientAs({ user: "bob" })]) {
    expect(await asking.lookup(query)).toMatchObject({ outcome: "found" });
  }
  const users = server.requests.map(({ headers }) => headers["impersonate-user"] ?? "itself");
  expect(users.sort()).toEqual(["ana", "ana", "bob", "bob", "itself", "itself"]);
  const [asAna] = server.requests.filter(({ headers }) => headers["impersonate-user"] === "ana");
  expect(asAna?.headers["impersonate-group"]).toBe("sre, dev");
  expect(connection.keptKinds).toBe(3 * 6);
});

describe("a transport", () => {
  async function tlsServer() {
    const tls = await createTlsCertificate(["127.0.0.1"]);
    return { tls, caData: Buffer.from(tls.cert).toString("base64") };
  }

  test.each(["before it answers", "in the middle of its answer"])(
    "a request fails after its timeout if the server falls silent %s, and idle connections are replaced",
    async (when) => {
      const { tls, caData } = await tlsServer();
      let secured = 0;
      const server = createServer(tls, (request, response) => {
        if (request.url !== "/silent") response.end("{}");
        else if (when !== "before it answers") response.writeHead(200).write("{");
      });
      server.on("secureConnection", () => {
        secured += 1;
      });
      const send = await transportTo(server, caData);
      await Promise.all([send(), send()]);
      expect(secured).toBe(2);
      await expect(send({ path: "/silent", timeoutMs: 150 })).rejects.toMatchObject({
        reason: "ETIMEDOUT",
        message: expect.stringContaining("no answer within 150 ms"),
      });
      // The other idle connection was as old, and is not used again.
      await send();
      expect(secured).toBe(3);
    },
  );

  test("a request whose time is already up fails at once", async () => {
    const { tls, caData } = await tlsServer();
    const send = await transportTo(
      createServer(tls, () => {}),
      caData,
    );
    await expect(send({ timeoutMs: -5 })).rejects.toMatchObject({ reason: "ETIMEDOUT" });
  });

  test("a body that is larger than allowed is an error, and of a refusal the status is kept", async () => {
    const { tls, caData } = await tlsServer();
    const server = createServer(tls, (request, response) => {
      const [status = "", bytes = ""] = request.url?.slice(1).split("/") ?? [];
      response.writeHead(Number(status)).end("x".repeat(Number(bytes)));
    });
    const send = await transportTo(server, caData);
    expect((await send({ path: "/200/1000" })).text).toHaveLength(1_000);
    await expect(send({ path: "/200/1001" })).rejects.toMatchObject({ reason: "AnswerTooLarge" });
    expect(await send({ path: "/400/1000" })).toMatchObject({ status: 400, text: "x".repeat(1_000) });
    expect(await send({ path: "/400/1001" })).toMatchObject({ status: 400, text: "" });
    const mebibyte = 1024 * 1024;
    const much = { maxBodyBytes: 8 * mebibyte };
    expect((await send({ ...much, path: `/300/${mebibyte}` })).text).toHaveLength(mebibyte);
    expect((await send({ ...much, path: `/300/${mebibyte + 1}` })).text).toBe("");
    expect((await send({ ...much, path: `/299/${mebibyte + 1}` })).text).toHaveLength(mebibyte + 1);
  });

  test.each([
    [undefined, 8],
    [2, 2],
  ])("a connection with maxSockets %s opens at most %i sockets", async (maxSockets, connections) => {
    const { server, client } = await connect(() => ({ body: object }), maxSockets === undefined ? {} : { maxSockets });
    await Promise.all(Array.from({ length: 30 }, () => client.get(kindInfo(), key)));
    expect(server.connections()).toBe(connections);
  });

  test("a server is verified by the authorities of the machine if the endpoint has no caData", async () => {
    const { tls } = await tlsServer();
    const { origin, stop } = await listenOnLoopback(createServer(tls, (_request, response) => response.end()));
    const transport = new KubeTransport({ server: origin, credentials });
    closers.push(() => transport.close(), stop);
    const asked = { method: "GET", path: "/x", timeoutMs: 20_000, maxBodyBytes: 1_000 } as const;
    await expect(transport.send(asked)).rejects.toMatchObject({ class: "unreachable" });
  });

  test("a request with a refused client certificate is not tried again", async () => {
    const { cert, key: secret } = await createTlsCertificate(["client.example.com"]);
    const { server, client } = await connect(() => ({ status: 401, body: {} }), {
      credentials: { clientCertificate: { certData: cert, keyData: secret } },
    });
    await expect(client.get(kindInfo(), key)).rejects.toMatchObject({ class: "auth" });
    expect(server.requests).toHaveLength(1);
  });
});
