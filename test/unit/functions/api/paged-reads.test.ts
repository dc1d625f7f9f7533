import { describe, expect, test } from "vitest";
import { keys } from "#shared/fleet/rows/keys.ts";
import type { TargetState } from "#shared/fleet/rows/rollout-rows.ts";
import type { SyncRow } from "#shared/fleet/rows/sync-row.ts";
import type { Table } from "#shared/ports.ts";
import { MemoryTable } from "#test/support/memory-table.ts";
import { refusingWrites } from "#test/support/refusing-writes.ts";
import { type Answer, apiFixture, cluster, source, sync, syncGroup } from "#test/unit/functions/api/api-fixture.ts";
import {
  rolloutRow,
  rolloutStateRow,
  shop,
  slotRow,
  storeRollout,
  syncRow,
} from "#test/unit/functions/api/row-fixture.ts";

type Api = ReturnType<typeof apiFixture>;

async function everyItem(api: Api, path: string) {
  const items: Answer[] = [];
  let next = "";
  for (;;) {
    const { body } = await api.call("GET", `${path}${next}`);
    items.push(...body.items);
    if (body.metadata.continue === undefined) return items;
    next = `${path.includes("?") ? "&" : "?"}continue=${body.metadata.continue}`;
  }
}

/** A table that counts the pages that are read from each partition. */
function countingQueries() {
  const table = new MemoryTable();
  let asked: string[] = [];
  const through: Table = {
    ...refusingWrites(table, () => undefined),
    query(query) {
      asked.push(query.pk);
      return table.query(query);
    },
  };
  const forget = () => {
    asked = [];
  };
  return { table, through, forget, of: (pk: string) => asked.filter((one) => one === pk).length };
}

const elsewhere = (namespace: string, name: string) => {
  const document = sync(name, { cluster: "c1", source: "app" });
  return { ...document, metadata: { ...document.metadata, namespace } };
};

describe("the Syncs of a namespace", () => {
  test("a list of one namespace has only its Syncs, whichever namespaces come before and after it", async () => {
    const api = apiFixture();
    const documents = [
      elsewhere("alpha", "one"),
      elsewhere("payments", "two"),
      elsewhere("payments", "three"),
      elsewhere("zebra", "four"),
    ];
    await api.call("POST", "/v1/apply", { documents });
    const named = async (path: string) => (await everyItem(api, path)).map(({ metadata }) => metadata.name);
    expect(await named("/v1/namespaces/payments/syncs")).toEqual(["three", "two"]);
    expect(await named("/v1/syncs")).toEqual(["one", "three", "two", "four"]);
    expect((await api.call("GET", "/v1/syncs?state=1Ready")).status).toBe(400);
  });
});

describe("the Syncs of a state", () => {
  test("a list of one state finds its Syncs in the first answer, however many other Syncs there are", async () => {
    const api = apiFixture();
    await api.call("POST", "/v1/apply", { documents: [syncGroup("shop", [{ name: "web", source: "app" }])] });
    const others = Array.from({ length: 60 }, (_, index) => ({ put: syncRow(`c${index}`, "shop.web") }));
    await api.table.write([...others, { put: syncRow("c99", "shop.web", { phase: "Verifying" }) }]);
    for (const path of ["/v1/syncs", "/v1/namespaces/payments/syncgroups/shop/syncs"]) {
      const { body } = await api.call("GET", `${path}?state=Verifying`);
      expect(body.items).toMatchObject([{ spec: { cluster: "c99" }, status: { state: "Verifying" } }]);
      expect(body.metadata).toEqual({});
    }
  });
});

