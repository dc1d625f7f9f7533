import type { ServerResponse } from "node:http";
import { createServer } from "node:https";
import { afterEach, expect, test, vi } from "vitest";
import { listenOnLoopback } from "#local/base/loopback-server.ts";
import { createTlsCertificate } from "#local/base/tls-certificate.ts";
import { KubeConnection } from "#shared/adapters/kube/kube-connection.ts";
import { systemClock } from "#shared/adapters/system.ts";
import type { ManifestObject } from "#shared/kube/kube-object.ts";
import { kindInfo } from "#test/support/kind-info.ts";

const configMaps = kindInfo();
const named = (name: string): ManifestObject => ({
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: { name, namespace: "n" },
});

const closers: (() => Promise<void> | void)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0)) await close();
});

/** Records the order of all tokens, permits and requests that the server receives. */
async function begin(answer: (what: string, response: ServerResponse) => void) {
  const order: string[] = [];
  const tls = await createTlsCertificate(["127.0.0.1"]);
  const server = createServer(tls, (request, response) => {
    const name = /configmaps\/(\w+)/.exec(request.url ?? "")?.[1] ?? "";
    request.resume().on("end", () => {
      order.push(`${request.method} ${name}`);
      answer(name, response);
    });
  });
  const { origin, stop } = await listenOnLoopback(server);
  let aheadMs = 0;
  const clock = { ...systemClock, now: () => new Date(Date.now() + aheadMs) };
  const endpoint = {
    server: origin,
    caData: Buffer.from(tls.cert).toString("base64"),
    maxSockets: 1,
    credentials: {
      async token() {
        order.push("token");
        return "t";
      },
    },
  };
  const connection = new KubeConnection(endpoint, clock);
  closers.push(() => connection.close(), stop);
  const client = connection.client({ deadlineMs: Date.now() + 20_000 });
  let withheld: Error | undefined;
  return {
    order,
    client: client.guardedBy(async () => {
      order.push("permit");
      if (withheld !== undefined) throw withheld;
    }),
    withhold(error: Error) {
      withheld = error;
    },
    letPass(ms: number) {
      aheadMs += ms;
    },
  };
}

function reply(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
}

const failures = [503, 401];

test("a write gets a permit before each try and after its token, and a read needs none", async () => {
  const left = [...failures];
  const { order, client } = await begin((name, response) => reply(response, left.shift() ?? 200, named(name)));
  await client.apply(configMaps, named("a"));
  const each = ["token", "permit", "PATCH a"];
  expect(order).toEqual([...each, ...each, ...each]);
  order.length = 0;
  await client.get(configMaps, { namespace: "n", name: "a" });
  expect(order).toEqual(["token", "GET a"]);
});

test.each([
  ["apply", "PATCH a"],
  ["create", "POST "],
  ["replace", "PUT a"],
  ["patch", "PATCH a"],
  ["delete", "DELETE a"],
] as const)(
  "%s needs a permit, and the error of a refused permit reaches the caller unchanged",
  async (method, request) => {
    const { order, client, withhold } = await begin((_name, response) => reply(response, 200, named("a")));
    const key = { namespace: "n", name: "a" };
    const write = {
      apply: () => client.apply(configMaps, named("a")),
      create: () => client.create(configMaps, named("a")),
      replace: () => client.replace(configMaps, named("a")),
      patch: () => client.patch(configMaps, key, []),
      delete: () => client.delete(configMaps, key, { uid: "u" }),
    }[method];
    await write();
    expect(order).toEqual(["token", "permit", request]);
    const why = new Error("withheld");
    withhold(why);
    await expect(write()).rejects.toBe(why);
    expect(order).toEqual(["token", "permit", request, "token", "permit"]);
  },
);

test("a write gets its permit only when it has a connection", async () => {
  const held: ServerResponse[] = [];
  const { order, client } = await begin((name, response) => {
    if (name === "a") held.push(response);
    else reply(response, 200, named(name));
  });
  const first = client.apply(configMaps, named("a"));
  await vi.waitFor(() => expect(held).toHaveLength(1));
  const second = client.apply(configMaps, named("b"));
  await vi.waitFor(() => expect(order).toHaveLength(4));
  for (const response of held) {
    order.push("a is answered");
    reply(response, 200, named("a"));
  }
  await Promise.all([first, second]);
  expect(order).toEqual(["token", "permit", "PATCH a", "token", "a is answered", "permit", "PATCH b"]);
});

test("a write with a permit is not sent if its time is up by then", async () => {
  const held: ServerResponse[] = [];
  const { order, client, letPass } = await begin((_name, response) => void held.push(response));
  const first = client.apply(configMaps, named("a"));
  await vi.waitFor(() => expect(held).toHaveLength(1));
  const second = client.apply(configMaps, named("b"));
  await vi.waitFor(() => expect(order).toHaveLength(4));
  letPass(20_000);
  for (const response of held) reply(response, 200, named("a"));
  await first;
  await expect(second).rejects.toMatchObject({
    status: undefined,
    message: expect.stringContaining("it was not sent, because its time was up"),
  });
  expect(order).not.toContain("PATCH b");
});
