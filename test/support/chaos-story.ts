/**
 * A story that is the same in every weather: three revisions roll out through three rings, and two of them delete
 * files.
 */
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

/** The changes of each revision; `null` deletes a file. */
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
/** For tests in which every cluster has its own processes. The empty stage passes at once. */
export const fewClusters: Rings = { canary: 1, early: 0, broad: 2 };

/**
 * The number of clusters that may change at once, equal to the size of the last ring. One slot is reserved for the
 * first ring.
 */
export function storyBound({ rings = manyClusters }: Pick<StoryOptions, "rings">): number {
  return rings.broad;
}

export interface StoryOptions {
  readonly rings?: Rings;
  /** Called with the index of each revision before its push. */
  readonly before?: (revision: number) => Promise<void> | void;
  readonly patienceSeconds?: number;
  /** Pushes a revision after the first, and does what people do around the push. */
  readonly pushedBy?: (push: () => Promise<string>) => Promise<string>;
  /** The number of revisions to play. The default is all. */
  readonly chapters?: number;
}

/** @param gated - the stage whose plan people have to approve. */
export function storyGroup(options: Pick<StoryOptions, "rings">, gated?: string) {
  const template = { source: "app", apply: { interval: "2h" } };
  const stages = ringStages("canary", "early", "broad") ?? [];
  const before = [{ approval: { by: [localUser] } }];
  return groupDocument("web", {
    clusters: { all: true },
    templates: [
      { ...template, name: "app", path: "deploy" },
      { ...template, name: "platform", path: "platform" },
    ],
    rollout: {
      maxConcurrent: storyBound(options),
      progressDeadline: "4h",
      stages: stages.map((stage) => (stage.name === gated ? { ...stage, before } : stage)),
    },
  });
}

/** The principal of `world.session`. */
const localUser = "arn:aws:iam::000000000000:user/local";

export async function playStory(world: World, options: StoryOptions = {}): Promise<void> {
  await world.join(...ringsOf(options.rings ?? manyClusters));
  await options.before?.(0);
  let commit = await world.createRepository("app", revisions[0] ?? {});
  await world.apply(
    sourceDocument("app", { git: { url: world.git.url("app"), ref: { branch: "main" } }, interval: "60s" }),
    storyGroup(options),
  );
  await world.untilInSync("web", commit, options.patienceSeconds);
  for (const [index, files] of revisions.slice(0, options.chapters).entries()) {
    if (index === 0) continue;
    await options.before?.(index);
    const push = () => world.push("app", files);
    commit = await (options.pushedBy ?? ((pushed) => pushed()))(push);
    await world.untilInSync("web", commit, options.patienceSeconds);
  }
}

const leastPatienceSeconds = 120;
/**
 * In seconds of the functions' clock. It covers several of the longest watchdogs, and dead fetches of three minutes
 * each.
 */
const watchdogsSeconds = 5400;

/** The story with enough patience for functions whose clock runs at this rate. */
export function patient(options: StoryOptions, rate: number, deaths: "none" | "many" = "none"): StoryOptions {
  return { ...options, patienceSeconds: patienceSeconds(rate) * (deaths === "many" ? moreForDeaths : 1) };
}

/** The time limit of a whole run. It exceeds every wait in the run, so that a wait fails first and names its condition. */
export function runWaitSeconds(rate: number): number {
  return patienceSeconds(rate) * moreForDeaths * 1.25;
}

/** Each death of a cluster's worker costs a watchdog, and each watchdog is twice as long as the last one. */
const moreForDeaths = 2;

function patienceSeconds(rate: number): number {
  return Math.max(leastPatienceSeconds, watchdogsSeconds / rate);
}

/** Deletes the group and everything that it applied to the clusters. */
export async function endStory(world: World, options: StoryOptions = {}): Promise<void> {
  const path = `/v1/namespaces/${namespace}/syncgroups/web`;
  // After a lost answer, the repeated request finds the group deleted.
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

/** In real seconds as well as in seconds of the functions: longer than the planner's longest pause. */
const patienceAfterSeconds = 30;
const backoffSecondsAfter = 900;

/**
 * The reasons of events that faults cause: three deaths of the only worker at one Sync in a row, and an S3 that refuses
 * every try of the SDK.
 */
const ofFaults: readonly string[] = ["WorkerDied", "BlobStoreBusy"];

/** The events that a story expects: all, all but lost ones, or any. */
export type ExpectedEvents = "all" | "some" | "anything";

/**
 * Waits until the rows show no more effects of the weather. @param events - `"some"` where messages are lost, because
 * events that only a lost message carried do not come again. `"anything"` where clusters fail, too, which adds events.
 * @returns the actual and the expected end; both are equal when everything is in sync.
 */
export async function awaitEnd(
  world: World,
  quiet: NormalForm,
  events: ExpectedEvents,
): Promise<{ readonly form: NormalForm; readonly desired: NormalForm }> {
  const deadline = performance.now() + Math.max(patienceAfterSeconds, backoffSecondsAfter / world.clock.rate) * 1000;
  const desired = events === "all" ? quiet : { ...quiet, events: [] };
  const isNews = (event: string) =>
    !quiet.events.includes(event) && !ofFaults.some((reason) => event.includes(`| ${reason} |`));
  const seen = async () => {
    const form = await normalForm(world);
    if (events === "all") return form;
    return { ...form, events: events === "some" ? form.events.filter(isNews) : [] };
  };
  let form = await seen();
  while (!isDeepStrictEqual(form, desired) && performance.now() < deadline) {
    await sleep(200);
    form = await seen();
  }
  return { form, desired };
}

/** @throws Error when too many clusters changed at once, or when a cluster changed without an open assignment. */
export function checkInvariants({ monitor }: World, story: StoryOptions): void {
  const [most, bound] = [monitor.most(), storyBound(story)];
  assert.ok(most.length <= bound, `${most.join(", ")} changed at once, more than ${bound}`);
  assert.deepEqual(monitor.unasked(), [], "clusters were written to when nothing was outstanding");
}