describe("the Syncs of many groups", () => {
  async function pagesOf(api: Api, path: string) {
    const pages: (readonly string[])[] = [];
    let next = "";
    do {
      const { body } = await api.call("GET", `${path}${next}`);
      pages.push(body.items.map(({ metadata }: Answer) => metadata.name));
      next = body.metadata.continue === undefined ? "" : `&continue=${body.metadata.continue}`;
    } while (next !== "");
    return pages;
  }

  test("a page has as many Syncs as were asked for, wherever one group ends", async () => {
    const api = apiFixture(new MemoryTable({ pageItems: 1000 }));
    const groups = ["a", "b", "c"];
    await api.call("POST", "/v1/apply", {
      documents: groups.map((name) => syncGroup(name, [{ name: "web", source: "app" }])),
    });
    const rows = groups.flatMap((group) => ["c1", "c2", "c3"].map((name) => syncRow(name, `${group}.web`)));
    await api.table.write(rows.map((put) => ({ put })));
    const pages = await pagesOf(api, "/v1/syncs?limit=4");
    expect(pages.flat()).toEqual(rows.map(({ name }) => name));
    expect(pages.map((page) => page.length).filter((length) => length > 0)).toEqual([4, 4, 1]);
  });

  test("one answer searches fifty groups, and has a token for the rest", async () => {
    const api = apiFixture();
    const names = Array.from({ length: 55 }, (_, index) => `s${String(index).padStart(2, "0")}`);
    await api.call("POST", "/v1/apply", {
      documents: names.map((name) => sync(name, { cluster: "c1", source: "app" })),
    });
    const found = ["s49", "s50", "s54"];
    await api.table.write(found.map((name) => ({ put: syncRow("c1", name, { phase: "Failed" }) })));
    expect(await pagesOf(api, "/v1/syncs?state=Failed")).toEqual([["s49"], ["s50", "s54"]]);
  });
});

describe("a list with a selector that matches little", () => {
  test("one answer has what a limited number of reads found, and a token for the rest", async () => {
    const counted = countingQueries();
    const api = apiFixture(counted.table, counted.through);
    const documents = Array.from({ length: 60 }, (_, index) => {
      return cluster(`c${String(index).padStart(2, "0")}`, { env: index === 59 ? "prod" : "dev" });
    });
    await api.call("POST", "/v1/apply", { documents });
    const path = "/v1/clusters?labelSelector=env%3Dprod";
    counted.forget();
    const first = await api.call("GET", path);
    expect(first.body).toMatchObject({ items: [], metadata: { continue: expect.any(String) } });
    expect(counted.of("FLEET")).toBe(20);
    expect((await everyItem(api, path)).map(({ metadata }) => metadata.name)).toEqual(["c59"]);
  });
});

describe("Clusters in a list", () => {
  test("a Cluster in a list counts all its Syncs", async () => {
    const api = apiFixture();
    const clusters = Array.from({ length: 20 }, (_, index) => cluster(`c${index}`));
    await api.call("POST", "/v1/apply", { documents: clusters });
    const rows = ["a", "b", "c", "d", "e"].map((name) => syncRow("c19", `shop.${name}`));
    await api.table.write(rows.map((put) => ({ put })));
    const items = await everyItem(api, "/v1/clusters");
    expect(items.at(-9)).toMatchObject({ metadata: { name: "c19" }, status: { syncs: { total: 5, ready: 5 } } });
  });
});

