/** State, age, author and waits of objects: over rows as functions leave them, through the real command. */
import { stripVTControlCharacters } from "node:util";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { sha256 } from "#shared/base/digest.ts";
import { blobKeys } from "#shared/fleet/blob-keys.ts";
import type { EventRow } from "#shared/fleet/rows/event-row.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import { revisionRow } from "#shared/fleet/rows/revision-row.ts";
import type { SyncRow } from "#shared/fleet/rows/sync-row.ts";
import { emptyInventory, writeInventory } from "#shared/kube/inventory.ts";
import { setIdOf } from "#shared/kube/parent-object.ts";
import { type CliFixture, fleet, startCliFixture } from "#test/integration/cli/cli-fixture.ts";
import { sayTaken, shop, storeRollout, syncRow } from "#test/unit/functions/api/row-fixture.ts";

let cli: CliFixture;
beforeEach(async () => {
  cli = await startCliFixture();
  cli.write("fleet.yaml", `${fleet}---\n${(fleet.split("---")[1] ?? "").replaceAll("c1", "c2")}`);
  expect((await cli.run("apply -f fleet.yaml -q")).code).toBe(0);
});
afterEach(() => cli.stop());

const revision = `main@sha1:${"9f2c1ab".padEnd(40, "0")}`;
const artifact = {
  revision,
  digest: "sha256:11",
  sizeBytes: 1,
  files: 1,
  storedAt: "2026-11-20T07:44:00.000Z",
  subject: "raise the \u001b[31mtimeout",
  author: "Ana <ana@acme.io>",
  committedAt: "2026-11-20T07:40:00.000Z",
};
const long = `Service shop/web: ${"spec.ports[1].nodePort: 31443: provided port is already allocated; ".repeat(3)}`;

/** Rollout 12 on both clusters: ready on c1, and failed on c2. */
async function rolledOut(): Promise<void> {
  const [template] = [
    {
      name: "web",
      source: "app",
      revision,
      artifactDigest: "sha256:11",
      path: ".",
      apply: syncRow("c1", "shop.web").desired.apply,
    },
  ];
  await storeRollout(cli, {
    number: 12,
    states: { canary: ["Succeeded"], rest: ["Failed"] },
    rollout: { revision, plan: { templates: [template], planHash: "sha256:c0" } },
  });
  await sayTaken(cli.table, shop, artifact);
  await cli.table.write([
    { put: revisionRow({ namespace: "payments", name: "app" }, artifact, "2026-11-20T07:44:00.000Z") },
    { put: await holding("c1", {}) },
    { put: await holding("c2", { phase: "Failed", reason: "ApplyFailed", message: long }) },
  ]);
}

async function holding(cluster: string, observed: Parameters<typeof syncRow>[2]): Promise<SyncRow> {
  const row = syncRow(cluster, "shop.web", observed);
  const setId = setIdOf({ syncNamespace: "payments", syncName: "shop.web" });
  const entries = ["ConfigMap", "Service", "Secret"].map((kind) => ({
    id: { group: "", kind, namespace: "shop", name: "web" },
    version: "v1",
    uid: `uid-${kind}`,
    resourceVersion: "1",
    generation: 0,
    createdAt: new Date(Date.now() - 3 * 86_400_000).toISOString(),
    ownedHash: "sha256:0a11",
    valuesHash: "sha256:5ec2e7",
  }));
  const text = writeInventory({ ...emptyInventory(setId), entries });
  await cli.blobs.overwrite(blobKeys.inventory(cluster, sha256(text)), Buffer.from(text));
  if (row.observed === undefined) throw new Error("the fixture has one");
  const isWell = row.observed.phase === "Ready";
  const problems = isWell ? [] : [{ object: "Service shop/web", reason: "Invalid", message: long }];
  const objects = { total: 3, ready: isWell ? 3 : 2, failed: isWell ? 0 : 1, foreign: 0 };
  const applied = { renderDigest: "sha256:77ab", revision, attempt: 2, at: "2026-11-20T07:51:00.000Z" };
  return { ...row, observed: { ...row.observed, inventory: sha256(text), problems, objects, applied } };
}

