import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createRandom } from "#local/base/random.ts";
import { KubeConnection } from "#shared/adapters/kube/kube-connection.ts";
import { stringifyJson } from "#shared/base/json.ts";
import { diffSet } from "#shared/kube/engine/diff-set.ts";
import type { ObjectId } from "#shared/kube/object-id.ts";
import type { BenchOptions, BenchResult } from "#test/bench/bench.ts";
import type { DiffTask } from "#test/bench/diff-child.ts";
import { bringInSync, diffArgs, diffCodes, namespace, type Plan, plantDrift } from "#test/bench/drift.ts";
import { median, medianRatio, spread } from "#test/bench/figures.ts";
import { type Ground, onGround } from "#test/bench/ground.ts";
import { runTimed, type TimedRun } from "#test/bench/kubectl.ts";
import { measured } from "#test/bench/measure.ts";
import { benchObjects } from "#test/bench/objects.ts";
import { plants } from "#test/bench/plants.ts";
import { endpointOf } from "#test/support/cluster-fixture.ts";

/** kubectl refuses the whole set if one object no longer fits its kind, so such changes are left out. */
const ways = plants.filter(({ once }) => once === undefined);

interface Round {
  readonly ours: { readonly unchanged: TimedRun; readonly changed: TimedRun };
  readonly kubectls: { readonly unchanged: TimedRun; readonly changed: TimedRun };
  readonly requests: { readonly unchanged: number; readonly changed: number };
  readonly failures: readonly string[];
}

/**
 * A set in sync, and one of which some objects were changed by hand: what `starling diff` asks a cluster, in a process of
 * its own, beside `kubectl diff --server-side` of the same set. Nothing may be found in the first, and in the other at
 * least what kubectl finds.
 */
export function diff(options: BenchOptions): Promise<BenchResult> {
  const { target, objects = 500, rounds = 3, changes = ways.length, seed = 1, say } = options;
  return onGround({ target, namespaces: [namespace] }, async (ground) => {
    const set = benchObjects(objects, { namespace, revision: "1" });
    const plan = { set, file: await ground.kubectl.write("set", set), changes, ways, random: createRandom(seed) };
    const all: Round[] = [];
    for (let number = 0; number <= rounds; number += 1) {
      all.push(await diffRound(ground, plan));
      say(number === 0 ? "first" : `round ${number}`);
    }
    const requests = await ground.kubectl.requestsOf(diffArgs(plan), diffCodes);
    // The first round fills caches and does not count.
    const counted = all.slice(1);
    const times = (of: (round: Round) => TimedRun) => counted.map((round) => of(round).ms);
    const figuresOf = (of: (round: Round) => TimedRun) => ({
      ...spread(times(of)),
      cpuMs: Math.round(median(counted.map((round) => of(round).cpuMs))),
    });
    const ratio = (of: "unchanged" | "changed") =>
      medianRatio(
        times(({ ours }) => ours[of]),
        times(({ kubectls }) => kubectls[of]),
      );
    return {
      target: ground.target,
      ratios: { vsKubectlDiff: ratio("unchanged"), vsKubectlDiffChanged: ratio("changed") },
      figures: {
        unchanged: {
          ...figuresOf(({ ours }) => ours.unchanged),
          requests: median(counted.map((round) => round.requests.unchanged)),
        },
        changed: {
          ...figuresOf(({ ours }) => ours.changed),
          requests: median(counted.map((round) => round.requests.changed)),
        },
        "kubectl diff": { ...figuresOf(({ kubectls }) => kubectls.unchanged), requests },
        "kubectl diff, changed": figuresOf(({ kubectls }) => kubectls.changed),
        planted: { seed, objects, changes },
      },
      failures: all.flatMap(({ failures }) => failures),
    };
  });
}

async function diffRound(ground: Ground, plan: Plan): Promise<Round> {
  await bringInSync(ground, plan.set);
  const unchanged = await bothDiffs(ground, plan);
  await plantDrift(ground, plan);
  const changed = await bothDiffs(ground, plan);
  const names = new Set(changed.found);
  const missed = changed.kubectlFound.filter((name) => !names.has(name));
  return {
    ours: { unchanged: unchanged.ours, changed: changed.ours },
    kubectls: { unchanged: unchanged.kubectl, changed: changed.kubectl },
    requests: { unchanged: unchanged.requests, changed: changed.requests },
    failures: [
      ...unchanged.found.map((name) => `found without a cause: ${name}`),
      ...missed.map((name) => `found by kubectl alone: ${name}`),
      ...(changed.kubectlFound.length === 0 ? ["kubectl found nothing"] : []),
    ],
  };
}

async function bothDiffs(ground: Ground, plan: Plan) {
  const { address, worker, kubectl } = ground;
  const task: DiffTask = { address, setId: worker.setId, objects: plan.set };
  const file = join(kubectl.folder, "task.json");
  await writeFile(file, stringifyJson(task), { mode: 0o600 });
  const ours = await runTimed([process.execPath, "test/bench/diff-child.ts", file], process.cwd());
  if (ours.code !== 0) throw new Error(`the diff ended with ${ours.code}: ${ours.stderr.slice(0, 1000)}`);
  const theirs = await kubectl.run(diffArgs(plan), diffCodes);
  const connection = new KubeConnection(endpointOf(address));
  try {
    const client = connection.client({ deadlineMs: Date.now() + 60_000 });
    const { setId, objects } = task;
    let found: readonly ObjectId[] = [];
    const { requests } = await measured(async () => {
      const { differences, refused } = await diffSet(client, { setId, objects, groupKinds: [], prune: true });
      found = [...differences, ...refused].map(({ id }) => id);
    });
    return {
      ours,
      kubectl: theirs,
      requests: requests.get(new URL(address.server).host) ?? 0,
      found: found.map(({ kind, name }) => `${kind} ${name}`),
      kubectlFound: namesIn(theirs.stdout),
    };
  } finally {
    connection.close();
  }
}

/**
 * The objects in lines such as `+++ /tmp/MERGED-1/apps.v1.Deployment.shop.web 2026-...`: group, version, kind,
 * namespace and name.
 */
function namesIn(text: string): readonly string[] {
  const found = [...text.matchAll(/^\+\+\+ \S*\/MERGED-\d+\/(\S+)/gm)].map(([, name = ""]) => name);
  return found.flatMap((name) => {
    const [, kind = "", rest = ""] = /(?:^|\.)v\d[a-z0-9]*\.([A-Z]\w+)\.(.*)$/.exec(name) ?? [];
    const inNamespace = rest.startsWith(`${namespace}.`) ? rest.slice(namespace.length + 1) : rest.replace(/^\./, "");
    return kind === "" ? [] : [`${kind} ${inNamespace}`];
  });
}