describe("the rollouts of a group and of all groups", () => {
  const path = "/v1/namespaces/payments/syncgroups/shop/rollouts";

  async function withTargets(states: readonly TargetState[], api = apiFixture()) {
    await api.call("POST", "/v1/apply", { documents: [syncGroup("shop", [{ name: "web", source: "app" }])] });
    const [canary, ...rest] = states;
    await storeRollout(api, { number: 1, states: { canary: ["Succeeded"] } });
    await storeRollout(api, { number: 2, states: { canary: canary === undefined ? [] : [canary], rest } });
    return api;
  }

  test("the list of all groups' rollouts has as many as were asked for, at most a hundred, in order", async () => {
    const table = new MemoryTable({ pageItems: 1000 });
    const api = apiFixture(table);
    const names = Array.from({ length: 102 }, (_, index) => `g${String(index).padStart(3, "0")}`);
    for (const name of names) {
      const owner = { namespace: "payments", kind: "SyncGroup", name } as const;
      await table.write([
        { put: { ...keys.owner(owner), type: "Directory", schema: 1, version: 1 } },
        { put: rolloutStateRow([], { owner, last: 1 }) },
        { put: rolloutRow(1, { owner }) },
      ]);
    }
    const named = (items: readonly { metadata: { name: string } }[]) => items.map(({ metadata }) => metadata.name);
    const all = names.map((name) => `${name}-1`);
    const pages = async (query: string) => {
      const sizes: number[] = [];
      let next = "";
      do {
        const { body } = await api.call("GET", `/v1/rollouts?${query}${next}`);
        sizes.push(body.items.length);
        next = body.metadata.continue === undefined ? "" : `&continue=${body.metadata.continue}`;
      } while (next !== "");
      return sizes.filter((size) => size > 0);
    };
    expect(await pages("limit=60")).toEqual([60, 42]);
    expect(await pages("limit=1000")).toEqual([100, 2]);
    expect(named(await everyItem(api, "/v1/rollouts"))).toEqual(all);
    const rolloutState = keys.rolloutState({ namespace: "payments", kind: "SyncGroup", name: "g050" });
    await table.write([{ update: rolloutState, set: { schema: 4 } }]);
    const some = all.map((name) => (name === "g050-1" ? "g050" : name));
    expect(named(await everyItem(api, "/v1/rollouts"))).toEqual(some);
  });

  test("the list of rollouts ends with the first one, also when the page is full", async () => {
    const api = await withTargets(["Succeeded", "Succeeded"]);
    expect((await api.call("GET", `${path}?limit=2`)).body.metadata).toEqual({});
    expect((await api.call("GET", `${path}?limit=1`)).body.metadata).toHaveProperty("continue");
  });

  test("the list of rollouts ends with the oldest one of which rows are kept", async () => {
    const api = await withTargets(["Succeeded", "Succeeded"]);
    const rolloutState = keys.rolloutState({ namespace: "payments", kind: "SyncGroup", name: "shop" });
    const before = await api.table.get(rolloutState);
    const ledger = before?.ledger.slice(0, 1);
    await api.table.write([{ update: rolloutState, set: { ledger, past: [1] } }]);
    expect((await api.call("GET", `${path}?limit=1`)).body.metadata).toHaveProperty("continue");
    await api.table.write([{ update: rolloutState, set: { ledger }, remove: ["past"] }]);
    expect((await api.call("GET", `${path}?limit=1`)).body.metadata).toEqual({});
  });

  test("the list of rollouts has those of its namespace, and those of Syncs that users wrote", async () => {
    const api = await withTargets(["Succeeded", "Succeeded"]);
    const owner = { namespace: "other", kind: "Sync", name: "own" } as const;
    await api.call("POST", "/v1/apply", { documents: [elsewhere("other", "own")] });
    await storeRollout(api, { number: 3, owner, states: { all: ["Succeeded", "Succeeded"] } });
    const named = async (list: string) => (await everyItem(api, list)).map(({ metadata }) => metadata.name);
    expect(await named("/v1/namespaces/payments/rollouts")).toEqual(["shop-2"]);
    expect(await named("/v1/namespaces/other/rollouts")).toEqual(["own-3"]);
    expect(await named("/v1/rollouts")).toEqual(["own-3", "shop-2"]);
    const own = "/v1/namespaces/other/syncs/own/rollouts";
    expect((await api.call("GET", `${own}/newest`)).body.metadata.name).toBe("own-3");
    expect((await api.call("GET", "/v1/namespaces/other/rollouts/own-3")).body.spec.owner).toEqual(owner);
  });

  test("the answer for an unknown rollout says that there is none yet, or not with this number", async () => {
    const api = await withTargets(["Succeeded", "Succeeded"]);
    await api.call("POST", "/v1/apply", { documents: [syncGroup("new", [{ name: "web", source: "app" }])] });
    const none = await api.call("GET", "/v1/namespaces/payments/syncgroups/new/rollouts/newest");
    expect(none).toMatchObject({ status: 404, body: { message: "SyncGroup payments/new has no rollout yet" } });
    const other = await api.call("GET", `${path}/7`);
    expect(other).toMatchObject({ status: 404, body: { message: "SyncGroup payments/shop has no rollout 7" } });
  });

  test("a page has as many targets as were asked for, wherever a page of the table ends", async () => {
    const api = await withTargets(Array.from({ length: 8 }, () => "Succeeded" as const));
    const sizes: number[] = [];
    const clusters: string[] = [];
    let next = "";
    do {
      const { body } = await api.call("GET", `${path}/2/targets?limit=3${next}`);
      sizes.push(body.items.length);
      clusters.push(...body.items.map((item: { cluster: string }) => item.cluster));
      next = body.metadata.continue === undefined ? "" : `&continue=${body.metadata.continue}`;
    } while (next !== "");
    expect(sizes).toEqual([3, 3, 2]);
    expect(clusters).toEqual(["c1", "c2", "c3", "c4", "c5", "c6", "c7", "c8"]);
  });

  /** The reads that the stage runs of a rollout cost. */
  async function readsOfStageRuns(api: Api, counted: ReturnType<typeof countingQueries>): Promise<number> {
    counted.forget();
    await api.call("GET", `${path}/2`);
    const reads = counted.of(keys.rolloutState(shop).pk);
    counted.forget();
    return reads;
  }

  test("one answer searches ten pages for targets of a state, and has a token for the rest", async () => {
    const counted = countingQueries();
    const states = Array.from({ length: 40 }, (_, index) => (index === 39 ? "Failed" : "Succeeded") as TargetState);
    const api = await withTargets(states, apiFixture(counted.table, counted.through));
    const ofStageRuns = await readsOfStageRuns(api, counted);
    const list = `${path}/2/targets?state=Failed&limit=1`;
    const first = await api.call("GET", list);
    expect(first.body).toMatchObject({ items: [], metadata: { continue: expect.any(String) } });
    // The stage before has no target of that state.
    expect(counted.of(keys.rolloutState(shop).pk)).toBe(ofStageRuns + 10);
    expect(await everyItem(api, list)).toMatchObject([{ cluster: "c40" }]);
  });

  test("a list of one state reads no targets of a stage run that has none in this state", async () => {
    const counted = countingQueries();
    const api = await withTargets(["Succeeded", "Waiting", "Waiting"], apiFixture(counted.table, counted.through));
    const ofStageRuns = await readsOfStageRuns(api, counted);
    expect((await api.call("GET", `${path}/2/targets?state=Failed`)).body).toEqual({
      apiVersion: "starling.dev/v1alpha1",
      kind: "TargetList",
      metadata: {},
      items: [],
    });
    expect(counted.of(keys.rolloutState(shop).pk)).toBe(ofStageRuns);
  });

  test("the first answer finds a few failed targets among thousands", async () => {
    const many = apiFixture(new MemoryTable({ pageItems: 2500 }));
    await many.call("POST", "/v1/apply", {
      documents: [source("app"), syncGroup("shop", [{ name: "web", source: "app" }])],
    });
    const rest = [...Array<TargetState>(4000).fill("Succeeded"), ...Array<TargetState>(5).fill("Failed")];
    await storeRollout(many, { number: 2, states: { rest } });
    const list = "/v1/namespaces/payments/syncgroups/shop/rollouts/2/targets?state=Failed&limit=200";
    const { body } = await many.call("GET", list);
    expect(body.items).toHaveLength(5);
    expect(body.metadata).toEqual({});
  });

  test("a page of one state has as many targets as were asked for", async () => {
    const api = await withTargets(["Failed", "Waiting", "Failed", "Failed", "Waiting", "Failed"]);
    const list = `${path}/2/targets?state=Failed&limit=2`;
    const first = (await api.call("GET", list)).body;
    const named = (body: { items: { cluster: string }[] }) => body.items.map((item) => item.cluster);
    expect(named(first)).toEqual(["c1", "c3"]);
    expect(named((await api.call("GET", `${list}&continue=${first.metadata.continue}`)).body)).toEqual(["c4", "c6"]);
  });

  test("a target shows the running revision where something was assigned, and not before its turn", async () => {
    const api = await withTargets(["Succeeded", "Unreachable", "Waiting"]);
    const applied = { revision: "main@sha1:old", renderDigest: "sha256:1", attempt: 1, at: "2026-11-20T07:00:00.000Z" };
    const rows = ["c1", "c2", "c3"].map((name) => {
      const row = syncRow(name, "shop.web");
      return { put: { ...row, observed: { ...row.observed, applied } } as unknown as SyncRow };
    });
    await api.table.write(rows);
    const { items } = (await api.call("GET", `${path}/2/targets`)).body;
    expect(items.map((item: { revision?: string }) => item.revision)).toEqual([
      "main@sha1:old",
      "main@sha1:old",
      undefined,
    ]);
  });

  test("a waiting target shows what it waits for", async () => {
    const api = await withTargets(["Succeeded", "Waiting", "Waiting", "Waiting", "Waiting", "Waiting", "Waiting"]);
    const stageRuns = {
      rest: {
        next: 6,
        holds: [
          { cause: "worker" as const, clusters: [0, 1, 4] },
          { cause: "freeze" as const, name: "inc-1", clusters: [2] },
          { cause: "window" as const, name: "always, nights", clusters: [5] },
        ],
        returned: [3],
      },
    };
    const states = { canary: ["Succeeded"], rest: Array<"Waiting">(6).fill("Waiting") } as const;
    const [, rest] = await storeRollout(api, { number: 2, states, stageRuns });
    if (rest === undefined) throw new Error("it was stored");
    const old = { rollout: 1, stage: "rest", snapshot: 0 };
    await api.table.write([
      { put: slotRow(rest, { order: 0, cluster: "c2" }, { stageRun: old, rollout: 1 }) },
      { put: slotRow(rest, { order: 1, cluster: "c3" }, { stageRun: old, rollout: 1, releasing: { fence: 3 } }) },
    ]);
    const { items } = (await api.call("GET", `${path}/2/targets?state=Waiting`)).body;
    expect(items.map(({ cluster, reason }: Record<string, string>) => [cluster, reason])).toEqual([
      ["c2", "settles what rollout 1 began"],
      ["c3", "waits until its worker has finished"],
      ["c4", "waits until freeze inc-1 ends"],
      ["c5", ""],
      ["c6", "waits until the planner checks its stage again"],
      ["c7", "waits for windows always, nights: at least one is closed"],
    ]);
  });

  test("the targets of a superseded stage run are listed with that message", async () => {
    const api = await withTargets(["Succeeded", "Succeeded", "Waiting", "Waiting"]);
    const message = "rollout 3 replaced it";
    const stageRuns = {
      rest: { phase: "Superseded", message, returned: [], supersededBy: 3, endedAt: "2026-11-20T07:53:00.000Z" },
    } as const;
    await storeRollout(api, {
      number: 2,
      states: { canary: ["Succeeded"], rest: ["Succeeded", "Waiting"] },
      stageRuns,
    });
    const { items } = (await api.call("GET", `${path}/2/targets?stage=rest`)).body;
    expect(items).toMatchObject([
      { cluster: "c2", state: "Succeeded" },
      { cluster: "c3", state: "Superseded", reason: message },
    ]);
  });

  test("the answer asks to try again while the list of targets is lost", async () => {
    const api = await withTargets(["Succeeded", "Waiting"]);
    const stageRun = await api.table.get(keys.stageRun(shop, { rollout: 2, stage: "rest", snapshot: 0 }));
    for (const { key } of stageRun?.pages ?? []) api.blobs.lose(key);
    const answer = await api.call("GET", `${path}/2/targets`);
    expect(answer).toMatchObject({ status: 503, body: { code: "TargetsLost" } });
    expect(answer.body.message).toMatch(/^the list of targets in stage rest is lost/);
    // Targets that have a row can be listed without the list.
    expect((await api.call("GET", `${path}/2/targets?state=Succeeded`)).body.items).toMatchObject([{ cluster: "c1" }]);
  });
});

