/**
 * One count for every view. The planner and the workers make a fleet in every state; a table of this test has the state
 * of each target. Each view is read over HTTP or through the command, and compared with a recount of that table.
 */
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { readWith } from "#functions/api/http/read-with.ts";
import { takeSurvey } from "#functions/tick/take-survey.ts";
import { stateIndex } from "#shared/fleet/rows/keys.ts";
import type { Phase } from "#shared/fleet/rows/sync-row.ts";
import { answerPage } from "#shared/pages/answer-page.ts";
import { pageHost } from "#shared/pages/html-document.ts";
import type { Metrics } from "#shared/ports.ts";
import { PlannedGroup } from "#test/bench/planned-group.ts";
import { type CliFixture, startCliFixture } from "#test/integration/cli/cli-fixture.ts";
import { tableIn } from "#test/support/html-tables.ts";
import { begin } from "#test/support/planner-story.ts";
import { PlannerWorld, silentLog } from "#test/support/planner-world.ts";

/** The state of a target, in the words of lists. */
type Word = "Ready" | "Drifted" | "Failed" | "Unreachable" | "Retrying" | "Verifying" | "Assigned" | "Waiting";
/** By cluster, then by `namespace/group.template`. */
type Facts = Readonly<Record<string, Readonly<Record<string, Word>>>>;

/** The targets of the group with every state; the other groups have one state each. */
type Web = Readonly<Record<string, Word | undefined>>;
const underWay: Web = {
  c01: "Ready",
  c02: "Ready",
  c03: "Failed",
  c04: "Unreachable",
  c05: "Retrying",
  c06: "Verifying",
  // This target could not be rendered, and never had an assignment.
  c07: "Failed",
  c08: "Assigned",
  // The stage of these targets never started.
  c09: "Waiting",
  c10: "Waiting",
  // The template is disabled there.
  c11: undefined,
};
/** When no rollout is in progress, workers check for drift, and a ready target may change its state. */
const atRest: Web = { ...underWay, c02: "Drifted", c08: "Ready" };
const clusters = Object.keys(underWay);

function factsOf(web: Web): Facts {
  const entries = Object.entries(web).map(([cluster, word]) => {
    const own = word === undefined ? {} : { "shop/web.app": word };
    const others = { "shop/never.app": "Waiting", "shop/paused.app": "Waiting", "platform/quiet.t0": "Ready" } as const;
    return [cluster, { ...own, ...others }] as const;
  });
  return Object.fromEntries(entries);
}

/**
 * The state that a group gives to a cluster, by the state of its only Sync there. A template that is disabled there
 * does not stop the cluster from being ready.
 */
const tallyOf: Readonly<Record<Word | "none", string>> = {
  ...{ none: "ready", Ready: "ready", Drifted: "drifted", Failed: "failed", Unreachable: "unreachable" },
  ...{ Retrying: "changing", Verifying: "changing", Assigned: "changing", Waiting: "waiting" },
};
const none = { ready: 0, changing: 0, failed: 0, unreachable: 0, waiting: 0 };

function recountCluster(facts: Facts, cluster: string) {
  const words = Object.values(facts[cluster] ?? {});
  return { total: words.length, ready: words.filter((word) => word === "Ready").length, words };
}

function recountGroup(facts: Facts, sync: string): Readonly<Record<string, number>> {
  const counts: Record<string, number> = { ...none, selected: clusters.length };
  for (const cluster of clusters) {
    const tally = tallyOf[facts[cluster]?.[sync] ?? "none"];
    counts[tally] = (counts[tally] ?? 0) + 1;
  }
  return counts;
}

const labelsOf = (cluster: string) => `{ring: ${cluster === "c09" || cluster === "c10" ? "late" : "early"}}`;
const head = "apiVersion: starling.dev/v1alpha1\n";
const source = `${head}kind: Source
metadata: {name: NAME, namespace: shop}
spec: {git: {url: "https://git.example/app"}}
`;
const clusterText = (name: string) => `${head}kind: Cluster
metadata: {name: ${name}, labels: ${labelsOf(name)}}
spec: {endpoint: {server: "https://${name}.example.com:6443", token: {secret: starling/clusters/${name}}}}
`;
const groupText = (name: string, from: string, rest = "") => `${head}kind: SyncGroup
metadata: {name: ${name}, namespace: shop}
spec:
  clusters: {all: true}
  templates:
    - {name: app, source: ${from}${rest}}
  rollout:
    maxConcurrent: 100%
    maxFailures: 1
    stages: [{name: early, clusters: {selector: {matchLabels: {ring: early}}}}, {name: late}]
`;

/** The phase in which a worker leaves an attempt; undefined if no worker has started. */
const phases: Readonly<Partial<Record<Word, Phase>>> = {
  ...{ Ready: "Ready", Drifted: "Ready", Failed: "Failed", Unreachable: "Unreachable" },
  ...{ Retrying: "Retrying", Verifying: "Verifying" },
};

