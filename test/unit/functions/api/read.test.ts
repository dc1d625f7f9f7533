import { describe, expect, test } from "vitest";
import { starlingVersion } from "#shared/base/starling-version.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import type { RolloutStateRow } from "#shared/fleet/rows/rollout-rows.ts";
import { apiFixture, cluster, httpEvent, source, sync, syncGroup } from "#test/unit/functions/api/api-fixture.ts";
import { shop, stageRecord, stageRunRow, storeRollout, syncRow } from "#test/unit/functions/api/row-fixture.ts";

function names(body: { items: { metadata: { name: string } }[] }) {
  return body.items.map((item) => item.metadata.name);
}

async function everyPage(api: ReturnType<typeof apiFixture>, path: string) {
  const items: unknown[] = [];
  let next: string | undefined;
  do {
    const separator = path.includes("?") ? "&" : "?";
    const answer = await api.call("GET", next === undefined ? path : `${path}${separator}continue=${next}`);
    items.push(...answer.body.items);
    next = answer.body.metadata.continue;
  } while (next !== undefined);
  return items as { metadata: { name: string }; spec: { cluster: string }; status: { state: string } }[];
}

describe("the read routes of objects", () => {
  test("the API returns an object with its generation, and 404 for an unknown object", async () => {
    const api = apiFixture();
    await api.call("POST", "/v1/apply", { documents: [source("app")] });
    const answer = await api.call("GET", "/v1/namespaces/payments/sources/app");
    expect(answer.body).toEqual({
      apiVersion: "starling.dev/v1alpha1",
      kind: "Source",
      metadata: {
        name: "app",
        namespace: "payments",
        uid: "uid-1",
        generation: 1,
        resourceVersion: String(Date.parse("2026-11-20T08:00:00.000Z")),
        creationTimestamp: "2026-11-20T08:00:00.000Z",
      },
      spec: {
        git: { url: "https://github.com/acme/app", ref: { branch: "main" } },
        paths: ["."],
        interval: "5m",
      },
      status: { conditions: [] },
    });
    expect(await api.call("GET", "/v1/namespaces/payments/sources/none")).toEqual({
      status: 404,
      body: { code: "NotFound", message: "Source payments/none does not exist" },
    });
  });

  test("the API lists objects by label, in pages, of one namespace or of all", async () => {
    const api = apiFixture();
    const documents = Array.from({ length: 7 }, (_, index) =>
      cluster(`c${index}`, { env: index % 2 === 0 ? "prod" : "dev" }),
    );
    const other = { ...source("lib"), metadata: { name: "lib", namespace: "other" } };
    await api.call("POST", "/v1/apply", { documents: [...documents, source("app"), other] });
    const all = await everyPage(api, "/v1/clusters?limit=2");
    expect(all.map((item) => item.metadata.name)).toEqual(["c0", "c1", "c2", "c3", "c4", "c5", "c6"]);
    const prod = await api.call("GET", `/v1/clusters?labelSelector=${encodeURIComponent("env in (prod),env!=dev")}`);
    expect(names(prod.body)).toEqual(["c0", "c2", "c4", "c6"]);
    expect(prod.body.kind).toBe("ClusterList");
    expect(names((await api.call("GET", "/v1/sources")).body)).toEqual(["lib", "app"]);
    expect(names((await api.call("GET", "/v1/namespaces/payments/sources")).body)).toEqual(["app"]);
  });

  test.each([
    ["limit=0", 'limit is "0"; expected a whole number from 1 to 1000'],
    ["labelSelector=a%20b", 'labelSelector: "a b" is no label requirement'],
  ])("a list with ?%s is refused", async (query, message) => {
    const answer = await apiFixture().call("GET", `/v1/clusters?${query}`);
    expect(answer.status).toBe(400);
    expect(answer.body.message).toContain(message);
  });
});

