/** The content of the demo: five chapters with its own repository, or one rollout of the user's repository. */

import { adoptRepository, type UserRepository } from "#local/git/user-repository.ts";
import { configMapIn, deleteConfigMap, provideNamespaces } from "#local/machine/by-hand.ts";
import { rings } from "#local/machine/rings.ts";
import { addFleet, type Stack } from "#local/machine/stack.ts";
import type { DemoOptions } from "#local/stories/demo-options.ts";
import { demoCommits, demoPath } from "#local/stories/demo-repository.ts";
import { type FleetView, RolloutStory } from "#local/stories/rollout-story.ts";
import { defined } from "#shared/base/defined.ts";
import { ourApiVersion } from "#shared/fleet/kinds/metadata.ts";
import { stringAt } from "#shared/kube/kube-object.ts";

export const demoNamespace = "demo";
export const demoGroup = "shop";
const source = "shop";
/** The namespace in which `kubectl apply` puts objects without a namespace. */
const defaultNamespace = "default";

/** Long enough for the slowest machine, so that only an image that never starts exceeds it. */
const patient = "45s";
/** A short deadline for the broken revision, so that the reader does not have to wait. */
const impatient = "6s";

export interface DemoOutput {
  readonly say: (line?: string) => void;
  readonly columns: number;
  readonly signal: AbortSignal;
}

/** Registers the clusters, rolls out, and reports the progress. @returns the final state of the fleet. */
export async function showDemo(stack: Stack, options: DemoOptions, output: DemoOutput): Promise<FleetView> {
  const { say } = output;
  const repository =
    options.user === undefined ? undefined : await adoptRepository(stack.git, withoutUndefined(options.user));
  const names = await addFleet(stack, options.clusters);
  const inRings = rings
    .map((ring) => ({ ring, size: names.filter((name) => name.startsWith(ring)).length }))
    .filter(({ size }) => size > 0)
    .map(({ ring, size }) => `${ring} ${size}`);
  say("Starling runs on this machine, with a git server and local DynamoDB, SQS and S3.");
  say(`Clusters: ${options.clusters}, in rings: ${inRings.join(", ")}.`);
  const story = new RolloutStory({
    session: stack.session,
    namespace: demoNamespace,
    group: demoGroup,
    source,
    ...output,
  });
  const bound = changingAtOnce(options.clusters);
  if (repository === undefined || options.user === undefined) return ownTale(stack, story, { ...output, bound });
  if (repository.warning !== undefined) say(`Note: ${repository.warning}.`);
  story.chapter(`${repository.description}`);
  say(`   folder ${options.user.path} rolls out ring by ring; at most ${bound} clusters change at once`);
  await stack.session.apply([
    sourceOf(stack.gitSpec(repository.url), repository.ref),
    groupOf({ path: options.user.path, progressDeadline: patient, bound }),
  ]);
  const end = provideNamespaces(stack.clusters, (name) =>
    story.note(`the folder has no Namespace ${name}, so the demo creates it in every cluster`),
  );
  try {
    return await story.follow();
  } finally {
    end();
  }
}

function withoutUndefined({ ref, ...rest }: NonNullable<DemoOptions["user"]>) {
  return ref === undefined ? rest : { ...rest, ref };
}

function changingAtOnce(clusters: number): number {
  return Math.max(4, Math.ceil(clusters / 10));
}

interface Setting extends DemoOutput {
  /** The number of clusters that may change at once. */
  readonly bound: number;
}

async function ownTale(stack: Stack, story: RolloutStory, { say, bound }: Setting): Promise<FleetView> {
  const { git, session } = stack;
  const strategy = (progressDeadline: string) => session.apply([groupOf({ path: demoPath, progressDeadline, bound })]);

  await git.createRepository("shop", demoCommits.first);
  story.chapter(`The first revision rolls out ring by ring; at most ${bound} clusters change at once`);
  await session.apply([sourceOf(stack.gitSpec(git.url("shop")), { branch: "main" })]);
  await strategy(patient);
  await story.follow();

  story.chapter("A push triggers the webhook, and version 1.1.0 rolls out the same way");
  const second = await git.commitFiles("shop", demoCommits.second, { message: "Roll out 1.1.0" });
  await story.follow(second);

  const last = stack.clusters.connections().at(-1);
  if (last === undefined) throw new Error("there is no cluster");
  const victim = last.name;
  story.chapter(`Somebody deletes ConfigMap shop/settings in ${victim} by hand`);
  await deleteConfigMap(last, { namespace: "shop", name: "settings" });
  story.note(`deleted: ${describeSettings(stack, victim)}`);
  await session.call("POST", `/v1/namespaces/${demoNamespace}/syncgroups/${demoGroup}/reconcile`, {});
  await story.until(
    `ConfigMap shop/settings was not restored in ${victim}`,
    () => settingsOf(stack, victim) !== undefined,
  );
  story.note(`restored: ${describeSettings(stack, victim)}`);

  story.chapter("A push with an image that cannot be pulled halts at the canaries");
  say(`   (this time a cluster has ${impatient} to become ready)`);
  await strategy(impatient);
  const broken = await git.commitFiles("shop", demoCommits.broken, { message: "Roll out 1.2.0" });
  await story.follow(broken);

  story.chapter("A push with the fix rolls out to every cluster");
  await strategy(patient);
  const fixed = await git.commitFiles("shop", demoCommits.fixed, { message: "Fix the image of 1.2" });
  return story.follow(fixed);
}

function sourceOf(git: ReturnType<Stack["gitSpec"]>, ref: UserRepository["ref"]): unknown {
  return {
    apiVersion: ourApiVersion,
    kind: "Source",
    metadata: { name: source, namespace: demoNamespace },
    spec: { git: { ...git, ...defined({ ref }) }, interval: "1m" },
  };
}

interface GroupWish {
  readonly path: string;
  readonly progressDeadline: string;
  readonly bound: number;
}

function groupOf({ path, progressDeadline, bound }: GroupWish): unknown {
  return {
    apiVersion: ourApiVersion,
    kind: "SyncGroup",
    metadata: { name: demoGroup, namespace: demoNamespace },
    spec: {
      clusters: { all: true },
      templates: [{ name: "app", source, path, apply: { interval: "30s", defaultNamespace } }],
      rollout: {
        maxConcurrent: bound,
        progressDeadline,
        stages: rings.map((ring) =>
          ring === "broad" ? { name: ring } : { name: ring, clusters: { selector: { matchLabels: { ring } } } },
        ),
      },
    },
  };
}

function settingsOf(stack: Stack, cluster: string) {
  return configMapIn(stack.clusters, cluster, { namespace: "shop", name: "settings" });
}

function describeSettings(stack: Stack, cluster: string): string {
  const uid = stringAt(settingsOf(stack, cluster), "metadata", "uid");
  return uid === undefined ? "no ConfigMap shop/settings" : `ConfigMap shop/settings, uid ${uid}`;
}