const widest = (text: string) => Math.max(...text.split("\n").map((line) => [...line].length));

test("describe shows each object with its kind, health and age, and no digest of a Secret", async () => {
  await rolledOut();
  const { out, code } = await cli.run("describe sync/shop.web --cluster c2");
  expect(code).toBe(0);
  expect(out).toMatch(/OBJECT +HEALTH +AGE\n +Service shop\/web +NotReady +3d +Invalid: Service/);
  expect(out).toMatch(/ConfigMap shop\/web +Ready +3d\n/);
  expect(out).toMatch(/Secret shop\/web +Ready +3d\n/);
  expect(out).not.toMatch(/5ec2e7|0a11/);
});

describe("tree", () => {
  test("the tree of a cluster has its groups, their Syncs, and with --objects the objects of each", async () => {
    await rolledOut();
    const { out } = await cli.run("tree cluster/c2 --objects");
    expect(out.split("\n").map((line) => line.slice(0, 26).trimEnd())).toEqual(
      [
        expect.stringMatching(/^c2 /),
        "└─ payments/shop   1 Sync:",
        expect.stringMatching(/^ {3}└─ web {3}main@sha1:9f2/),
        "      ├─ Service shop/web",
        "      ├─ ConfigMap shop/we",
        "      └─ Secret shop/web",
        "",
      ].map((line) => (typeof line === "string" ? expect.stringContaining(line.slice(0, 22)) : line)),
    );
    expect(out).toContain("1 Sync: 1 Failed");
  });

  test("the tree of a group has each template with its clusters, the worst first", async () => {
    await rolledOut();
    const { out } = await cli.run("tree syncgroup/shop");
    expect(out).toMatch(/└─ web {3}2 Syncs: 1 Failed, 1 \w+\n {3}├─ c2 {3}main@sha1:9f2c1ab {3}Failed/);
  });

  test("the tree of a Sync that is on many clusters needs --cluster", async () => {
    expect(await cli.run("tree sync/shop.web")).toMatchObject({ code: 2, err: expect.stringContaining("--cluster") });
    expect((await cli.run("tree source/app")).code).toBe(2);
  });
});

test("history prints commits and authors as plain lines without escape sequences, and their links with -o wide", async () => {
  await rolledOut();
  const { out } = await cli.run("history shop");
  expect(out).toMatch(/^shop-12 {3}\w+ {3}1\/2 clusters, 1 failed/);
  expect(out).toContain('web   main@sha1:9f2c1ab   "raise the \\u001b[31mtimeout" (Ana <ana@acme.io>)');
  expect(out).not.toContain("https://");
  expect((await cli.run("history syncgroup/shop -o wide")).out).toContain(
    "https://github.com/acme/app/commit/9f2c1ab0",
  );
  expect((await cli.run("history sync/shop.web --cluster c2")).out).toMatch(/on this cluster: Failed: ApplyFailed/);
  expect((await cli.run("history source/app")).out).toMatch(/main@sha1:9f2c1ab .* Ana <ana@acme.io> +raise the/);
  for (const on of ["", " --cluster c2"]) expect((await cli.run(`history sync/shop.nope${on}`)).code).toBe(1);
  expect((await cli.run("history nobody")).code).toBe(1);
  expect((await cli.run("history cluster/c1")).code).toBe(2);
});

test("get versions shows which version runs on which cluster, and how many clusters are behind", async () => {
  await rolledOut();
  const { out, err } = await cli.run("get versions");
  expect(out).toMatch(/NAME +ROLLOUT +REVISION +AGE +CLUSTERS +STAGES +STATE/);
  expect(out).toMatch(/shop +12 +main@sha1:9f2c1ab/);
  expect(err).toMatch(/\d of \d clusters are behind the newest version/);
  const json = JSON.parse((await cli.run("get versions -o json")).out);
  expect(json.items).toMatchObject([{ kind: "SyncGroup", metadata: { name: "shop" } }]);
  expect((await cli.run("get versions --group nobody")).code).toBe(2);
});