describe("the read routes of Syncs", () => {
  async function withSyncs() {
    const api = apiFixture();
    await api.call("POST", "/v1/apply", {
      documents: [
        source("app"),
        syncGroup("shop", [
          { name: "web", source: "app", path: "web" },
          { name: "api", source: "app" },
        ]),
        sync("extra", { cluster: "c1", source: "app" }),
        sync("later", { cluster: "c9", source: "app" }),
      ],
    });
    await api.table.write([
      { put: syncRow("c1", "shop.web") },
      { put: syncRow("c1", "shop.api", { phase: "Failed", reason: "ApplyFailed", message: "2 of 4 objects failed" }) },
      { put: syncRow("c2", "shop.web", { phase: "Verifying" }) },
      { put: syncRow("c1", "extra") },
    ]);
    return api;
  }

  test("the list of Syncs has those of groups and those that users wrote, in pages of any size", async () => {
    const api = await withSyncs();
    const expected = [
      "extra c1 Ready",
      "later c9 Pending",
      "shop.web c2 Verifying",
      "shop.api c1 Failed",
      "shop.web c1 Ready",
    ];
    for (const limit of [1, 2, 3, 500]) {
      const items = await everyPage(api, `/v1/namespaces/payments/syncs?limit=${limit}`);
      const found = items.map((item) => `${item.metadata.name} ${item.spec.cluster} ${item.status.state}`);
      expect(found).toEqual(expected);
    }
    expect(await everyPage(api, "/v1/syncs?limit=2")).toHaveLength(5);
    expect(await everyPage(api, "/v1/namespaces/none/syncs")).toEqual([]);
  });

  test("the list of Syncs can be filtered by state, by group and by cluster", async () => {
    const api = await withSyncs();
    await api.call("POST", "/v1/apply", { documents: [cluster("c1")] });
    const list = async (path: string) =>
      (await everyPage(api, path)).map((item) => `${item.metadata.name} ${item.spec.cluster}`);
    expect(await list("/v1/namespaces/payments/syncs?state=Failed")).toEqual(["shop.api c1"]);
    expect(await list("/v1/namespaces/payments/syncgroups/shop/syncs")).toEqual([
      "shop.web c2",
      "shop.api c1",
      "shop.web c1",
    ]);
    expect(await list("/v1/namespaces/payments/syncgroups/shop/syncs?state=Verifying")).toEqual(["shop.web c2"]);
    expect(await list("/v1/clusters/c1/syncs")).toEqual(["extra c1", "shop.api c1", "shop.web c1"]);
    expect(await list("/v1/clusters/c1/syncs?namespace=other")).toEqual([]);
    expect(await api.call("GET", "/v1/clusters/c7/syncs")).toMatchObject({
      status: 404,
      body: { message: "Cluster c7 does not exist" },
    });
  });

  test("forgotten Syncs are in no list, unless the list is filtered by their state", async () => {
    const api = await withSyncs();
    await api.call("POST", "/v1/apply", { documents: [cluster("c1"), cluster("c2")] });
    const forget = (name: string) => api.call("DELETE", `/v1/clusters/${name}?cascade=orphan&confirm=true`);
    const list = async (path: string) =>
      (await everyPage(api, path)).map((item) => `${item.metadata.name} ${item.spec.cluster} ${item.status.state}`);
    expect((await forget("c1")).status).toBe(200);
    // A Sync that a user wrote stays as long as it is written, and is Pending while it is on no cluster.
    const left = ["extra c1 Pending", "later c9 Pending", "shop.web c2 Verifying"];
    for (const limit of [1, 500]) expect(await list(`/v1/syncs?limit=${limit}`)).toEqual(left);
    expect(await list("/v1/namespaces/payments/syncgroups/shop/syncs")).toEqual(["shop.web c2 Verifying"]);
    expect(await list("/v1/syncs?state=Orphaned")).toEqual(["shop.api c1 Orphaned", "shop.web c1 Orphaned"]);
    expect((await api.call("GET", "/v1/clusters/c1/syncs")).status).toBe(404);
    await api.call("POST", "/v1/apply", { documents: [cluster("c1")] });
    expect(await list("/v1/clusters/c1/syncs")).toEqual(["extra c1 Pending"]);
  });

  test("a Sync shows its desired state and its observed state", async () => {
    const api = await withSyncs();
    const answer = await api.call("GET", "/v1/namespaces/payments/syncs/shop.web?cluster=c1");
    expect(answer.body).toMatchObject({
      kind: "Sync",
      metadata: { name: "shop.web", namespace: "payments" },
      spec: { cluster: "c1", source: "app", path: "web" },
      status: {
        group: "shop",
        template: "web",
        state: "Ready",
        desired: { revision: "main@sha1:9f2c1ab", rollout: 12, attempt: 2 },
        observed: { objects: { total: 4, ready: 4 } },
      },
    });
    expect((await api.call("GET", "/v1/namespaces/payments/syncs/shop.web")).status).toBe(400);
    expect((await api.call("GET", "/v1/namespaces/payments/syncs/shop.web?cluster=c7")).status).toBe(404);
    const own = await api.call("GET", "/v1/namespaces/payments/syncs/extra");
    expect(own.body).toMatchObject({
      metadata: { generation: 1 },
      status: { state: "Ready", plan: { conditions: [] } },
    });
  });
});