describe.each([
  { when: "a rollout is halted, and clusters change", web: underWay },
  { when: "no rollout is in progress any more", web: atRest },
])("a fleet with every state, when $when", ({ web }) => {
  const facts = factsOf(web);
  let cli: CliFixture;
  let world: PlannerWorld;
  beforeEach(async () => {
    cli = await startCliFixture();
    world = new PlannerWorld({ table: cli.table, blobs: cli.blobs });
    const paths = `, path: "clusters/{{ cluster.name }}", overrides: [{clusters: {names: [c11]}, disabled: true}]`;
    const texts = [
      ...["app", "nowhere"].map((name) => source.replace("NAME", name)),
      ...clusters.map(clusterText),
      groupText("web", "app", paths),
      groupText("never", "nowhere"),
      groupText("paused", "nowhere"),
    ];
    cli.write("fleet.yaml", texts.join("---\n"));
    expect(await cli.run("apply -f fleet.yaml -q")).toMatchObject({ code: 0 });
    expect(await cli.run("suspend syncgroup/paused -n shop")).toMatchObject({ code: 0 });
    const quiet = new PlannedGroup(
      { name: "quiet", namespace: "platform", templates: 1, maxConcurrent: "100%" },
      { table: cli.table, blobs: cli.blobs },
    );
    await quiet.create([]);
    await quiet.rollOut("first", quiet.call);
    await world.setSource("first");
    await world.plan();
    await world.renderAll("no YAML", ({ path }) => path.endsWith("c07"));
    await begin(world);
    await say(underWay);
    // Two targets failed and only one may, so that the rollout is halted.
    await world.plan();
    if (web === atRest) {
      for (const cluster of ["c05", "c06", "c08"]) await world.observe(cluster, "Ready");
      await world.plan();
      await say(atRest);
    }
    // The state index has caught up by then.
    world.advanceClock(60);
    await world.plan();
    for (const name of ["never", "paused"]) {
      const shape = { name, namespace: "shop", templates: 1, maxConcurrent: "100%" };
      await new PlannedGroup(shape, { table: cli.table, blobs: cli.blobs }).call();
    }
  });
  afterEach(() => cli.stop());

  /** Writes the state of each cluster like a worker. */
  async function say(words: Web): Promise<void> {
    for (const [cluster, word] of Object.entries(words)) {
      const phase = word === undefined || cluster === "c07" ? undefined : phases[word];
      if (phase !== undefined) await world.observe(cluster, phase);
      if (word === "Drifted") await sayDrift(cluster);
    }
  }

  async function sayDrift(cluster: string): Promise<void> {
    const row = await world.sync(cluster);
    if (row?.observed === undefined) throw new Error("it was seen");
    const since = world.now.toISOString();
    const conditions = [{ type: "Drifted", status: "True", reason: "DriftDetected", message: "", since }] as const;
    const put = { ...row, observed: { ...row.observed, conditions }, version: row.version + 1 };
    await cli.table.write([{ put: { ...put, stateSk: stateIndex.sk("Drifted", row) } }]);
  }

  const json = async (line: string) => JSON.parse((await cli.run(`${line} -o json`)).out);
  const rowsOf = (text: string) =>
    text
      .trim()
      .split("\n")
      .map((line) => line.trim().split(/ {2,}/));

  async function page(path: string): Promise<string> {
    const clock = { now: () => new Date() };
    const ask = readWith({ table: cli.table, blobs: cli.blobs, clock, installation: "starling" });
    const { status, main } = await answerPage(ask, { path, query: {} }, pageHost(clock.now()));
    expect(status).toBe(200);
    return main.toString();
  }

  test("every view of a cluster counts all Syncs that the cluster should have", async () => {
    const { items } = await json("get clusters");
    const table = rowsOf((await cli.run("get clusters --no-headers")).out);
    const shown = tableIn(await page("/clusters"), "Clusters of this page, the worst first");
    for (const name of clusters) {
      const { total, ready, words } = recountCluster(facts, name);
      const { syncs } = items.find((item: { metadata: { name: string } }) => item.metadata.name === name).status;
      expect({ total: syncs.total, ready: syncs.ready }, name).toEqual({ total, ready });
      const counted = syncs.others.flatMap(({ state, count }: { state: string; count: number }) =>
        Array(count).fill(state),
      );
      expect(counted.sort(), name).toEqual(words.filter((word) => word !== "Ready").sort());
      const [, , state, , , column] = table.find(([cell]) => cell === name) ?? [];
      expect(column, `get clusters, ${name}`).toBe(`${ready}/${total}`);
      expect(state, "green is never shown over red").not.toBe("Ready");
      expect(shown.find(([, cell]) => cell === name)?.[3], `the page, ${name}`).toBe(`${ready}/${total}`);
    }
  });

  test("the tree and the description of a cluster name all its Syncs with their states", async () => {
    for (const name of clusters) {
      const own = Object.entries(facts[name] ?? {});
      const listed = await json(`get syncs -A --cluster ${name}`);
      const words = listed.items.map(
        ({ metadata, status }: { metadata: { namespace: string; name: string }; status: { state: string } }) =>
          `${metadata.namespace}/${metadata.name} ${status.state}`,
      );
      expect(words.sort(), name).toEqual(own.map(([sync, word]) => `${sync} ${word}`).sort());
      const tree = (await cli.run(`tree cluster/${name}`)).out;
      expect(tree.split("\n")[0], name).toContain(`${own.length} Syncs`);
      for (const [sync, word] of own) {
        const [, group = ""] = /^(.*)\./.exec(sync) ?? [];
        expect(tree, `${sync} on ${name}`).toMatch(new RegExp(`${group} +1 Sync: 1 ${word}`));
      }
      expect((await cli.run(`describe cluster/${name}`)).out).toContain(`Syncs (${own.length})`);
    }
  });

  test("the counts in every view of a group add up to the number of selected clusters", async () => {
    const counts = recountGroup(facts, "shop/web.app");
    const status = (await json("get syncgroup web -n shop")).status;
    expect(status.clusters).toEqual(counts);
    const { selected, ready, drifted = 0, changing, failed, unreachable, waiting } = counts;
    expect((ready ?? 0) + drifted + (changing ?? 0) + (failed ?? 0) + (unreachable ?? 0) + (waiting ?? 0)).toBe(
      selected,
    );
    const row = rowsOf((await cli.run("get syncgroup web -n shop --no-headers")).out)[0] ?? [];
    expect(row.slice(4, 8)).toEqual([`${ready}/${selected}`, `${changing}`, `${failed}`, `${unreachable}`]);
    expect((await cli.run("describe syncgroup/web -n shop")).out).toContain(
      `${selected} selected: ${ready} ready, ${changing} changing, ${failed} failed, ${unreachable} unreachable, ${waiting} waiting${drifted === 0 ? "" : `, ${drifted} with drift`}`,
    );
    const tree = (await cli.run("tree syncgroup/web -n shop")).out;
    expect(tree.split("\n")[0]).toContain(`${selected} clusters: ${ready} ready, ${changing} changing`);
    for (const [cluster, word] of Object.entries(web)) {
      if (word === undefined) continue;
      expect(tree, cluster).toMatch(new RegExp(`${cluster} .*\\b${word}\\b`));
    }
  });

  test("the fleet page counts the targets of all groups, and those without a rollout as behind", async () => {
    const html = await page("/");
    const listed = tableIn(html, "SyncGroups and Syncs, the worst first").map((row) => [row[1], row[5]]);
    const ready = (sync: string) => `${recountGroup(facts, sync).ready}/${clusters.length}`;
    expect(listed).toContainEqual(["shop/web", ready("shop/web.app")]);
    expect(listed).toContainEqual(["platform/quiet", ready("platform/quiet.t0")]);
    for (const name of ["never", "paused"]) expect(listed).toContainEqual([`shop/${name}`, ready(`shop/${name}.app`)]);
    expect(html).not.toContain("No cluster is behind");
    const behind = tableIn(html, "Oldest revisions").map(([group, runs, , count]) => [group, runs, Number(count)]);
    for (const name of ["never", "paused"])
      expect(behind).toContainEqual([`shop/${name}`, "nothing yet", clusters.length]);
    const own = behind.filter(([group]) => group === "shop/web");
    const { selected = 0, ready: well = 0, drifted = 0 } = recountGroup(facts, "shop/web.app");
    const lacking = own.reduce((sum, [, , count]) => sum + Number(count), 0);
    expect(lacking, "the clusters that are neither ready nor drifted").toBe(selected - well - drifted);
  });

  test("the metric of targets has the same counts as the groups", async () => {
    const reported: Record<string, number> = {};
    const metrics: Metrics = {
      count: (name, value, dimensions = {}) => {
        if (name === "Targets") reported[Object.values(dimensions).join()] = value;
      },
      seconds: () => {},
    };
    const ports = { table: cli.table, sender: world.sender, clock: { now: () => world.now }, log: silentLog, metrics };
    await takeSurvey(ports);
    const [one, other] = [recountGroup(facts, "shop/web.app"), recountGroup(facts, "platform/quiet.t0")];
    const { selected: _selected, ...sums } = Object.fromEntries(
      Object.entries(one).map(([state, count]) => [state, count + (other[state] ?? 0)]),
    );
    expect(reported).toEqual(sums);
  });
});
