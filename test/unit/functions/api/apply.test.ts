import { describe, expect, test } from "vitest";
import { dueAtOf } from "#shared/fleet/rows/due.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import { parseAllowedBuckets } from "#shared/fleet/source-buckets.ts";
import { MemoryTable } from "#test/support/memory-table.ts";
import { refusingWrites } from "#test/support/refusing-writes.ts";
import {
  apiFixture,
  cluster,
  clusterValues,
  principal,
  source,
  sync,
  syncGroup,
} from "#test/unit/functions/api/api-fixture.ts";
import { syncRow } from "#test/unit/functions/api/row-fixture.ts";

const group = { namespace: "payments", kind: "SyncGroup", name: "shop" } as const;

function outcomes(body: { items: { kind: string; name: string; outcome: string }[] }) {
  return body.items.map((item) => `${item.kind}/${item.name} ${item.outcome}`);
}

describe("an apply by the API", () => {
  test("an apply creates objects, and changes nothing the second time", async () => {
    const api = apiFixture();
    const documents = [
      syncGroup("shop", [{ name: "web", source: "app" }]),
      source("app"),
      cluster("c1", { env: "prod" }),
    ];
    const first = await api.call("POST", "/v1/apply", { documents, reason: "first" });
    expect(first.status).toBe(200);
    expect(outcomes(first.body)).toEqual(["SyncGroup/shop created", "Source/app created", "Cluster/c1 created"]);
    expect(first.body.items.map(({ warnings }: { warnings: unknown }) => warnings)).toEqual([[], [], []]);
    expect(api.takeMessages()).toEqual([
      { to: "rollout", owner: group, clusters: [] },
      { to: "resolve", source: { namespace: "payments", name: "app" } },
    ]);
    const rows = api.table.all();

    const second = await api.call("POST", "/v1/apply", { documents });
    expect(outcomes(second.body)).toEqual(["SyncGroup/shop unchanged", "Source/app unchanged", "Cluster/c1 unchanged"]);
    expect(api.takeMessages()).toEqual([]);
    expect(api.table.all()).toEqual(rows);
  });

  test("an apply writes the directories together with the objects", async () => {
    const api = apiFixture();
    await api.call("POST", "/v1/apply", {
      documents: [
        source("app"),
        cluster("c1", { env: "prod" }),
        syncGroup("shop", [
          { name: "web", source: "app" },
          { name: "api", source: "app" },
          { name: "db", source: "data" },
        ]),
        sync("extra", { cluster: "c1", source: "app" }),
      ],
    });
    expect(api.table.all().map((row) => `${row.pk} | ${row.sk}`)).toEqual([
      "CL#c1 | META",
      "FLEETVERSION | 10",
      "FLEET | c1",
      "NS#payments#Source | app",
      "NS#payments#SyncGroup | shop",
      "NS#payments#Sync | extra",
      "OWNERS | payments#Sync#extra",
      "OWNERS | payments#SyncGroup#shop",
      "REPO#github.com/acme/app | payments#app",
      "SOURCES | payments#app",
      "USES#payments#app | Sync#extra",
      "USES#payments#app | SyncGroup#shop",
      "USES#payments#data | SyncGroup#shop",
    ]);
  });

  test("an apply moves the directory entries that changed", async () => {
    const api = apiFixture();
    await api.call("POST", "/v1/apply", {
      documents: [source("app"), syncGroup("shop", [{ name: "web", source: "app" }])],
    });
    await api.call("POST", "/v1/apply", {
      documents: [
        source("app", { git: { url: "https://github.com/acme/moved.git" } }),
        syncGroup("shop", [{ name: "web", source: "other" }]),
      ],
    });
    const found = api.table.all().map((row) => `${row.pk} | ${row.sk}`);
    expect(found).toContain("REPO#github.com/acme/moved | payments#app");
    expect(found).not.toContain("REPO#github.com/acme/app | payments#app");
    expect(found).toContain("USES#payments#other | SyncGroup#shop");
    expect(found).not.toContain("USES#payments#app | SyncGroup#shop");
  });

  test.each([
    ["a label", { metadata: { name: "app", namespace: "payments", labels: { team: "a" } } }, 1],
    ["an annotation", { metadata: { name: "app", namespace: "payments", annotations: { note: "x" } } }, 1],
    ["the spec", { spec: { git: { url: "https://github.com/acme/app" }, interval: "1m" } }, 2],
  ])("an apply raises the generation only for a change of the spec: %s", async (_what, change, generation) => {
    const api = apiFixture();
    await api.call("POST", "/v1/apply", { documents: [source("app")] });
    const before = await api.table.get(keys.object("payments", "Source", "app"));
    const answer = await api.call("POST", "/v1/apply", { documents: [{ ...source("app"), ...change }] });
    expect(answer.body.items).toMatchObject([{ outcome: "configured", generation }]);
    const row = await api.table.get(keys.object("payments", "Source", "app"));
    expect(row).toMatchObject({
      version: (before?.version ?? 0) + 1,
      generation,
      uid: "uid-1",
      createdAt: "2026-11-20T08:00:00.000Z",
    });
    const entries = api.table.all().filter(({ type }) => type === "Directory");
    expect(entries.map(({ pk, sk }) => `${pk} | ${sk}`)).toEqual([
      "REPO#github.com/acme/app | payments#app",
      "SOURCES | payments#app",
    ]);
  });

  test("an apply writes no directory entry when the change moves none", async () => {
    const table = new MemoryTable();
    const written: string[] = [];
    const api = apiFixture(
      table,
      refusingWrites(table, (writes) => {
        for (const write of writes) if ("put" in write) written.push(`${write.put.pk} | ${write.put.sk}`);
        return undefined;
      }),
    );
    const documents = [source("app"), syncGroup("shop", [{ name: "web", source: "app" }])];
    await api.call("POST", "/v1/apply", { documents });
    const before = table.all().filter(({ type }) => type === "Directory");
    written.length = 0;
    const labelled = documents.map((document) => ({
      ...document,
      metadata: { ...document.metadata, labels: { team: "a" } },
    }));
    await api.call("POST", "/v1/apply", { documents: labelled });
    expect(written).toEqual(["NS#payments#Source | app", "NS#payments#SyncGroup | shop"]);
    expect(table.all().filter(({ type }) => type === "Directory")).toEqual(before);
  });

  test("an apply that does not change the spec does not poll the Source before its time", async () => {
    const api = apiFixture();
    await api.call("POST", "/v1/apply", { documents: [source("app")] });
    const key = keys.object("payments", "Source", "app");
    const status = { conditions: [], observedGeneration: 1, attemptedAt: "2026-11-20T08:00:00.000Z" };
    await api.table.write([{ update: key, set: { status } }]);
    api.takeMessages();
    // The first turn after a poll is a tenth of the interval later, or more.
    api.setNow("2026-11-20T08:00:20Z");
    const labelled = { ...source("app"), metadata: { name: "app", namespace: "payments", labels: { team: "a" } } };
    await api.call("POST", "/v1/apply", { documents: [labelled] });
    expect(api.takeMessages()).toEqual([]);
    const row = await api.table.get(key);
    const next = dueAtOf(row?.dueKey ?? "");
    expect(next >= "2026-11-20T08:00:30" && next <= "2026-11-20T08:05:30.000Z", next).toBe(true);
    expect(row?.dispatches).toBeUndefined();
  });

  test("an apply keeps operations and status", async () => {
    const api = apiFixture();
    await api.call("POST", "/v1/apply", { documents: [source("app")] });
    await api.call("POST", "/v1/namespaces/payments/sources/app/suspend", { reason: "INC-1" });
    await api.call("POST", "/v1/apply", { documents: [source("app", { interval: "1m" })] });
    const row = await api.table.get(keys.object("payments", "Source", "app"));
    expect(row?.operations.suspended).toMatchObject({ by: principal, at: "2026-11-20T08:00:00.000Z", reason: "INC-1" });
    expect(row?.dueKey).toBeUndefined();
  });

  test("an apply of a Source makes it due again, in case its message is lost", async () => {
    const api = apiFixture();
    await api.call("POST", "/v1/apply", { documents: [source("app")] });
    const row = await api.table.get(keys.object("payments", "Source", "app"));
    expect(row?.dueKey).toBe("2026-11-20T08:00:30.000Z#NS#payments#Source|app");
    expect(row?.dispatches).toBe(1);
  });

  test("an apply refuses all documents when one is wrong, and names every problem", async () => {
    const api = apiFixture();
    const answer = await api.call("POST", "/v1/apply", {
      documents: [
        source("app"),
        source("ssh", { git: { url: "git@github.com:acme/app.git" }, intervall: "1m" }),
        source("range", { git: { url: "https://github.com/acme/app", ref: { semver: "latest" } } }),
        syncGroup("shop", [{ name: "web", source: "app", path: "{{ cluster.nam }}" }]),
        source("app"),
        { kind: "Sauce" },
      ],
    });
    expect(answer.status).toBe(422);
    expect(answer.body.code).toBe("Invalid");
    expect(answer.body.problems.map((p: { document: number; field: string }) => `${p.document} ${p.field}`)).toEqual([
      "1 spec.intervall",
      "2 spec.git.ref.semver",
      "3 spec.templates[0].path",
      "4 metadata.name",
      "5 apiVersion",
    ]);
    expect(answer.body.problems[3].message).toBe("is the same object as document 1; remove one of them");
    expect(answer.body.problems[0]).toMatchObject({
      object: "Source payments/ssh",
      message: "is not a field Starling knows (did you mean interval?); remove it",
    });
    expect(api.table.all()).toEqual([]);
    expect(api.takeMessages()).toEqual([]);
  });

  test("an apply accepts an exported object, and ignores its status and the fields that the server sets", async () => {
    const api = apiFixture();
    await api.call("POST", "/v1/apply", { documents: [source("app")] });
    const exported = (await api.call("GET", "/v1/namespaces/payments/sources/app")).body;
    const again = await api.call("POST", "/v1/apply", { documents: [exported] });
    expect(outcomes(again.body)).toEqual(["Source/app unchanged"]);
    const forged = { ...source("b"), status: { conditions: [] } };
    expect((await api.call("POST", "/v1/apply", { documents: [forged] })).status).toBe(422);
  });

  test("an apply warns of a maxConcurrent of 0, which means one at a time", async () => {
    const api = apiFixture();
    const group = syncGroup("shop", [{ name: "web", source: "app" }]);
    const rollout = { maxConcurrent: 0, stages: [{ name: "all", maxConcurrent: "0%" }] };
    const documents = [source("app"), { ...group, spec: { ...group.spec, rollout } }];
    const answer = await api.call("POST", "/v1/apply", { documents });
    const next =
      "which means 1: one cluster at a time changes; to change none: starling suspend syncgroup/shop -n payments";
    const ofPace = (warnings: readonly string[]) => warnings.filter((each) => each.includes("maxConcurrent"));
    expect(ofPace(answer.body.items[1].warnings)).toEqual([
      `spec.rollout.maxConcurrent is 0, ${next}`,
      `maxConcurrent of stage all is 0%, ${next}`,
    ]);
    const one = { ...group, spec: { ...group.spec, rollout: { maxConcurrent: "1%" } } };
    const calm = await api.call("POST", "/v1/apply", { documents: [one] });
    expect(ofPace(calm.body.items[0].warnings)).toEqual([]);
  });

  test("an apply warns of approvals that roles can never give, because a role is one approver", async () => {
    const group = syncGroup("shop", [{ name: "web", source: "app" }]);
    const arn = (name: string) => `arn:aws:iam::*:role/${name}`;
    const warnings = async (by: readonly string[], personalRoles?: readonly string[]) => {
      const api = apiFixture(undefined, undefined, undefined, personalRoles === undefined ? {} : { personalRoles });
      const rollout = { stages: [{ name: "production", before: [{ approval: { by, count: 2 } }] }] };
      const documents = [source("app"), { ...group, spec: { ...group.spec, rollout } }];
      const { body } = await api.call("POST", "/v1/apply", { documents });
      return body.items[1].warnings.filter((each: string) => each.includes("approvals"));
    };
    expect(await warnings([arn("sre"), arn("sre")])).toEqual([
      `stage production asks for 2 approvals, and ${arn("sre")} may give 1 in an account: a role is one approver, whoever assumes it; name more of them in by, or add the role to the setting personalRoles`,
    ]);
    expect(await warnings([arn("sre")], ["person-*"])).toHaveLength(1);
    expect(await warnings([arn("sre")], ["sre"])).toEqual([]);
    const enough = [
      [arn("AWSReservedSSO_sre_*")],
      [arn("AWSReservedSSO_sre_1")],
      [arn("sre"), arn("ops")],
      [arn("sre-*")],
    ];
    expect((await Promise.all(enough.map((by) => warnings(by)))).flat()).toEqual([]);
  });

  test("an apply refuses Starling's own bucket, and warns of a bucket that Starling may not read yet", async () => {
    const rules = { own: "starling-blobs", allowed: parseAllowedBuckets("acme-shop:shop,acme-all") };
    const api = apiFixture(undefined, undefined, undefined, { bucketRules: rules });
    const applied = async (bucket: string) => {
      const documents = [{ ...source("app"), spec: { s3: { bucket } } }];
      return api.call("POST", "/v1/apply", { documents });
    };
    const refused = await applied("starling-blobs");
    expect(refused.status).toBe(422);
    expect(refused.body.problems).toMatchObject([
      {
        field: "spec.s3.bucket",
        message: "is Starling's own bucket, which holds the artifacts of all namespaces; name a bucket of your own",
      },
    ]);
    expect((await applied("acme-all")).body.items[0].warnings).toEqual([]);
    expect((await applied("acme-shop")).body.items[0].warnings).toEqual([
      "bucket acme-shop is not for Sources of the namespace payments: an operator adds it to the entry of the bucket in the setting sourceBuckets, and deploys",
    ]);
    expect((await applied("acme-new")).body.items[0].warnings).toEqual([
      "bucket acme-new is not among the buckets that this installation reads: an operator adds it to the setting sourceBuckets, and deploys",
    ]);
  });

  test.each([
    ["arn:aws:cloudwatch:eu-west-1:111122223333:alarm:errors", undefined],
    ["arn:aws:cloudwatch:us-east-1:111122223333:alarm:errors", "of account 111122223333 in us-east-1"],
    ["arn:aws:cloudwatch:eu-west-1:999922223333:alarm:errors", "of account 999922223333 in eu-west-1"],
  ])("an apply refuses an alarm that the installation does not read: %s", async (arn, where) => {
    const api = apiFixture();
    const canary = { name: "canary", clusters: { all: true }, after: [{ bake: "1h" }, { alarm: { arn } }] };
    const group = syncGroup("shop", [{ name: "web", source: "app" }]);
    const rollout = { stages: [canary, { name: "rest" }] };
    const documents = [{ ...group, spec: { ...group.spec, rollout } }];
    const { status, body } = await api.call("POST", "/v1/apply", { documents });
    expect(status).toBe(where === undefined ? 200 : 422);
    if (where === undefined) return;
    const message = `is ${arn}, ${where}; this installation reads alarms of account 111122223333 in eu-west-1: make an alarm on the metric there`;
    expect(body.problems).toMatchObject([{ field: "spec.rollout.stages[0].after[1].alarm.arn", message }]);
  });

  test("an apply warns of a Source that does not exist yet", async () => {
    const api = apiFixture();
    const documents = [syncGroup("shop", [{ name: "web", source: "app" }])];
    const answer = await api.call("POST", "/v1/apply", { documents });
    expect(answer.body.items[0].warnings).toEqual([
      "Source app does not exist in namespace payments yet: nothing is rolled out until it does",
      "no registered cluster matches env=prod yet: nothing is rolled out until one does",
    ]);
    const own = await api.call("POST", "/v1/apply", { documents: [sync("own", { cluster: "c1", source: "app" })] });
    expect(own.body.items[0].warnings).toEqual([
      "Source app does not exist in namespace payments yet: nothing is rolled out until it does",
      "cluster c1 is not registered yet: nothing is rolled out there until it is",
    ]);
    const together = await api.call("POST", "/v1/apply", { documents: [...documents, source("app")] });
    expect(together.body.items[0].warnings).toEqual([
      "no registered cluster matches env=prod yet: nothing is rolled out until one does",
    ]);
  });

  test("an apply warns of a folder that the Source does not make available, both with a stored Source and with one in the request", async () => {
    const api = apiFixture();
    const template = (name: string, path: string) => ({ name, source: "app", path });
    const templates = [
      ...[template("in", "./deploy/base/"), template("at", "deploy"), template("above", ".")],
      { ...template("other", "deploy/web"), overrides: [{ clusters: { all: true }, path: "plain" }] },
      ...[template("beside", "deployment"), template("said", "{{ cluster.labels.tier }}")],
    ];
    const documents = [syncGroup("shop", templates), sync("own", { cluster: "c1", source: "app", path: "plain" })];
    const words =
      "nothing is rolled out until it is; name a folder in one of them, or add it to the Source's spec.paths";
    const of = (path: string) => `path ${path} is in none of the paths of Source app (deploy, charts): ${words}`;
    const desired = [[`template other: ${of("plain")}`, `template beside: ${of("deployment")}`], [of("plain")]];
    const warnings = async (...more: readonly unknown[]) => {
      const answer = await api.call("POST", "/v1/apply", { documents: [...documents, ...more] });
      const items: { readonly warnings: readonly string[] }[] = answer.body.items.slice(0, 2);
      return items.map((item) => item.warnings.filter((each) => each.includes("path")));
    };
    expect(await warnings()).toEqual([[], []]);
    expect(await warnings(source("app", { paths: ["deploy", "charts"] }))).toEqual(desired);
    expect(await warnings()).toEqual(desired);
    expect(await warnings(source("app"))).toEqual([[], []]);
  });

  test("an apply warns of clusters that are not registered, and stops once they are", async () => {
    const api = apiFixture();
    const named = syncGroup("named", [{ name: "web", source: "app" }]);
    const documents = [
      source("app"),
      syncGroup("shop", [{ name: "web", source: "app" }]),
      { ...named, spec: { ...named.spec, clusters: { names: ["c1", "c2", "c3"], notNames: ["c3"] } } },
      sync("own", { cluster: "c2", source: "app" }),
    ];
    const warnings = async (...more: readonly unknown[]) => {
      const answer = await api.call("POST", "/v1/apply", { documents: [...documents, ...more], dryRun: true });
      return answer.body.items.slice(1, 4).map((item: { warnings: readonly string[] }) => item.warnings);
    };
    expect(await warnings()).toEqual([
      ["no registered cluster matches env=prod yet: nothing is rolled out until one does"],
      ["clusters c1, c2 are not registered yet: nothing is rolled out there until they are"],
      ["cluster c2 is not registered yet: nothing is rolled out there until it is"],
    ]);
    expect(await warnings(cluster("c1", { env: "prod" }), cluster("c2"))).toEqual([[], [], []]);
    await api.call("POST", "/v1/apply", { documents: [cluster("c1", { env: "prod" })] });
    expect(await warnings()).toEqual([
      [],
      ["cluster c2 is not registered yet: nothing is rolled out there until it is"],
      ["cluster c2 is not registered yet: nothing is rolled out there until it is"],
    ]);
  });

  test("an apply warns of a first stage without clusters when later stages have some, and not when the first is optional", async () => {
    const api = apiFixture();
    const canary = { name: "canary", clusters: { selector: { matchLabels: { ring: "canary" } } } };
    const group = syncGroup("shop", [{ name: "web", source: "app" }]);
    const warnings = async (first: unknown, ...more: readonly unknown[]) => {
      const rollout = { stages: [first, { name: "rest" }] };
      const documents = [{ ...group, spec: { ...group.spec, rollout } }, source("app"), ...more];
      const answer = await api.call("POST", "/v1/apply", { documents, dryRun: true });
      return answer.body.items[0].warnings;
    };
    const rest = cluster("r1", { env: "prod" });
    const warning =
      "no registered cluster is in stage canary, the first: nothing is rolled out to later stages until one is; " +
      "to pass it without: optional: true";
    expect(await warnings(canary, rest)).toEqual([warning]);
    expect(await warnings({ ...canary, optional: true }, rest)).toEqual([]);
    expect(await warnings(canary, rest, cluster("c1", { env: "prod", ring: "canary" }))).toEqual([]);
    await api.call("POST", "/v1/apply", { documents: [rest] });
    expect(await warnings(canary)).toEqual([warning]);
  });

  test("an apply warns of ClusterValues of one priority that set a value differently for the same cluster", async () => {
    const api = apiFixture();
    const inEnv = (env: string) => ({ selector: { matchLabels: { env } } });
    const rivals =
      "ClusterValues every has the same priority (0), and sets domain otherwise for clusters of both, such as";
    const documents = [
      cluster("c1", { env: "prod" }),
      clusterValues("every", { all: true }, { domain: "a", tier: "gold", size: 1 }),
      clusterValues("prod", inEnv("prod"), { domain: "b", tier: "gold" }),
      clusterValues("dev", inEnv("dev"), { domain: "c" }),
      clusterValues("late", { all: true }, { domain: "d" }, 1),
    ];
    const warnings = async (...given: readonly unknown[]) => {
      const answer = await api.call("POST", "/v1/apply", { documents: given });
      return answer.body.items.map((item: { warnings: readonly string[] }) => item.warnings);
    };
    const counts = "prod counts there, for its name is later; give one of them another priority";
    expect(await warnings(...documents)).toEqual([
      [],
      [`${rivals.replace("every", "prod")} c1: ${counts}`],
      [`${rivals} c1: ${counts}`],
      ["no registered cluster matches env=dev yet"],
      [],
    ]);
    // The same conflict with ClusterValues that are already stored.
    expect(await warnings(clusterValues("also", { names: ["c1"] }, { size: 2 }))).toEqual([
      [
        "ClusterValues every has the same priority (0), and sets size otherwise for clusters of both, such as c1: every counts there, for its name is later; give one of them another priority",
      ],
    ]);
    expect(await warnings(clusterValues("also", { names: ["c1"] }, { size: 2 }, 2))).toEqual([[]]);
    // A cluster that leaves one selector with the same apply is no longer selected by both.
    const moved = [cluster("c1", { env: "test" }), clusterValues("prod", inEnv("prod"), { domain: "e" })];
    expect((await warnings(...moved))[1]).toEqual(["no registered cluster matches env=prod yet"]);
  });

  test("an apply as a dry run writes nothing, and reports what the real apply would do", async () => {
    const api = apiFixture();
    await api.call("POST", "/v1/apply", { documents: [source("app")] });
    api.takeMessages();
    const rows = api.table.all();
    const answer = await api.call("POST", "/v1/apply", {
      documents: [source("app", { interval: "1m" }), source("new")],
      dryRun: true,
    });
    expect(outcomes(answer.body)).toEqual(["Source/app configured", "Source/new created"]);
    expect(api.table.all()).toEqual(rows);
    expect(api.takeMessages()).toEqual([]);
  });

  test("an apply asks for confirmation before a SyncGroup drops a template that clusters have", async () => {
    const api = apiFixture();
    const both = syncGroup("shop", [
      { name: "web", source: "app" },
      { name: "api", source: "app" },
    ]);
    const one = syncGroup("shop", [{ name: "web", source: "app" }]);
    await api.call("POST", "/v1/apply", { documents: [both] });
    await api.table.write([
      { put: syncRow("c1", "shop.web") },
      { put: syncRow("c1", "shop.api") },
      { put: syncRow("c2", "shop.api") },
    ]);
    const asked = await api.call("POST", "/v1/apply", { documents: [one] });
    expect(asked.status).toBe(409);
    expect(asked.body).toEqual({
      code: "ConfirmationRequired",
      message: "SyncGroup payments/shop drops template api: the objects of 2 Syncs on 2 clusters are deleted",
      consequences: [
        {
          message: "SyncGroup payments/shop drops template api: the objects of 2 Syncs on 2 clusters are deleted",
          syncs: 2,
          clusters: 2,
        },
      ],
    });
    const row = await api.table.get(keys.object("payments", "SyncGroup", "shop"));
    expect(row?.spec.templates).toHaveLength(2);
    const tried = await api.call("POST", "/v1/apply", { documents: [one], dryRun: true });
    expect(tried).toMatchObject({ status: 200, body: { consequences: asked.body.consequences } });
    const none = syncGroup("shop", [{ name: "new", source: "app" }]);
    expect((await api.call("POST", "/v1/apply", { documents: [none] })).body.message).toBe(
      "SyncGroup payments/shop drops templates web, api: the objects of 3 Syncs on 2 clusters are deleted",
    );
    const confirmed = await api.call("POST", "/v1/apply", { documents: [one], confirm: true });
    expect(outcomes(confirmed.body)).toEqual(["SyncGroup/shop configured"]);
  });

  test("an apply refuses to move a Sync to another cluster", async () => {
    const api = apiFixture();
    await api.call("POST", "/v1/apply", { documents: [sync("extra", { cluster: "c1", source: "app" })] });
    const answer = await api.call("POST", "/v1/apply", {
      documents: [sync("extra", { cluster: "c2", source: "app" })],
    });
    expect(answer.status).toBe(422);
    expect(answer.body.problems).toMatchObject([{ document: 0, field: "spec.cluster" }]);
  });

  test("an apply that changes the fleet wakes every group and Sync once", async () => {
    const api = apiFixture();
    await api.call("POST", "/v1/apply", {
      documents: [syncGroup("shop", [{ name: "web", source: "app" }]), sync("extra", { cluster: "c1", source: "app" })],
    });
    api.takeMessages();
    const documents = Array.from({ length: 20 }, (_, index) => cluster(`c${index}`, { env: "prod" }));
    await api.call("POST", "/v1/apply", { documents });
    const both = [
      { to: "rollout", owner: { namespace: "payments", kind: "Sync", name: "extra" }, clusters: [] },
      { to: "rollout", owner: group, clusters: [] },
    ];
    expect(api.takeMessages()).toEqual(both);
    await api.call("POST", "/v1/apply", { documents: [cluster("c1", { env: "dev" })] });
    expect(api.takeMessages()).toEqual(both);
    const annotated = cluster("c1", { env: "dev" });
    await api.call("POST", "/v1/apply", {
      documents: [{ ...annotated, metadata: { ...annotated.metadata, annotations: { note: "x" } } }],
    });
    expect(api.takeMessages()).toEqual([]);
  });

  test("an apply logs one audit line for each write, and none for an unchanged object", async () => {
    const api = apiFixture();
    await api.call("POST", "/v1/apply", { documents: [source("app")], reason: "CHG-7" });
    await api.call("POST", "/v1/apply", { documents: [source("app")] });
    expect(api.log).toEqual([
      {
        message: "write",
        audit: true,
        verb: "apply",
        principal: principal,
        reason: "CHG-7",
        kind: "Source",
        namespace: "payments",
        name: "app",
        generationBefore: 0,
        generationAfter: 1,
      },
    ]);
  });
});
