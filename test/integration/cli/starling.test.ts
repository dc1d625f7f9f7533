import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { starlingVersion } from "#shared/base/starling-version.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import type { Condition } from "#shared/fleet/rows/object-rows.ts";
import type { StageRunRow, TargetState } from "#shared/fleet/rows/rollout-rows.ts";
import type { RowKey, RowKeyOf } from "#shared/fleet/rows/row.ts";
import type { SyncRow } from "#shared/fleet/rows/sync-row.ts";
import { type CliFixture, fleet, principal, startCliFixture } from "#test/integration/cli/cli-fixture.ts";
import { sayTaken, shop, storeRollout, syncRow } from "#test/unit/functions/api/row-fixture.ts";

let cli: CliFixture;
beforeEach(async () => {
  cli = await startCliFixture();
});
afterEach(() => cli.stop());

async function applied() {
  cli.write("fleet.yaml", fleet);
  const ran = await cli.run("apply -f fleet.yaml -q");
  expect(ran).toMatchObject({ code: 0, err: "" });
}

function clusterIn(ring: string): string {
  return (fleet.split("---")[1] ?? "").replace("c1", ring).replace("env: prod", `ring: ${ring}`);
}

const artifact = {
  revision: "main@sha1:9f2c1ab",
  digest: "sha256:11",
  sizeBytes: 1,
  files: 1,
  storedAt: "2026-11-20T07:44:00.000Z",
  subject: "raise the timeout",
  author: "ana@acme.io",
};

/** Rollout 12, with its first target in canary and the others in rest. */
async function stored([first, ...others]: readonly TargetState[], rest: Partial<StageRunRow> = {}): Promise<void> {
  const states = { canary: first === undefined ? [] : [first], rest: others };
  await storeRollout(cli, { number: 12, states, stageRuns: { rest } });
  await sayTaken(cli.table, shop, artifact);
}

async function rolledOut(states: readonly TargetState[], rest: Partial<StageRunRow> = {}) {
  await applied();
  await stored(states, rest);
  await cli.table.write([
    { put: syncRow("c1", "shop.web") },
    { put: syncRow("c2", "shop.web", { phase: "Failed", reason: "ApplyFailed", message: "1 of 4 objects failed" }) },
  ]);
}

function condition(status: "True" | "False"): Condition {
  return { type: "Ready", status, reason: "Tested", message: "", since: "2026-11-20T08:00:00.000Z" };
}

async function say(key: RowKey, status: Readonly<Record<string, unknown>>): Promise<void> {
  await cli.table.update({ update: key, set: { status }, add: { version: 1 } });
}

describe("apply", () => {
  test("apply creates objects, then finds nothing to do, and prints the installation on stderr", async () => {
    cli.write("fleet.yaml", fleet);
    const first = await cli.run("apply -f fleet.yaml --reason CHG-1");
    expect(first.code).toBe(0);
    expect(first.out).toBe("source/app created\ncluster/c1 created\nsyncgroup/shop created\n");
    expect(first.err).toMatch(/^context here \(us-east-1, http:\/\/127\.0\.0\.1:\d+\)\n$/);
    const second = await cli.run("apply -f fleet.yaml");
    expect(second.out).toBe("source/app unchanged\ncluster/c1 unchanged\nsyncgroup/shop unchanged\n");
    expect(cli.log).toMatchObject([{ principal: principal, reason: "CHG-1" }, {}, {}]);
  });

  test("apply reads standard input, folders and the output of get", async () => {
    const piped = await cli.run("apply -f - -o name", { input: fleet });
    expect(piped.out).toBe("source/app\ncluster/c1\nsyncgroup/shop\n");
    const exported = await cli.run("get syncgroups -o yaml");
    const again = await cli.run("apply -f -", { input: exported.out });
    expect(again).toMatchObject({ code: 0, out: "syncgroup/shop unchanged\n" });
    cli.write("a.yaml", fleet);
    expect((await cli.run("apply -f . --dry-run=server")).out).toBe(
      "source/app unchanged (dry run, server)\ncluster/c1 unchanged (dry run, server)\nsyncgroup/shop unchanged (dry run, server)\n",
    );
  });

  test("apply writes nothing on a dry run", async () => {
    cli.write("fleet.yaml", fleet);
    for (const where of ["client", "server"]) {
      const ran = await cli.run(`apply -f fleet.yaml -n payments --dry-run=${where}`);
      expect(ran.code).toBe(0);
    }
    expect(cli.table.all()).toEqual([]);
  });

  test("apply names file, line, field and remedy of every problem, and applies nothing", async () => {
    cli.write(
      "bad.yaml",
      fleet.replace("clusters: {all: true}", "clusters: {}").replace("https://github", "http://github"),
    );
    const ran = await cli.run("apply -f bad.yaml");
    expect(ran.code).toBe(2);
    expect(ran.out).toBe("");
    expect(
      ran.err,
    ).toBe(`bad.yaml:7: Source/app: spec.git.url would be fetched unencrypted; use https://github.com/acme/app
bad.yaml:19: SyncGroup/shop: spec.clusters needs exactly one of selector, names or all: true (notNames may be added to any of them) (got {})
error: 2 problems in 3 documents; nothing was applied
  next: correct the lines above, then: starling validate -f FILE
`);
    expect(cli.table.all()).toEqual([]);
  });

  test("apply asks before a template's objects are deleted", async () => {
    await applied();
    await cli.table.write([{ put: syncRow("c1", "shop.web") }]);
    cli.write("other.yaml", fleet.replace("name: web", "name: api"));
    const refused = await cli.run("apply -f other.yaml");
    expect(refused.code).toBe(1);
    expect(refused.err).toContain(
      "SyncGroup payments/shop drops template web: the objects of 1 Sync on 1 cluster are deleted\n",
    );
    expect(refused.err).toContain("next: starling apply -f other.yaml --yes");
    expect((await cli.run("apply -f other.yaml", { answer: "n" })).code).toBe(1);
    const sure = await cli.run("apply -f other.yaml", { answer: "y" });
    expect(sure.out).toContain("syncgroup/shop configured");
  });
});