describe("the events of an object", () => {
  test("a list of events has those of the cluster that was asked for", async () => {
    const api = apiFixture();
    const about = { namespace: "payments", kind: "Sync", name: "shop.web" };
    const event = (at: string, clusterName: string) =>
      ({
        ...keys.event(about, at, "1"),
        type: "Event",
        schema: 1,
        version: 1,
        at,
        severity: "info",
        reason: "Current",
        message: "",
        cluster: clusterName,
        rollout: 3,
        revision: "main@sha1:1",
      }) as const;
    await api.table.write([
      { put: event("2026-11-20T07:00:00.000Z", "c1") },
      { put: event("2026-11-20T07:01:00.000Z", "c2") },
    ]);
    const list = "/v1/namespaces/payments/syncs/shop.web/events";
    expect(await everyItem(api, `${list}?cluster=c1`)).toEqual([
      {
        at: "2026-11-20T07:00:00.000Z",
        severity: "info",
        reason: "Current",
        message: "",
        cluster: "c1",
        rollout: 3,
        revision: "main@sha1:1",
      },
    ]);
    expect(await everyItem(api, list)).toHaveLength(2);
    expect((await api.call("GET", list)).body.kind).toBe("EventList");
  });
});

describe("an apply of Syncs and groups", () => {
  test("an apply of a Sync that stays on its cluster changes nothing", async () => {
    const api = apiFixture();
    const documents = [sync("extra", { cluster: "c1", source: "app" })];
    await api.call("POST", "/v1/apply", { documents });
    const again = await api.call("POST", "/v1/apply", { documents });
    expect(again).toMatchObject({ status: 200, body: { items: [{ outcome: "unchanged" }] } });
  });

  test("an apply that drops a template which no cluster has needs no confirmation", async () => {
    const api = apiFixture();
    const template = (name: string) => ({ name, source: "app" });
    await api.call("POST", "/v1/apply", { documents: [syncGroup("shop", [template("web"), template("api")])] });
    await api.table.write([{ put: syncRow("c1", "shop.web") }]);
    const documents = [syncGroup("shop", [template("web")])];
    const tried = await api.call("POST", "/v1/apply", { documents, dryRun: true });
    expect(tried.status).toBe(200);
    expect(tried.body).not.toHaveProperty("consequences");
    expect(await api.call("POST", "/v1/apply", { documents })).toMatchObject({
      status: 200,
      body: { items: [{ outcome: "configured" }] },
    });
  });

  test("a refused apply names the first hundred problems, and counts all", async () => {
    const wrong = (count: number) =>
      Array.from({ length: count }, (_, index) => source(`s${index}`, { interval: "never" }));
    const api = apiFixture();
    const one = await api.call("POST", "/v1/apply", { documents: wrong(1) });
    expect(one.body.message).toBe("1 problem in 1 document; nothing was applied");
    const hundred = await api.call("POST", "/v1/apply", { documents: wrong(100) });
    expect(hundred.body.message).toBe("100 problems in 100 documents; nothing was applied");
    const more = await api.call("POST", "/v1/apply", { documents: wrong(101) });
    expect(more.body.message).toBe("101 problems in 101 documents (the first 100 are listed); nothing was applied");
    expect(more.body.problems).toHaveLength(100);
    expect(more.body.problemCount).toBe(101);
  });
});
