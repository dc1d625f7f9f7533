/** One story, told the same in every weather: three revisions travel through three rings, two of them delete. */
import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { isDeepStrictEqual } from "node:util";
import { ApiAnswer } from "#local/machine/api-session.ts";
import {
  configMap,
  groupDocument,
  namespaceManifest,
  ringStages,
  ringsOf,
  sourceDocument,
  yaml,
} from "#test/support/e2e-documents.ts";
import { namespace, type World } from "#test/support/e2e-world.ts";
import { type NormalForm, normalForm } from "#test/support/normal-form.ts";

const definition = yaml({
  apiVersion: "apiextensions.k8s.io/v1",
  kind: "CustomResourceDefinition",
  metadata: { name: "widgets.example.com" },
  spec: {
    group: "example.com",
    names: { kind: "Widget", plural: "widgets" },
    scope: "Namespaced",
    versions: [
      {
        name: "v1",
        served: true,
        storage: true,
        schema: { openAPIV3Schema: { type: "object", "x-kubernetes-preserve-unknown-fields": true } },
      },
    ],
  },
});

function widget(name: string, size: number): string {
  return yaml({ apiVersion: "example.com/v1", kind: "Widget", metadata: { name, namespace }, spec: { size } });
}

function clusterRole(verbs: readonly string[]): string {
  return yaml({
    apiVersion: "rbac.authorization.k8s.io/v1",
    kind: "ClusterRole",
    metadata: { name: "shop:Reader" },
    rules: [{ apiGroups: [""], resources: ["configmaps"], verbs }],
  });
}

/** What each revision changes; `null` deletes a file. */
const revisions: readonly Readonly<Record<string, string | null>>[] = [
  {
    "deploy/namespace.yaml": namespaceManifest,
    "deploy/definition.yaml": definition,
    "deploy/widget.yaml": widget("one", 1),
    "deploy/a.yaml": configMap("a", { color: "blue" }),
    "deploy/b.yaml": configMap("b", { color: "blue" }),
    "platform/role.yaml": clusterRole(["get"]),
  },
  {
    "deploy/widget.yaml": widget("one", 2),
    "deploy/a.yaml": configMap("a", { color: "green", size: "2" }),
    "deploy/b.yaml": null,
    "deploy/c.yaml": configMap("c", { color: "green" }),
  },
  {
    "deploy/widget.yaml": widget("two", 2),
    "deploy/c.yaml": configMap("renamed", { color: "green" }),
    "platform/role.yaml": clusterRole(["get", "list"]),
  },
];

export type Rings = Readonly<Record<"canary" | "early" | "broad", number>>;

const manyClusters: Rings = { canary: 1, early: 2, broad: 3 };
/** Where every cluster is processes of its own. The empty stage is passed at once. */
export const fewClusters: Rings = { canary: 1, early: 0, broad: 2 };

/** Clusters that may change at once: as many as the last ring has. One of them is kept for the first ring. */
export function storyBound({ rings = manyClusters }: Pick<StoryOptions, "rings">): number {
  return rings.broad;
}

export interface StoryOptions {
  readonly rings?: Rings;
  /** Called before each revision is pushed, with its index. */
  readonly before?: (revision: number) => Promise<void> | void;
  readonly patienceSeconds?: number;
  /** How many of the revisions are told; all by default. */
  readonly chapters?: number;
}

export async function tellStory(world: World, options: StoryOptions = {}): Promise<void> {
  await world.join(...ringsOf(options.rings ?? manyClusters));
  await options.before?.(0);
  let commit = await world.createRepository("app", revisions[0] ?? {});
  const template = { source: "app", apply: { interval: "2h" } };
  await world.apply(
    sourceDocument("app", { git: { url: world.git.url("app"), ref: { branch: "main" } }, interval: "60s" }),
    groupDocument("web", {
      clusters: { all: true },
      templates: [
        { ...template, name: "app", path: "deploy" },
        { ...template, name: "platform", path: "platform" },
      ],
      rollout: {
        maxConcurrent: storyBound(options),
        progressDeadline: "4h",
        stages: ringStages("canary", "early", "broad"),
      },
    }),
  );
  await world.untilInSync("web", commit, options.patienceSeconds);
  for (const [index, files] of revisions.slice(0, options.chapters).entries()) {
    if (index === 0) continue;
    await options.before?.(index);
    commit = await world.push("app", files);
    await world.untilInSync("web", commit, options.patienceSeconds);
  }
}