describe("get", () => {
  test("get prints tables for people", async () => {
    await applied();
    const groups = await cli.run("get sg");
    expect(groups.out).toMatch(
      /^NAME {2}REVISION {2}ROLLOUT {2}STAGE {2}READY .* STATE {4}FOR {2}SEEN\nshop {2}- .* Pending {2}-/,
    );
    expect((await cli.run("get clusters --no-headers")).out).toMatch(
      /^c1 +- +Pending +- +- +0\/1 +env=prod +1 Waiting: payments\/shop.web\n$/,
    );
    expect((await cli.run("get src -A -o wide")).out).toContain("https://github.com/acme/app");
  });

  test("get prints JSON, YAML and names for programs, and nothing else on stdout", async () => {
    await applied();
    const json = await cli.run("get sources -o json");
    expect(JSON.parse(json.out)).toMatchObject({ kind: "SourceList", metadata: {}, items: [{ kind: "Source" }] });
    expect(JSON.parse((await cli.run("get source/app -o json")).out).kind).toBe("Source");
    expect((await cli.run("get source app -o name")).out).toBe("source/app\n");
    expect((await cli.run("get syncs -o json")).out).toContain('"items": []');
    const empty = await cli.run("get syncs");
    expect(empty).toEqual({ code: 0, out: "", err: "no Sync found in namespace payments (-A lists all namespaces)\n" });
  });

  test("get finds Syncs by state, cluster and group, worst first", async () => {
    await rolledOut(["Succeeded", "Failed"], { phase: "Halted" });
    const all = await cli.run("get syncs");
    expect(all.out.split("\n").map((line) => line.split(/ +/).slice(0, 2).join(" "))).toEqual([
      "NAME CLUSTER",
      "shop.web c2",
      "shop.web c1",
      "",
    ]);
    expect(all.err).toBe(
      "1 needs attention: shop.web on c2 failed\n  next: starling describe sync/shop.web --cluster c2 -n payments\n",
    );
    const names = async (line: string) => (await cli.run(`${line} --no-headers -q`)).out.trim().split("\n").length;
    expect(await names("get syncs --state failed")).toBe(1);
    expect(await names("get syncs --cluster c1")).toBe(1);
    expect(await names("get syncs --group shop")).toBe(2);
    expect(await names("get sync shop.web")).toBe(2);
  });

  test("get reads all pages", async () => {
    const clusters = Array.from({ length: 7 }, (_, index) => fleet.split("---")[1]?.replace("c1", `c${index}`));
    await cli.run("apply -q -f -", { input: clusters.join("---") });
    const first = await cli.run("get clusters --limit 3");
    expect(first.out.trim().split("\n")).toHaveLength(4);
    const token = /--continue (\S+)/.exec(first.err)?.[1] ?? "";
    const rest = await cli.run(["get", "clusters", "-o", "name", "--continue", token]);
    expect(rest.out.trim().split("\n")).toEqual(["cluster/c3", "cluster/c4", "cluster/c5", "cluster/c6"]);
  });

  test("get selects by sets of labels, which are written with spaces", async () => {
    const clusters = ["a", "b", "c"].map((ring) => clusterIn(ring));
    await cli.run("apply -q -f -", { input: clusters.join("---\n") });
    const named = async (selector: string) => (await cli.run(["get", "clusters", "-o", "name", "-l", selector])).out;
    expect(await named("ring in (a,b)")).toBe("cluster/a\ncluster/b\n");
    expect(await named("ring notin (a, b)")).toBe("cluster/c\n");
    expect(await named("ring=b , ring")).toBe("cluster/b\n");
  });

  // The API repeats the text that it received, under a signature that it accepted.
  const reserved = [..." !\"#$%&'()*+-./:;<=>?@[\\]^_`{|}~", "é", "日本", "🚢", "%20", "%2B", "a+b c", "100%"];

  test.each(reserved)("the command sends %j in a query as it is signed", async (text) => {
    const ran = await cli.run(["get", "clusters", "-l", `a=b=${text}c`]);
    expect(ran).toMatchObject({ code: 2, out: "" });
    expect(ran.err).toContain(`"a=b=${text}c" is no label requirement`);
  });

  test.each(reserved.filter((text) => !/[%/]/.test(text)))(
    "the command sends %j in a path as it is signed",
    async (text) => {
      const ran = await cli.run(["get", "cluster", `x${text}y`]);
      expect(ran).toMatchObject({ code: 1, out: "" });
      expect(ran.err).toContain(`x${text}y`);
    },
  );

  test.each([
    ["get cluster ..", /"\.\." cannot be the name of an object or a namespace/],
    ["get source/.", /"\." cannot be the name of an object or a namespace/],
    ["get sources -n ..", /-n is "\.\."; expected 1 to 63 characters/],
    ["delete source app -n .", /-n is "\."; expected 1 to 63 characters/],
    ["get syncs --cluster ..", /"\.\." cannot be the name of an object or a namespace/],
  ])("`%s` sends no request, because its name would be another path", async (line, error) => {
    await applied();
    const asked = cli.requests();
    const ran = await cli.run(line);
    expect(ran).toMatchObject({ code: 2, out: "" });
    expect(ran.err).toMatch(error);
    expect(cli.requests()).toBe(asked);
  });

  test("--version prints the version, like in other commands", async () => {
    expect(await cli.run("--version")).toEqual({ code: 0, out: `starling ${starlingVersion}\n`, err: "" });
  });

  test.each([
    ["history", "history shop", "starling rollout list shop"],
    ["history", "history", "starling rollout list GROUP"],
    ["history", "history deployment/web --revision=3", "starling rollout list GROUP"],
    ["pause", "pause shop", "starling suspend syncgroup/shop"],
    ["pause", "pause sync/shop", "starling suspend sync/shop"],
    ["resume", "resume sg/shop", "starling resume syncgroup/shop"],
    ["restart", "restart deployment web", "starling rollout refresh GROUP"],
    ["restart", "restart shop", "starling rollout refresh shop"],
    ["undo", "undo shop --to-revision=2", 'starling rollout rollback shop --dry-run --reason "why"'],
    ["undo", "undo shop", 'starling rollout rollback shop --dry-run --reason "why"'],
  ])("the verb %s of kubectl is answered with the nearest command: `rollout %s`", async (verb, line, next) => {
    const asked = cli.requests();
    const ran = await cli.run(`rollout ${line}`);
    expect(ran).toMatchObject({ code: 2, out: "" });
    expect(ran.err).toMatch(new RegExp(`^error: .*\\brollout ${verb}\\b`));
    expect(ran.err.split("\n")).toContain(`  next: ${next}`);
    expect(cli.requests()).toBe(asked);
  });

  test.each(["rollout", "cluster", "context", "local"])(
    "an unknown command after `%s` names the help of that command",
    async (parent) => {
      const ran = await cli.run(`${parent} nope`);
      expect(ran).toEqual({
        code: 2,
        out: "",
        err: `error: unknown command "nope"\n  next: starling ${parent} --help\n`,
      });
    },
  );

  test.each([
    ["get frobs", 2, '"frobs" is not a kind'],
    ["get all", 2, "syncgroups, syncs, rollouts, freezes, versions"],
    ["describe shop", 2, "next: starling describe syncgroup/shop "],
    ["suspend shop", 2, "next: starling suspend syncgroup/shop "],
    ["get source/none", 1, "Source payments/none does not exist"],
    ["get sources --state frob", 2, '--state is "frob"'],
    ["get sources --limit 0", 2, "expected a whole number"],
    ["get sources --context none", 2, 'there is no context "none"'],
    ["get sources --context forged", 3, "Forbidden"],
    ["get sources -l a=b=c", 2, "is no label requirement"],
    ["describe sync/shop.web", 2, "choose one with --cluster"],
    ["rollout status shpo", 1, "SyncGroup payments/shpo does not exist"],
    ["rollout status shpo -w --timeout 10s", 1, "SyncGroup payments/shpo does not exist"],
    ["rollout status shop -n default -w --timeout 10s", 1, "SyncGroup default/shop does not exist"],
    ["rollout status sync/shpo --watch --timeout 10s", 1, "Sync payments/shpo does not exist"],
    ["rollout list shpo", 1, "SyncGroup payments/shpo does not exist"],
    ["suspend cluster/c1", 2, "`suspend` does not work on a Cluster"],
    ["frob", 2, 'unknown command "frob"'],
    ["get", 2, "kind is missing"],
    ["validate -f none.yaml", 2, "does not exist"],
  ])("`%s` ends with the exit code %i", async (line, code, message) => {
    const ran = await cli.run(line);
    expect(ran).toMatchObject({ code, out: "" });
    expect(ran.err).toContain(message);
    expect(ran.err).toMatch(/ {2}next: \S/);
  });

  test("the error names the endpoint that did not answer", async () => {
    const ran = await cli.run("get sources --context gone");
    expect(ran.code).toBe(3);
    expect(ran.err).toContain("no answer from http://127.0.0.1:9 (context gone)");
  });

  test("a command that waits ends with 4 at --timeout, and with 130 at Ctrl-C", async () => {
    await applied();
    expect((await cli.run("get sources -w --timeout 1s")).code).toBe(4);
    const interrupt = new AbortController();
    const watching = cli.run("get sources -w", { interrupted: interrupt.signal });
    setTimeout(() => interrupt.abort(), 200);
    expect(await watching).toMatchObject({ code: 130, err: "interrupted\n" });
  });
});