describe("get of several kinds", () => {
  test("get of several kinds prints one table after the other, and each object with its kind", async () => {
    await rolledOut();
    const { out } = await cli.run("get sources,clusters");
    expect(out).toMatch(/^NAME.*\nsource\/app .*\n\nNAME.*\ncluster\/c2 .*\ncluster\/c1 /s);
    expect((await cli.run("get source,cl -o name")).out).toBe("source/app\ncluster/c2\ncluster/c1\n");
    const json = JSON.parse((await cli.run("get syncgroups,clusters -o json")).out);
    expect([json.kind, json.items.map(({ kind }: { kind: string }) => kind)]).toEqual([
      "List",
      ["SyncGroup", "Cluster", "Cluster"],
    ]);
  });

  test("get of several kinds refuses arguments that are about one object", async () => {
    expect((await cli.run("get sources,clusters c1")).code).toBe(2);
    expect((await cli.run("get sources,nothing")).code).toBe(2);
  });
});

describe("lines of tables", () => {
  test.each([80, 200])("lines fit a terminal of %i columns", async (columns) => {
    await rolledOut();
    for (const line of ["get syncs -A", "tree cluster/c2", "get sources,clusters"]) {
      const { out } = await cli.run(line, { outIsTerminal: true, columns });
      expect([line, widest(stripVTControlCharacters(out))]).toEqual([
        line,
        expect.toSatisfy((width: number) => width <= columns),
      ]);
    }
    const { out } = await cli.run("get syncs -A", { outIsTerminal: true, columns });
    expect(stripVTControlCharacters(out)).toContain("…");
  });

  test("lines are whole without a terminal, and with -o wide", async () => {
    await rolledOut();
    for (const [line, terminal] of [
      ["get syncs -A", {}],
      ["tree cluster/c2", {}],
      ["get syncs -A -o wide", { outIsTerminal: true, columns: 80 }],
      ["tree cluster/c2 -o wide", { outIsTerminal: true, columns: 80 }],
    ] as const) {
      const { out } = await cli.run(line, terminal);
      expect(stripVTControlCharacters(out)).toContain(long.trim());
    }
  });
});

describe("wait", () => {
  test("wait ends when the condition holds, and reports it as kubectl does", async () => {
    await rolledOut();
    expect(await cli.run("wait source/app --for=create")).toMatchObject({ code: 0, out: "source/app created\n" });
    expect(await cli.run("wait sync/shop.web --cluster c2 --for=state=failed")).toMatchObject({
      code: 0,
      out: "sync/shop.web condition met\n",
    });
    expect((await cli.run("wait sync/nobody --for=delete")).code).toBe(0);
  });

  test("wait for Ready ends on a Sync that holds drift, and wait for no drift continues", async () => {
    await rolledOut();
    const row = await holding("c1", {});
    if (row.observed === undefined) throw new Error("the fixture has one");
    const since = "2026-11-20T08:00:00.000Z";
    const conditions = [
      { type: "Ready", status: "True", reason: "Ready", message: "", since },
      { type: "Drifted", status: "True", reason: "DriftDetected", message: "", since },
    ] as const;
    const drifted: SyncRow = { ...row, observed: { ...row.observed, conditions } };
    await cli.table.write([{ put: drifted }]);
    const sync = "wait sync/shop.web --cluster c1 --timeout 1s --for";
    expect((await cli.run(`${sync}=condition=Ready`)).code).toBe(0);
    expect((await cli.run(`${sync}=state=Ready`)).code).toBe(4);
    expect((await cli.run(`${sync}=condition=Drifted=False`)).code).toBe(4);
  });

  test("wait continues until the condition holds", async () => {
    await rolledOut();
    const waiting = cli.run("wait sync/shop.web --cluster c2 --for=state=Ready --timeout 60s");
    await expect.poll(() => cli.requests()).toBeGreaterThan(1);
    const row = await holding("c2", {});
    await cli.table.write([{ put: row }]);
    const { code, err } = await waiting;
    expect(code).toBe(0);
    expect(err).toContain("sync/shop.web Failed: ApplyFailed");
  });

  test("wait exits with 4 when its time has passed, and with 1 for an object that does not exist", async () => {
    await rolledOut();
    const late = await cli.run("wait sync/shop.web --cluster c2 --for=condition=Ready --timeout 1s");
    expect(late).toMatchObject({ code: 4, err: expect.stringContaining("the time of --timeout is over") });
    expect(await cli.run("wait source/nobody --for=condition=Ready")).toMatchObject({
      code: 1,
      err: expect.stringContaining("--for=create"),
    });
  });

  test.each(["condition", "state=Happy", "revision=", "nothing", "condition=Ready=True=x"])(
    "refuses --for=%s",
    async (goal) => {
      const { code, err } = await cli.run(`wait source/app --for=${goal}`);
      expect([code, err]).toEqual([2, expect.stringContaining(`--for is "${goal}"`)]);
    },
  );
});