describe("the read routes of rollouts", () => {
  const path = "/v1/namespaces/payments/syncgroups/shop/rollouts";
  const clusters = (body: { items: { cluster: string }[] }) => body.items.map((item) => item.cluster);

  async function withRollout() {
    const api = apiFixture();
    await api.call("POST", "/v1/apply", { documents: [syncGroup("shop", [{ name: "web", source: "app" }])] });
    await storeRollout(api, { number: 11, states: { canary: ["Succeeded"], rest: ["Succeeded"] } });
    await storeRollout(api, {
      number: 12,
      states: { canary: ["Succeeded"], rest: ["Failed", "Applying", "Rendering", "Waiting", "Waiting"] },
    });
    await api.table.write([
      { put: syncRow("c2", "shop.web", { phase: "Failed", message: "Deployment shop/web: ImagePullBackOff" }) },
      { put: syncRow("c3", "shop.web", { phase: "Applying", reason: "Progressing", message: "2 of 4 objects" }) },
    ]);
    return api;
  }

  test("rollouts are listed newest first, and found by name", async () => {
    const api = await withRollout();
    expect(names((await api.call("GET", path)).body)).toEqual(["shop-12", "shop-11"]);
    const first = await api.call("GET", `${path}?limit=1`);
    expect(names(first.body)).toEqual(["shop-12"]);
    expect(names((await api.call("GET", `${path}?limit=1&continue=${first.body.metadata.continue}`)).body)).toEqual([
      "shop-11",
    ]);
    const newest = await everyPage(api, "/v1/namespaces/payments/rollouts");
    expect(newest.map((item) => item.metadata.name)).toEqual(["shop-12"]);
    const one = await api.call("GET", "/v1/namespaces/payments/rollouts/shop-12");
    expect(one.body).toMatchObject({ spec: { number: 12 }, status: { phase: "Rolling" } });
    const missing = [
      ["shop-13", "SyncGroup payments/shop has no rollout 13"],
      ["none-12", "Rollout payments/none-12 does not exist"],
      ...["shop-12x", "shop-x12", "shop", "shop-012"].map((name) => [
        name,
        "is no rollout's name; expected NAME-NUMBER",
      ]),
    ];
    for (const [name, message] of missing) {
      expect(await api.call("GET", `/v1/namespaces/payments/rollouts/${name}`)).toMatchObject({
        status: 404,
        body: { code: "NotFound", message: expect.stringContaining(String(message)) },
      });
    }
    expect((await api.call("GET", `${path}/newest`)).body).toEqual(one.body);
    expect((await api.call("GET", path)).body.items[0]).toEqual(one.body);
    expect(newest[0]).toEqual(one.body);
  });

  test("a rollout is shown with its stage runs, stage by stage", async () => {
    const api = await withRollout();
    const { body } = await api.call("GET", `${path}/12`);
    expect(body).toMatchObject({
      kind: "Rollout",
      metadata: { name: "shop-12", namespace: "payments", uid: "SyncGroup/shop/12" },
      spec: { number: 12, revision: "main@sha1:9f2c1ab", trigger: "plan" },
      status: {
        phase: "Rolling",
        message: "stage rest goes on",
        size: 6,
        stages: [
          { name: "canary", phase: "Passed", size: 1, snapshot: 0, counts: { Succeeded: 1 } },
          { name: "rest", phase: "Updating", size: 5, counts: { Failed: 1, Assigned: 1, Rendering: 1, Waiting: 2 } },
        ],
      },
    });
    expect((await api.call("GET", `${path}/11`)).body.status).toMatchObject({ phase: "Complete" });
  });

  test("a rollout with several snapshots of a stage is shown with the newest snapshot", async () => {
    const api = await withRollout();
    const again = stageRunRow({ rollout: 12, stage: "rest", snapshot: 1 }, ["Waiting", "Waiting"]);
    const rolloutState = await api.table.get(keys.rolloutState(shop));
    const [canary, rest] = rolloutState?.stages ?? [];
    if (canary === undefined || rest === undefined || rolloutState === undefined) throw new Error("they were stored");
    const snapshot: RolloutStateRow = { ...rolloutState, stages: [canary, stageRecord(again)] };
    await api.table.write([{ put: again }, { put: snapshot }]);
    const { body } = await api.call("GET", `${path}/12`);
    expect(body.status.stages).toMatchObject([{ name: "canary" }, { name: "rest", snapshot: 1, size: 2 }]);
    expect(body.status.stages).toHaveLength(2);
  });

  test("the targets of a rollout are listed by stage and state, with the reports of their workers", async () => {
    const api = await withRollout();
    const all = (await api.call("GET", `${path}/12/targets`)).body;
    expect(
      all.items.map(({ cluster, stage, state }: Record<string, string>) => `${cluster} ${stage} ${state}`),
    ).toEqual([
      "c1 canary Succeeded",
      "c2 rest Failed",
      "c3 rest Applying",
      "c4 rest Rendering",
      "c5 rest Waiting",
      "c6 rest Waiting",
    ]);
    expect(clusters((await api.call("GET", `${path}/12/targets?stage=canary`)).body)).toEqual(["c1"]);
    const failed = await api.call("GET", `${path}/12/targets?state=failed,%20applying`);
    expect(failed.body.items).toEqual([
      {
        cluster: "c2",
        order: 0,
        stage: "rest",
        state: "Failed",
        reason: "ApplyFailed: 1 of 4 objects failed",
        endedAt: "2026-11-20T07:52:00.000Z",
        sync: "shop.web",
      },
      {
        cluster: "c3",
        order: 1,
        stage: "rest",
        state: "Applying",
        reason: "Progressing: 2 of 4 objects",
        assignedAt: "2026-11-20T07:50:00.000Z",
        sync: "shop.web",
      },
    ]);
    expect((await api.call("GET", `${path}/12/targets?stage=none`)).body.message).toBe(
      'stage is "none"; this rollout has canary, rest',
    );
    expect((await api.call("GET", `${path}/12/targets?state=bad`)).status).toBe(400);
  });

  test.each<[string, readonly string[]]>([
    ["Waiting", ["c5", "c6"]],
    ["Rendering", ["c4"]],
    ["Waiting,Rendering", ["c4", "c5", "c6"]],
    ["Applying", ["c3"]],
    ["Verifying", []],
    ["Assigned", []],
    ["Assigned,Applying", ["c3"]],
    ["Succeeded", ["c1"]],
    ["Succeeded,Failed", ["c1", "c2"]],
    ["Failed,Waiting", ["c2", "c5", "c6"]],
    ["Unreachable", []],
  ])("the targets that are %s are listed in pages of any size", async (state, expected) => {
    const api = await withRollout();
    for (const limit of [1, 2, 500]) {
      const items = (await everyPage(api, `${path}/12/targets?state=${state}&limit=${limit}`)) as unknown as {
        cluster: string;
      }[];
      expect(clusters({ items })).toEqual(expected);
    }
  });
});