describe("on a terminal", () => {
  test("a terminal shows states in colour, unless colours are disabled", async () => {
    await applied();
    const red = "\u001b[";
    expect((await cli.run("get sg", { outIsTerminal: true })).out).toContain(red);
    expect((await cli.run("get sg --no-color", { outIsTerminal: true })).out).not.toContain(red);
    expect((await cli.run("get sg", { outIsTerminal: true, env: { NO_COLOR: "1" } })).out).not.toContain(red);
    expect((await cli.run("get sg -o json", { outIsTerminal: true })).out).not.toContain(red);
  });

  test("a terminal shows a watched rollout in place", async () => {
    await rolledOut(["Succeeded", "Applying"]);
    const watching = cli.run("rollout status shop -w", { outIsTerminal: true });
    await vi.waitFor(async () => expect(cli.requests()).toBeGreaterThan(4), { timeout: 5000 });
    await stored(["Succeeded", "Succeeded"]);
    const { out, code } = await watching;
    expect(code).toBe(0);
    expect(out.split("\u001b[0J").at(-1)).toMatch(/^shop .* newest rollout 12: .*\(Complete\)/);
    expect(out.split("\u001b[0J").length).toBeGreaterThan(1);
  });
});

describe("commands that act on objects", () => {
  test("a suspended group refuses a reconcile until it is resumed", async () => {
    await applied();
    expect((await cli.run(["suspend", "sg/shop", "--reason", "INC-1"])).out).toBe("syncgroup/shop suspended\n");
    expect((await cli.run("suspend sg/shop")).out).toBe("syncgroup/shop is already suspended\n");
    expect((await cli.run("get sg")).out).toMatch(/Suspended .* by ana: INC-1\n$/);
    const refused = await cli.run("reconcile sg/shop");
    expect(refused.code).toBe(1);
    expect(refused.err).toContain("resume it first");
    expect((await cli.run("resume syncgroup shop")).out).toBe("syncgroup/shop resumed\n");
    expect((await cli.run("reconcile sg/shop --with-source")).out).toBe("syncgroup/shop reconcile requested\n");
  });

  test("a reconcile waits for the Sources, then requests the clusters and waits for them", async () => {
    await applied();
    const source = keys.object("payments", "Source", "app");
    const waiting = cli.run("reconcile sg/shop --with-source --wait --timeout 20s");
    const asked = async (key: RowKeyOf<"Source" | "SyncGroup">) =>
      (await cli.table.get(key))?.operations.reconcile?.number;
    await vi.waitFor(async () => expect(await asked(source)).toBe(1));
    await say(source, { observedGeneration: 1, handledReconcile: 1, conditions: [condition("True")] });
    const group = keys.object("payments", "SyncGroup", "shop");
    await vi.waitFor(async () => expect(await asked(group)).toBe(2), { timeout: 5000 });
    const complete = { observedGeneration: 1, state: "Complete", conditions: [condition("True")] };
    await say(group, { ...complete, observedOperation: 2, reconciled: 1 });
    const polls = cli.requests();
    await vi.waitFor(() => expect(cli.requests()).toBeGreaterThan(polls + 1), { timeout: 5000 });
    await say(group, { ...complete, observedOperation: 2, reconciled: 2 });
    expect(await waiting).toMatchObject({
      code: 0,
      out: "syncgroup/shop reconcile requested\nsource/app Ready\nsyncgroup/shop Complete\n",
    });
  });

  test.each([
    ["NoClusters", "NoClusters"],
    ["ClusterNotFound", "ClusterNotFound"],
    ["Suspended", "Suspended"],
  ])("a reconcile does not wait for an end that is impossible: %s", async (state, reason) => {
    await applied();
    const group = keys.object("payments", "SyncGroup", "shop");
    const said = { type: "Ready", status: "False", reason, message: "because", since: "2026-11-20T08:00:00.000Z" };
    await say(group, { observedGeneration: 1, observedOperation: 1, reconciled: 1, state, conditions: [said] });
    expect(await cli.run("reconcile sg/shop --wait --timeout 20s")).toMatchObject({
      code: 1,
      out: `syncgroup/shop reconcile requested\nsyncgroup/shop ${state} because\n`,
      err: expect.stringContaining("next: starling describe syncgroup/shop -n payments"),
    });
  });

  test("a reconcile waits until the planner has handled it", async () => {
    await applied();
    const group = keys.object("payments", "SyncGroup", "shop");
    const said = (reason: string) => ({ ...condition("False"), reason, message: "because" });
    const seen = { observedGeneration: 1, observedOperation: 1 };
    await say(group, { ...seen, state: "Waiting", conditions: [said("NothingRolledOut")] });
    const waiting = cli.run("reconcile sg/shop --wait --timeout 20s");
    const since = cli.requests();
    await vi.waitFor(() => expect(cli.requests()).toBeGreaterThan(since + 3), { timeout: 10_000 });
    await say(group, { ...seen, reconciled: 1, state: "NoClusters", conditions: [said("NoClusters")] });
    expect(await waiting).toMatchObject({
      code: 1,
      out: "syncgroup/shop reconcile requested\nsyncgroup/shop NoClusters because\n",
    });
  });

  test("a suspend with an end says it, in its answer and in lists", async () => {
    await applied();
    const until = "2099-11-20T10:00:00.000Z";
    const suspend = ["suspend", "sg/shop", "--reason", "INC-1", "--until"];
    expect((await cli.run([...suspend, until])).out).toBe(`syncgroup/shop suspended, until ${until}\n`);
    expect((await cli.run([...suspend, until])).out).toBe(`syncgroup/shop is already suspended, until ${until}\n`);
    expect((await cli.run("get sg")).out).toMatch(/Suspended .* by ana: INC-1, until 2099-11-20T10:00:00.000Z\n$/);
    expect((await cli.run("describe sg/shop")).out).toContain(`by ana: INC-1, until ${until}`);
    expect((await cli.run([...suspend, "soon"])).err).toContain('--until is "soon"; expected a time or a duration');
  });

  test("a second suspend keeps both reasons", async () => {
    await applied();
    await cli.run("suspend sg/shop");
    expect((await cli.run(["suspend", "sg/shop", "--reason", "INC-2"])).out).toBe(
      "syncgroup/shop is already suspended (by ana; by ana: INC-2); this suspension is recorded too\n",
    );
    expect((await cli.run("get sg")).out).toMatch(/Suspended .* by ana; by ana: INC-2\n$/);
  });

  test("delete asks before it deletes", async () => {
    await applied();
    await cli.table.write([{ put: syncRow("c1", "shop.web") }]);
    const refused = await cli.run("delete sg/shop");
    expect(refused.code).toBe(1);
    expect(refused.err).toContain("takes 1 Sync on 1 cluster with it; their objects are deleted");
    expect(refused.err).toContain("next: starling delete syncgroup/shop --cascade=delete --yes");
    expect((await cli.run("delete sg/shop", { answer: "" })).code).toBe(1);
    const row = () => cli.table.get(keys.object("payments", "SyncGroup", "shop"));
    expect((await row())?.operations.deletion).toBeUndefined();
    expect((await cli.run("delete sg/shop --yes --cascade=orphan")).out).toBe("syncgroup/shop deleting\n");
    expect((await row())?.operations.deletion?.cascade).toBe("orphan");
    const cluster = await cli.run("delete cluster/c1 --yes");
    expect(cluster.err).toContain("next: starling delete cluster/c1 --cascade=orphan");
  });

  test("prune shows unrecorded objects by name and uid, asks, and deletes only those", async () => {
    await applied();
    const row = syncRow("c1", "shop.web");
    const old = { id: { group: "", kind: "ConfigMap", namespace: "shop", name: "old" }, uid: "uid-1", member: true };
    const copy = { ...old, id: { ...old.id, name: "copy" }, uid: "uid-2", member: false };
    const see = (foreign: readonly unknown[]) =>
      cli.table.write([{ put: { ...row, observed: { ...row.observed, foreign } } as SyncRow }]);
    await see([old, copy]);
    const stored = async () => (await cli.table.get(keys.sync("c1", "payments", "shop.web")))?.operations;
    const shown =
      "ConfigMap shop/old   uid uid-1\nnot pruned: 1 (they only copy the label, or are annotated to be kept)\n";

    expect((await cli.run("prune sync/shop.web")).code).toBe(2);
    expect((await cli.run("prune sg/shop")).code).toBe(2);
    expect(await cli.run("prune sync/shop.web --cluster c1 --dry-run")).toMatchObject({ code: 0, out: shown });
    const refused = await cli.run("prune sync/shop.web --cluster c1");
    expect(refused.code).toBe(1);
    expect(refused.err).toContain("deletes 1 object that is not recorded from cluster c1: ConfigMap shop/old");
    expect(refused.err).toContain("next: starling prune sync/shop.web --cluster c1 --yes");
    expect((await cli.run("prune sync/shop.web --cluster c1", { answer: "n" })).code).toBe(1);
    expect(await stored()).toBeUndefined();

    const done = await cli.run(["prune", "sync/shop.web", "--cluster", "c1", "--reason", "restored", "--yes"]);
    expect(done).toMatchObject({ code: 0, out: `${shown}sync/shop.web will be pruned on c1\n` });
    expect((await stored())?.prune).toMatchObject({
      by: principal,
      reason: "restored",
      number: 1,
      objects: [{ uid: "uid-1" }],
    });
    const page = (await cli.run("describe sync/shop.web --cluster c1")).out;
    expect(page).toContain("ConfigMap shop/old   applied by this Sync earlier; not in its inventory and not in git");
    expect(page).toContain("Pruned:  1 object, not done yet: by ana: restored");

    await see([]);
    expect(await cli.run("prune sync/shop.web --cluster c1")).toMatchObject({ code: 0, out: "nothing to prune\n" });
  });
});