describe("events", () => {
  function event(at: string, message: string): EventRow {
    const about = { namespace: "payments", kind: "SyncGroup", name: "shop" };
    const said = { severity: "info", reason: "RolloutUpdating", message } as const;
    return { ...keys.event(about, at, message), type: "Event", schema: 1, version: 1, at, ...said, expiresAt: 4e9 };
  }

  test("events come the oldest first, and with -w each new one once", async () => {
    await cli.table.write([
      { put: event("2026-11-20T08:00:00.000Z", "first") },
      { put: event("2026-11-20T08:01:00.000Z", "second") },
    ]);
    expect((await cli.run("events syncgroup/shop")).out).toMatch(/first\n.*second\n$/);
    expect((await cli.run("events shop")).out).toMatch(/first\n.*second\n$/);
    const stop = new AbortController();
    const watched = cli.run("events syncgroup/shop -w", {
      interrupted: stop.signal,
      onOut: (out) => {
        if (out.includes("third")) stop.abort();
      },
    });
    await cli.table.write([{ put: event("2026-11-20T08:02:00.000Z", "third") }]);
    const { code, out } = await watched;
    expect(code).toBe(130);
    expect(out.match(/first|second|third/g)).toEqual(["first", "second", "third"]);
  });

  test.each([
    ["Source", "starling history source/app"],
    ["Receiver", "starling logs receiver/app"],
    ["Cluster", "starling logs cluster/app"],
  ])("a %s has no events, and the command says what to run instead", async (kind, next) => {
    const { code, err } = await cli.run(`events ${kind.toLowerCase()}/app`);
    expect(code).toBe(2);
    expect(err).toContain(`a ${kind} has no events\n  next: ${next}`);
  });

  test("events of all groups name each group, and events of a namespace only those in it", async () => {
    await cli.table.write([{ put: event("2026-11-20T08:00:00.000Z", "first") }]);
    const { out } = await cli.run("events -A");
    expect(out).toMatch(/ payments\/shop +RolloutUpdating +- +first\n/);
    expect(await cli.run("events -n elsewhere")).toMatchObject({
      code: 0,
      out: "",
      err: expect.stringMatching(/no events/),
    });
    expect(JSON.parse((await cli.run("events -A --limit 1 -o json")).out)).toMatchObject({ about: { name: "shop" } });
  });

  test("events of a kind that has none name the command to use instead", async () => {
    expect(await cli.run("events cluster/c1")).toMatchObject({
      code: 2,
      err: expect.stringContaining("logs cluster/c1"),
    });
    expect((await cli.run("events syncgroup/nobody")).code).toBe(1);
  });
});

test("rollout status -w reports once what the rollout waits for, and how it continued", async () => {
  const states = { canary: ["Succeeded"], rest: ["Applying"] } as const;
  await storeRollout(cli, { number: 12, states, rollout: { revision } });
  await sayTaken(cli.table, shop, artifact);
  const why = { phase: "Retrying", reason: "NotFound", message: 'namespaces "shop" not found' } as const;
  await cli.table.write([{ put: await holding("c1", {}) }, { put: { ...(await holding("c2", why)) } }]);
  const { code, err } = await cli.run("rollout status shop -w --timeout 4s");
  expect(code).toBe(4);
  expect(err.match(/c2: .*31443.*\(Starling tries again\)/g)).toHaveLength(1);
});