const leastPatienceSeconds = 120;
/** Of the functions' clock: several of the longest watchdogs, and fetches that died, each of which costs three minutes. */
const watchdogsSeconds = 5400;

/** The story with as much patience as its functions may need where so many of their seconds pass in one. */
export function patient(options: StoryOptions, rate: number, deaths: "none" | "many" = "none"): StoryOptions {
  return { ...options, patienceSeconds: patienceSeconds(rate) * (deaths === "many" ? moreForDeaths : 1) };
}

/** What a run may take in all: longer than any of its waits, so that these say first what they waited for. */
export function runWaitSeconds(rate: number): number {
  return patienceSeconds(rate) * moreForDeaths * 1.25;
}

/** Each death of a cluster's worker costs a watchdog, and each watchdog is twice as long as the last. */
const moreForDeaths = 2;

function patienceSeconds(rate: number): number {
  return Math.max(leastPatienceSeconds, watchdogsSeconds / rate);
}

/** The group goes, and with it everything that it brought to the clusters. */
export async function endStory(world: World, options: StoryOptions = {}): Promise<void> {
  const path = `/v1/namespaces/${namespace}/syncgroups/web`;
  // Where an answer was lost, asking again finds it done.
  await world.session.call("DELETE", `${path}?cascade=delete&confirm=true`).catch(unlessGone);
  await world.waitFor(
    "the group is gone",
    () =>
      world.group("web").then(
        () => false,
        (error: unknown) => unlessGone(error) === undefined,
      ),
    options.patienceSeconds,
  );
}

function unlessGone(error: unknown): undefined {
  if (!(error instanceof ApiAnswer) || error.status !== 404) throw error;
}

/** Of ours, at least, and of the functions': longer than the planner rests. */
const patienceAfterSeconds = 30;
const backoffSecondsAfter = 900;

/** What people were told: all of it, all but what was lost, or whatever it was. */
export type Told = "all" | "some" | "anything";

/**
 * Waits until nothing of the weather is left in the rows.
 * @param told - `"some"` where messages are lost: what only they could tell is not told again. `"anything"` where
 *   clusters fail too, of which people are told.
 * @returns what there is then, and what there should be; the same when all is well.
 */
export async function awaitEnd(
  world: World,
  quiet: NormalForm,
  told: Told,
): Promise<{ readonly form: NormalForm; readonly desired: NormalForm }> {
  const deadline = performance.now() + Math.max(patienceAfterSeconds, backoffSecondsAfter / world.clock.rate) * 1000;
  const desired = told === "all" ? quiet : { ...quiet, events: [] };
  // Three deaths of the only worker at one Sync, one after the other, are told.
  const isNews = (event: string) => !quiet.events.includes(event) && !event.includes("| WorkerDied |");
  const seen = async () => {
    const form = await normalForm(world);
    if (told === "all") return form;
    return { ...form, events: told === "some" ? form.events.filter(isNews) : [] };
  };
  let form = await seen();
  while (!isDeepStrictEqual(form, desired) && performance.now() < deadline) {
    await sleep(200);
    form = await seen();
  }
  return { form, desired };
}

/** @throws Error when more clusters changed at once than may, or one for which nothing was outstanding. */
export function checkInvariants({ monitor }: World, story: StoryOptions): void {
  const [most, bound] = [monitor.most(), storyBound(story)];
  assert.ok(most.length <= bound, `${most.join(", ")} changed at once, more than ${bound}`);
  assert.deepEqual(monitor.unasked(), [], "clusters were written to when nothing was outstanding");
}