describe("rollout", () => {
  const halted = { phase: "Halted", reason: "TooManyFailures", message: "1 cluster failed" } as const;

  test("rollout status shows stages and clusters, and fails if the rollout is halted", async () => {
    await rolledOut(["Succeeded", "Failed", "Waiting"], halted);
    const ran = await cli.run("rollout status shop");
    expect(ran.code).toBe(1);
    expect(ran.out).toMatch(/^shop .* newest rollout 12: main@sha1:9f2c1ab \(Halted\)\n/);
    expect(ran.out).toMatch(/rest +budget .* 1 cluster failed\n/);
    expect(ran.out).toMatch(/c2 +rest +Failed .* ApplyFailed: 1 of 4 objects failed/);
    expect(ran.out).toContain("next: starling describe sync/shop.web --cluster c2 -n payments");
    expect((await cli.run("rollout status shop --state failed -o name")).out).toBe("cluster/c2\n");
    expect((await cli.run("rollout status shop --stage canary -o name")).out).toBe("cluster/c1\n");
    expect(await cli.run("rollout status shop --stage none")).toMatchObject({
      code: 2,
      err: expect.stringContaining('--stage is "none"; expected one of canary, rest'),
    });
    expect((await cli.run("rollout list shop -o name")).out).toBe("rollout/shop-12\n");
    expect((await cli.run("describe sync shop.web --cluster c2")).out).toContain("Status:      Failed");
    const json = JSON.parse((await cli.run("rollout status shop -o json")).out);
    expect(json).toMatchObject({
      kind: "RolloutOverview",
      status: {
        newest: 12,
        stages: [
          { name: "canary", current: 12 },
          { name: "rest", updatingTo: { phase: "Halted" } },
        ],
      },
      targets: [{ cluster: "c1" }, { cluster: "c2", state: "Failed" }, { cluster: "c3" }],
    });
  });

  test("rollout status of a numbered rollout shows its stages, and fails if it is halted", async () => {
    await rolledOut(["Succeeded", "Failed", "Waiting"], halted);
    for (const line of ["rollout status shop --number 12", "describe rollout/shop-12"]) {
      const ran = await cli.run(line);
      expect(ran.code).toBe(line.startsWith("describe") ? 0 : 1);
      expect(ran.out).toContain("shop-12   main@sha1:9f2c1ab");
      expect(ran.out).toContain("Halted: 1 cluster failed");
      expect(ran.out).toMatch(/c2 +rest +Failed .* ApplyFailed: 1 of 4 objects failed/);
    }
    expect(await cli.run("rollout status shop --number 13")).toMatchObject({ code: 1 });
    expect(await cli.run("rollout status shop --number 13 -w --timeout 10s")).toMatchObject({ code: 1 });
  });

  test.each<[string, readonly TargetState[], Partial<StageRunRow>]>([
    ["Halted", ["Failed", "Waiting"], halted],
    ["NothingVerified", ["Unreachable"], { phase: "NothingVerified" }],
    ["TooManyUnreachable", ["Unreachable", "Unreachable", "Succeeded"], { phase: "TooManyUnreachable" }],
  ])("a watch ends with 1 when the rollout is %s", async (_phase, states, rest) => {
    await rolledOut(["Succeeded", ...states], rest);
    expect(await cli.run("rollout status shop -w --timeout 10s")).toMatchObject({ code: 1 });
    expect(await cli.run("rollout status shop --number 12 -w --timeout 10s")).toMatchObject({ code: 1 });
  });

  test("a watch continues while a rollback goes back, and ends with it", async () => {
    await rolledOut(["Succeeded", "Assigned"], { rollback: true });
    for (const line of ["rollout status shop -w", "rollout status shop --number 12 -w"]) {
      expect(await cli.run(`${line} --timeout 3s`)).toMatchObject({ code: 4, err: expect.stringContaining("shop") });
    }
    await stored(["Succeeded", "Succeeded"], { rollback: true, phase: "Passed" });
    for (const line of ["rollout status shop -w", "rollout status shop --number 12 -w"]) {
      const ran = await cli.run(`${line} --timeout 10s`);
      expect(ran).toMatchObject({ code: 0, out: expect.stringContaining("RolledBack") });
    }
  });

  describe("a rollout that does not continue, after a request", () => {
    const group = keys.object("payments", "SyncGroup", "shop");
    const source = keys.object("payments", "Source", "app");
    const changed = fleet.replace("clusters: {all: true}", "clusters: {all: true, notNames: [c9]}");

    /** The rows that the planner leaves when it has handled everything and the rollout still does not continue. */
    async function heard(): Promise<void> {
      const row = await cli.table.get(group);
      if (row === undefined) throw new Error("it was applied");
      const { operations, generation } = row;
      const acts = Object.values(operations).map(({ number }) => number);
      await say(group, { ...row.status, observedGeneration: generation, observedOperation: Math.max(0, ...acts) });
      const handled = { handledReconcile: operations.reconcile?.number, handledRefresh: operations.refresh?.number };
      await cli.table.update({ update: keys.rolloutState(shop), set: handled });
    }

    /** The rows as they are do not end the watch. */
    async function goesOn(line: string): Promise<void> {
      const ran = await cli.run(`${line} --timeout 3s`);
      expect(ran).toMatchObject({ code: 4, err: expect.stringMatching(/^\d\d:\d\d:\d\dZ shop/) });
    }

    test.each<[string, string?]>([
      ["reconcile sg/shop"],
      ["rollout refresh shop"],
      ["apply -f changed.yaml"],
      ["suspend sg/shop"],
      ["resume sg/shop", "suspend sg/shop"],
    ])("the watch continues until the planner has handled %s", async (line, before) => {
      await rolledOut(["Succeeded", "Failed", "Waiting"], halted);
      cli.write("changed.yaml", changed);
      if (before !== undefined) await cli.run(before);
      await heard();
      expect(await cli.run("rollout status shop -w --timeout 10s")).toMatchObject({ code: 1 });
      expect(await cli.run(line)).toMatchObject({ code: 0 });
      await goesOn("rollout status shop -w");
      expect((await cli.run("rollout status shop")).out).toMatch(/asked .* the planner has not started yet: /);
      await heard();
      expect(await cli.run("rollout status shop -w --timeout 10s")).toMatchObject({ code: 1 });
    });

    test("the watch of a numbered rollout continues until the planner has handled every request", async () => {
      await rolledOut(["Succeeded", "Failed", "Waiting"], halted);
      await cli.run("reconcile sg/shop");
      await goesOn("rollout status shop --number 12 -w");
      await heard();
      expect(await cli.run("rollout status shop --number 12 -w --timeout 10s")).toMatchObject({ code: 1 });
    });

    test("the watch continues until the Source was polled", async () => {
      await rolledOut(["Succeeded", "Failed", "Waiting"], halted);
      expect(await cli.run("reconcile source/app")).toMatchObject({ code: 0 });
      await goesOn("rollout status shop -w");
      await say(source, { artifact, observedGeneration: 1, handledReconcile: 1, conditions: [condition("True")] });
      expect(await cli.run("rollout status shop -w --timeout 10s")).toMatchObject({ code: 1 });
    });

    test("a waiting reconcile does not report a failure before the failed clusters have had their turn", async () => {
      await rolledOut(["Succeeded", "Failed", "Waiting"], halted);
      await say(group, { observedGeneration: 1, state: "Halted", conditions: [condition("False")] });
      const waiting = cli.run("reconcile sg/shop --wait --timeout 20s");
      await vi.waitFor(async () => expect((await cli.table.get(group))?.operations.reconcile?.number).toBe(1));
      // The request is handled, and its job is not complete.
      const retry = { do: "retry", stageRun: { content: 12, stage: "rest", snapshot: 0 } } as const;
      const seen = { observedGeneration: 1, observedOperation: 1, conditions: [condition("False")] };
      await cli.table.update({ update: keys.rolloutState(shop), set: { handledReconcile: 1, jobs: [retry] } });
      await say(group, { ...seen, state: "Halted" });
      const since = cli.requests();
      await vi.waitFor(() => expect(cli.requests()).toBeGreaterThan(since + 3), { timeout: 10_000 });
      await cli.table.update({ update: keys.rolloutState(shop), set: { jobs: [] } });
      await say(group, { ...seen, state: "Complete", reconciled: 1, conditions: [condition("True")] });
      expect(await waiting).toMatchObject({ code: 0, out: expect.stringContaining("Complete") });
    });

    test("the watch continues while another revision is desired, as after recover, unless the group is suspended", async () => {
      await rolledOut(["Succeeded", "Failed", "Waiting"], halted);
      await say(source, { observedGeneration: 1, artifact: { ...artifact, digest: "sha256:22" }, conditions: [] });
      await goesOn("rollout status shop -w");
      await cli.run("suspend sg/shop");
      await heard();
      await say(group, { ...(await cli.table.get(group))?.status, state: "Suspended" });
      expect(await cli.run("rollout status shop -w --timeout 10s")).toMatchObject({ code: 1 });
    });

    test("the watch does not report a complete rollout while the desired revision is unknown", async () => {
      await rolledOut(["Succeeded", "Succeeded"]);
      expect(await cli.run("rollout status shop -w --timeout 10s")).toMatchObject({ code: 0 });
      await say(source, { observedGeneration: 1, conditions: [condition("False")] });
      await goesOn("rollout status shop -w");
    });
  });

  test("rollout status fails if no cluster is selected", async () => {
    await applied();
    await stored([]);
    expect(await cli.run("rollout status shop")).toMatchObject({
      code: 1,
      err: expect.stringContaining("shop selects no registered cluster"),
    });
    expect(await cli.run("rollout status shop --number 12")).toMatchObject({ code: 1 });
  });

  test("rollout status -w watches until the rollout ends", async () => {
    await rolledOut(["Succeeded", "Applying"]);
    expect((await cli.run("rollout status shop -w --timeout 1s")).code).toBe(4);
    const watching = cli.run("rollout status shop -w -o json");
    const content = cli.run("rollout status shop --number 12 -w -o json");
    await stored(["Succeeded", "Succeeded"]);
    const ended = await watching;
    expect(ended.code).toBe(0);
    expect(JSON.parse(ended.out)).toMatchObject({
      status: { stages: [{ current: 12 }, { current: 12 }], rollouts: [{ number: 12, phase: "Complete" }] },
      targets: [{ cluster: "c1" }, {}],
    });
    expect(JSON.parse((await content).out)).toMatchObject({
      status: { phase: "Complete" },
      targets: [{ cluster: "c1" }, {}],
    });
  });

  test("rollout refresh records its author and reason", async () => {
    await rolledOut(["Succeeded", "Failed"], halted);
    const ran = await cli.run(["rollout", "refresh", "shop", "--reason", "INC-1"]);
    expect(ran).toMatchObject({ code: 0, out: "shop: the rollouts in progress take a new snapshot\n" });
    expect(ran.err).toMatch(/^context here .*\n {2}next: starling rollout status shop -w\n$/);
    const row = await cli.table.get(keys.object("payments", "SyncGroup", "shop"));
    expect(row?.operations.refresh).toMatchObject({ by: principal, reason: "INC-1", number: 1 });
    expect((await cli.run("rollout refresh shop")).err).toContain("--reason TEXT");
    expect(await cli.run("rollout refresh shpo")).toMatchObject({
      code: 1,
      err: expect.stringContaining("SyncGroup payments/shpo does not exist"),
    });
    expect((await cli.run("rollout refresh source/app")).code).toBe(2);
    await cli.run("suspend sg/shop");
    expect(await cli.run("rollout refresh shop")).toMatchObject({
      code: 1,
      err: expect.stringContaining("resume it first"),
    });
  });
});