describe("the requests that the API accepts", () => {
  test("a request without a verified principal is refused", async () => {
    const api = apiFixture();
    const { authorizer: _gone, ...requestContext } = {
      authorizer: undefined,
      http: { method: "GET" },
    };
    const answer = await api.raw({ version: "2.0", rawPath: "/v1/clusters", rawQueryString: "", requestContext });
    expect(answer).toMatchObject({ status: 403, body: { code: "Forbidden" } });
  });

  test.each([
    ["GET", "/v1/apply", 405],
    ["GET", "/v2/clusters", 404],
    ["GET", "/v1/namespaces/payments/secrets", 404],
    ["PUT", "/v1/clusters/c1", 405],
    ["GET", "/v1/clusters/%E0%A4%A", 400],
    ["GET", "/v1/clusters/..%2F", 404],
    ["GET", "/v1/clusters/", 404],
    ["GET", "//v1/clusters", 404],
    ["GET", "/v1/../v1/clusters", 404],
    ["GET", "/v1/clusters/%2E%2E/clusters", 404],
    ["GET", "/v1/%63lusters", 200],
    ["GET", "/v1/clusters%2Fc1", 404],
    ["HEAD", "/v1/clusters", 405],
    ["GET", "/v1/constructor", 404],
    ["GET", "/", 404],
    ["GET", "/v1/namespaces/shop/syncs/web/rollouts/0", 404],
    ["POST", "/v1/namespaces/shop/syncs/web/explode", 404],
  ])("%s %s is answered with status %i", async (method, path, status) => {
    expect((await apiFixture().call(method, path)).status).toBe(status);
  });

  test.each([
    ["GET", "/v1/apply", "MethodNotAllowed", "GET is not possible on /v1/apply"],
    ["GET", "/v1/clusters/a%2Fb", "NotFound", "there is no /v1/clusters/a/b"],
    [
      "DELETE",
      "/v1/freezes/a%2Fb",
      "BadRequest",
      'a freeze cannot be called "a/b"; use a-z, 0-9 and -, at most 63 of them',
    ],
  ])("%s %s is refused as %s, with a message", async (method, path, code, message) => {
    expect((await apiFixture().call(method, path)).body).toEqual({ code, message });
  });

  test.each([
    ["no documents", { documents: [] }, 400],
    ["an unknown member", { documents: [1], force: true }, 400],
    ["no body", undefined, 400],
  ])("a request whose body has %s is refused", async (_what, body, status) => {
    expect((await apiFixture().call("POST", "/v1/apply", body)).status).toBe(status);
  });

  test("an empty body counts as no body", async () => {
    const api = apiFixture();
    await api.call("POST", "/v1/apply", { documents: [source("app")] });
    const event = httpEvent("POST", "/v1/namespaces/payments/sources/app/suspend");
    expect(await api.raw({ ...event, body: "" })).toMatchObject({ status: 200, body: { outcome: "configured" } });
  });

  test("the version route names the service and its version", async () => {
    expect(await apiFixture().call("GET", "/v1/version")).toEqual({
      status: 200,
      body: { api: "v1", service: "starling", version: starlingVersion },
    });
  });

  test("query values of up to 10,000 characters and bodies of up to 200 levels are accepted", async () => {
    const api = apiFixture();
    expect(await api.call("GET", `/v1/version?x=${"x".repeat(10_000)}`)).toMatchObject({ status: 200 });
    expect(await api.call("GET", `/v1/version?x=${"x".repeat(10_001)}`)).toMatchObject({
      status: 400,
      body: { code: "BadRequest", message: "x has 10001 characters; expected at most 10000" },
    });
    const nested = (levels: number) => JSON.parse(`${"[".repeat(levels)}${"]".repeat(levels)}`);
    const message = async (levels: number) => {
      return (await api.call("POST", "/v1/apply", { documents: nested(levels) })).body.message;
    };
    expect(await message(200)).not.toContain("deeper than 200 levels");
    expect(await message(201)).toContain("documents.0.0.0 is nested deeper than 200 levels; remove it");
  });

  test("an event that is no request of an HTTP API is refused", async () => {
    expect(await apiFixture().raw({ Records: [] })).toMatchObject({ status: 400, body: { code: "BadRequest" } });
  });

  test("a body that is too large is refused", async () => {
    const documents = [{ ...source("app"), filler: "x".repeat(1_000_000) }];
    expect((await apiFixture().call("POST", "/v1/apply", { documents })).status).toBe(413);
  });
});
