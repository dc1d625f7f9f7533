/** `npm run demo`: a fleet on this machine follows a git repository, ring by ring. Nothing is left running at the end. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { demoCommits, demoPath } from "#local/demo-repository.ts";
import { type FleetView, RolloutStory } from "#local/rollout-story.ts";
import { addFleet, rings, type Stack, startStack, writeAccessFiles } from "#local/stack.ts";
import { adoptRepository, type UserRepository } from "#local/user-repository.ts";
import { KubeConnection } from "#shared/adapters/kube/kube-cluster-client.ts";
import { API_VERSION } from "#shared/domain/kinds/metadata.ts";
import { objectIdOf, stringAt } from "#shared/domain/kube-object.ts";
import { errorMessage } from "#shared/errors.ts";

const usage = `npm run demo -- [options]

  --repo URL-or-path   roll out what is in this git repository instead of the demo's own
  --path DIR           the folder in it; may hold {{ cluster.labels.ring }}          (default .)
  --ref REF            a branch, a tag or a full commit id                           (default: the remote's HEAD)
  --clusters N         clusters to make, 1 to 300                                    (default 12)
  --keep DIR           leave everything running until Ctrl-C, and write DIR/kubeconfig and DIR/starling.json
`;

const namespace = "demo";
const group = "shop";

interface Options {
  readonly repo: string | undefined;
  readonly path: string;
  readonly ref: string | undefined;
  readonly clusters: number;
  readonly keep: string | undefined;
}

function readOptions(): Options {
  const { values } = parseArgs({
    options: {
      repo: { type: "string" },
      path: { type: "string" },
      ref: { type: "string" },
      clusters: { type: "string", default: "12" },
      keep: { type: "string" },
      help: { type: "boolean", short: "h" },
    },
  });
  if (values.help === true) {
    process.stdout.write(usage);
    process.exit(0);
  }
  const clusters = Number(values.clusters);
  if (!Number.isInteger(clusters) || clusters < 1 || clusters > 300) {
    throw new Error(`--clusters is ${values.clusters}; expected a whole number from 1 to 300`);
  }
  if (values.repo === undefined && (values.path ?? values.ref) !== undefined) {
    throw new Error("--path and --ref go with --repo: the demo's own repository has one path and one branch");
  }
  return { repo: values.repo, path: values.path ?? ".", ref: values.ref, clusters, keep: values.keep };
}

const say = (line = "") => process.stdout.write(`${line}\n`);

async function main(): Promise<number> {
  const options = readOptions();
  const scratch = await mkdtemp(join(tmpdir(), "starling-demo-"));
  const interrupted = Promise.withResolvers<"interrupted">();
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => interrupted.resolve("interrupted"));
  const starting = startStack({ repositories: join(scratch, "repositories") });
  let stack: Stack | undefined;
  try {
    stack = await starting;
    const outcome = await Promise.race([tell(stack, options), interrupted.promise]);
    if (outcome === "interrupted") return 130;
    if (options.keep !== undefined) await interrupted.promise;
    return outcome ? 0 : 1;
  } finally {
    await stack?.stop();
    await rm(scratch, { recursive: true, force: true });
  }
}

/** @returns whether every cluster ended in sync. */
async function tell(stack: Stack, options: Options): Promise<boolean> {
  await addFleet(stack, options.clusters);
  const story = new RolloutStory({ session: stack.session, namespace, group, say });
  const inRings = rings.map(
    (ring) => `${ring} ${stack.clusters.connections().filter(({ name }) => name.startsWith(ring)).length}`,
  );
  say(
    `Starling on this machine: ${options.clusters} clusters in rings (${inRings.join(", ")}), a git server, DynamoDB, SQS and S3.`,
  );
  const ended =
    options.repo === undefined
      ? await ownStory(stack, story)
      : await userStory(stack, story, { ...options, repo: options.repo });
  const inSync = ended.state === "Complete" && ended.ready === options.clusters;
  say();
  if (options.keep !== undefined) {
    const files = await writeAccessFiles(stack, resolve(options.keep), namespace);
    say("Everything keeps running until Ctrl-C. In another terminal:");
    say(`  export KUBECONFIG=${files.kubeconfig} STARLING_CONFIG=${files.context}`);
    say(`  kubectl --context canary-${"1".padStart(String(options.clusters).length, "0")} get all -A`);
    say(`  npm run starling -- rollout status ${group}`);
  }
  if (!inSync) say(`state: ${ended.state}${ended.message === "" ? "" : `, ${ended.message}`}`);
  say(`in sync: ${ended.ready}/${options.clusters} clusters at ${ended.revision}`);
  return inSync;
}