test.each(["get sources", "describe sg/shop", "events", "init", "rollout status shop"])(
  "`%s` refuses an invalid namespace in -n, and sends no request",
  async (line) => {
    const before = cli.requests();
    const ran = await cli.run(`${line} -n Bad_NS`);
    expect(ran).toMatchObject({ code: 2, out: "" });
    expect(ran.err).toContain('-n is "Bad_NS"; expected 1 to 63 characters of a-z, 0-9 and -');
    expect(cli.requests()).toBe(before);
  },
);

describe("init", () => {
  test("init writes a valid fleet, and refuses to overwrite it", async () => {
    const ran = await cli.run("init fleet -n team --source https://git.example.com/team/app --path manifests");
    expect(ran.code).toBe(0);
    expect(ran.out).toBe(
      "fleet/source.yaml written\nfleet/clusters.yaml written\nfleet/sync-group.yaml written\nfleet/starling.schema.json written; editors use it to complete and explain fields\n",
    );
    const schema = JSON.parse(readFileSync(join(cli.folder, "fleet", "starling.schema.json"), "utf8"));
    expect(schema.oneOf).toHaveLength(8);
    const source = readFileSync(join(cli.folder, "fleet", "source.yaml"), "utf8");
    expect(source).toContain('url: "https://git.example.com/team/app"');
    expect(source).toContain('paths: ["manifests"]');
    expect(source).toMatch(/^# yaml-language-server: \$schema=\.\/starling\.schema\.json\n/);
    expect(await cli.run("validate -f fleet")).toEqual({ code: 0, out: "6 documents are valid\n", err: "" });
    const again = await cli.run("init fleet");
    expect(again.code).toBe(2);
    expect(again.err).toContain("init overwrites no file");
  });

  test("init takes no address of SSH, which would not be valid without credentials", async () => {
    const ran = await cli.run("init other --source ssh://git@git.example.com/team/app");
    expect(ran).toMatchObject({ code: 2, out: "" });
    expect(ran.err).toContain("is an SSH address, which needs spec.git.credentials");
  });
});

describe("explain", () => {
  test("explain describes each field, and the JSON schema for editors has the same descriptions", async () => {
    const { out } = await cli.run("explain syncgroup.spec.rollout");
    expect(out).toMatch(/spec\.rollout\.progressDeadline +string +default "10m" +longest time without progress/);
    // A terminal has no space beside such long names, so that the whole description is below.
    const narrow = await cli.run("explain syncgroup.spec.rollout", { outIsTerminal: true, columns: 80 });
    expect(narrow.out).toMatch(
      /^spec\.rollout\.progressDeadline {2}string {2}default "10m"\n {4}longest time without progress [^…\n]+\n/m,
    );
    expect(narrow.out).not.toContain("…");
    const schema = JSON.parse((await cli.run("explain source -o json")).out);
    expect(schema.properties.spec.properties.git.properties.url.description).toContain("https://HOST/PATH");
  });
});

describe("completion", () => {
  const complete = async (...words: readonly string[]) =>
    (await cli.run(["complete", "--", ...words])).out.split("\n").filter((word) => word !== "");

  test("completion offers commands, flags, kinds, and the names of existing objects", async () => {
    await applied();
    expect(await complete("desc")).toEqual(["describe"]);
    expect(await complete("rollout", "st")).toEqual(["status"]);
    expect(await complete("get", "--st")).toEqual(["--state"]);
    expect(await complete("get", "syncg")).toEqual(["syncgroup", "syncgroups"]);
    expect(await complete("describe", "cluster/")).toEqual(["cluster/c1"]);
    expect(await complete("get", "clusters", "")).toEqual(["c1"]);
    expect(await complete("describe", "sync", "--cluster", "")).toEqual(["c1"]);
    expect(await complete("rollout", "status", "")).toEqual(["shop"]);
    expect(await complete("get", "-n", "payments", "sg", "")).toEqual(["shop"]);
    expect(await complete("frob", "")).toEqual([]);
  });

  test("completion prints nothing and exits with 0 if no server answers", async () => {
    await applied();
    expect(await cli.run(["complete", "--", "--context", "gone", "describe", "cluster/"])).toEqual({
      code: 0,
      out: "",
      err: "",
    });
  });

  test.each(["bash", "zsh", "fish"])("completion is a script for %s that asks the command", async (shell) => {
    const { code, out } = await cli.run(`completion ${shell}`);
    expect(code).toBe(0);
    expect(out).toContain("starling complete --");
  });
});

describe("node cli/starling.mjs", () => {
  test("node cli/starling.mjs passes output, input and exit codes through", async () => {
    const applying = await cli.spawn("apply -f -", { input: fleet });
    expect(applying.code).toBe(0);
    expect(applying.out).toBe("source/app created\ncluster/c1 created\nsyncgroup/shop created\n");
    expect(applying.err).toContain("context here");
    const json = await cli.spawn("get clusters -o json");
    expect(JSON.parse(json.out).items).toHaveLength(1);
    expect(json.err).toBe("");
    expect((await cli.spawn("get source/none")).code).toBe(1);
    expect((await cli.spawn("get frobs")).code).toBe(2);
    expect((await cli.spawn("get sources --context forged")).code).toBe(3);
    expect((await cli.spawn("version")).out).toMatch(/^starling \d+\.\d+\.\d+ \(starling\.dev\/v1alpha1, Node 24\./);
  });

  test("rollout status -w waits for the first rollout of an existing group", async () => {
    await applied();
    const now = await cli.run("rollout status shop");
    expect(now).toMatchObject({ code: 1, err: expect.stringContaining("has no rollout yet") });
    expect(await cli.run("rollout list shop")).toMatchObject({
      code: 0,
      err: expect.stringContaining("no rollout yet"),
    });
    const watched = await cli.run("rollout status shop -w --timeout 2s");
    expect(watched).toMatchObject({ code: 4, err: expect.stringContaining("waiting for the first rollout") });
  });

  test("node cli/starling.mjs ends with 130 at Ctrl-C", async () => {
    await applied();
    const ran = await cli.spawn("rollout status shop -w -v", { killAfterMs: 50 });
    expect(ran.code).toBe(130);
  });
});