async function ownStory(stack: Stack, story: RolloutStory): Promise<FleetView> {
  const { git, session } = stack;
  await git.createRepository("shop", demoCommits.first);
  story.chapter("A first revision: every cluster gets it, ring by ring, at most 4 changing at once");
  await session.apply([
    sourceOf(git.url("shop"), { branch: "main" }),
    groupOf({ path: demoPath, progressDeadline: "6s" }),
  ]);
  await story.follow();

  story.chapter("A push: the webhook fires, and version 1.1.0 travels the same way");
  const second = await git.commitFiles("shop", demoCommits.second, { message: "Roll out 1.1.0" });
  await story.follow(second);

  const victim = stack.clusters.connections().at(-1)?.name ?? "";
  story.chapter(`Somebody deletes ConfigMap shop/settings in ${victim} by hand`);
  await deleteByHand(stack, victim);
  say(`  gone: ${describeSettings(stack, victim)}`);
  await session.call("POST", `/v1/namespaces/${namespace}/syncgroups/${group}/reconcile`, {});
  await story.until(() => settingsOf(stack, victim) !== undefined);
  say(`  back: ${describeSettings(stack, victim)}`);

  story.chapter("A push with an image that cannot be pulled: the rollout halts at the canaries");
  const broken = await git.commitFiles("shop", demoCommits.broken, { message: "Roll out 1.2.0" });
  await story.follow(broken);

  story.chapter("A push with the fix");
  const fixed = await git.commitFiles("shop", demoCommits.fixed, { message: "Fix the image of 1.2" });
  return story.follow(fixed);
}

async function userStory(
  stack: Stack,
  story: RolloutStory,
  options: Options & { readonly repo: string },
): Promise<FleetView> {
  const repository: UserRepository = await adoptRepository(stack, { repo: options.repo, ref: options.ref });
  story.chapter(`${repository.description}, folder ${options.path}: ring by ring, at most 4 changing at once`);
  await stack.session.apply([
    sourceOf(repository.url, repository.ref),
    groupOf({ path: options.path, progressDeadline: "45s" }),
  ]);
  return story.follow();
}

function sourceOf(url: string, ref: UserRepository["ref"]): unknown {
  return {
    apiVersion: API_VERSION,
    kind: "Source",
    metadata: { name: "shop", namespace },
    spec: { git: { url, ...(ref === undefined ? {} : { ref }) }, interval: "1m" },
  };
}

function groupOf(options: { readonly path: string; readonly progressDeadline: string }): unknown {
  return {
    apiVersion: API_VERSION,
    kind: "SyncGroup",
    metadata: { name: group, namespace },
    spec: {
      clusters: { all: true },
      templates: [{ name: "app", source: "shop", path: options.path, apply: { interval: "30s" } }],
      rollout: {
        maxConcurrent: 4,
        progressDeadline: options.progressDeadline,
        stages: rings.map((ring) =>
          ring === "broad" ? { name: ring } : { name: ring, clusters: { selector: { matchLabels: { ring } } } },
        ),
      },
    },
  };
}

async function deleteByHand(stack: Stack, cluster: string): Promise<void> {
  const connection = stack.clusters.connections().find(({ name }) => name === cluster);
  if (connection === undefined) throw new Error(`there is no cluster ${cluster}`);
  const { server, caData, token } = connection;
  const kube = new KubeConnection({ server, caData, credentials: { token: async () => token } });
  const client = kube.client({ deadlineMs: Date.now() + 5000 });
  const kind = await client.lookup({ group: "", kind: "ConfigMap" });
  const key = { namespace: "shop", name: "settings" };
  if (kind.outcome !== "found") throw new Error(`${cluster} serves no ConfigMaps`);
  const uid = stringAt(await client.get(kind.info, key), "metadata", "uid");
  if (uid !== undefined) await client.delete(kind.info, key, { uid });
  kube.close();
}

function settingsOf(stack: Stack, cluster: string) {
  return stack.clusters.objects(cluster).find((object) => {
    const { kind, namespace, name } = objectIdOf(object);
    return kind === "ConfigMap" && namespace === "shop" && name === "settings";
  });
}

function describeSettings(stack: Stack, cluster: string): string {
  const uid = stringAt(settingsOf(stack, cluster), "metadata", "uid");
  return uid === undefined ? "no ConfigMap shop/settings" : `ConfigMap shop/settings with uid ${uid}`;
}

main().then(
  (code) => {
    process.exitCode = code;
  },
  (error: unknown) => {
    process.stderr.write(`demo: ${errorMessage(error)}\n`);
    process.exitCode = 1;
  },
);
