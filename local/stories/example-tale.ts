/** Shows an example fleet in the demo: each SyncGroup rolls out, then the content of the clusters. */
import { registerEksClusters } from "#local/machine/register-eks-clusters.ts";
import type { Stack } from "#local/machine/stack.ts";
import { attachBundle, keyedBundle, statementOf } from "#local/registry/cosign.ts";
import type { KeyPair } from "#local/registry/cosign-keys.ts";
import type { RegistryServer } from "#local/registry/registry-server.ts";
import type { DemoOutput } from "#local/stories/demo-tale.ts";
import { type ExampleFleet, repositoryOf } from "#local/stories/example-fleet.ts";
import { type FleetView, RolloutStory } from "#local/stories/rollout-story.ts";
import { packArtifact } from "#shared/adapters/render/artifact-archive.ts";
import { labelsOf, ownApplyEntry, stringAt } from "#shared/kube/kube-object.ts";
import { partOfLabel } from "#shared/kube/membership.ts";
import { chartFile } from "#shared/source/helm/chart-folders.ts";

/** The folder of the registry in which the charts are. */
const chartsInRegistry = "charts";

const versionLine = /^version: (.*)$/m;

/** The final state of a SyncGroup. */
export interface GroupEnd extends FleetView {
  readonly namespace: string;
  readonly name: string;
}

/** A SyncGroup of an example that was applied, and what its rollouts are told with. */
export interface ExampleStory {
  readonly namespace: string;
  readonly name: string;
  readonly templates: readonly string[];
  /** The names of all clusters of the example. */
  readonly clusters: readonly string[];
  readonly story: RolloutStory;
}

/**
 * Creates the example's clusters and repositories, and applies its documents. @param signer - signs each chart, and is the
 * only signer whom a Source with `verify.cosign` trusts.
 */
export async function startExample(
  stack: Stack,
  example: ExampleFleet,
  output: DemoOutput,
  signer?: KeyPair,
): Promise<readonly ExampleStory[]> {
  const { say } = output;
  const { sources, groups, others } = example;
  const clusters = example.clusters.map(({ metadata }) => metadata.name);
  const servers = example.charts.size === 0 ? "a git server" : "a git server, a registry";
  say(`Starling runs on this machine, with ${servers} and local DynamoDB, SQS and S3.`);
  say(`Clusters: ${clusters.join(", ")}.`);
  say(`Repositories: ${[...example.repositories.keys()].join(", ")}.`);
  if (example.charts.size > 0) say(`Charts in the registry: ${[...example.charts.keys()].join(", ")}.`);
  const registered = example.clusters.map(({ metadata: { name, labels }, spec: { values } }) => ({
    connection: stack.clusters.addCluster(name),
    labels,
    values,
  }));
  await registerEksClusters(registered, stack.machine, stack.session);
  for (const [name, files] of example.repositories) await stack.git.createRepository(name, files);
  for (const [name, files] of example.charts) {
    const digest = await publishChart(stack, { name, files }, versionIn(files));
    if (signer !== undefined) signChart(stack, { name, digest }, signer);
  }
  const stories = groups.map(({ metadata: { name, namespace }, spec }) => ({
    name,
    namespace,
    clusters,
    templates: spec.templates.map((template) => template.name),
    story: new RolloutStory({
      session: stack.session,
      namespace,
      group: name,
      source: spec.templates[0]?.source ?? "",
      ...output,
    }),
  }));
  await stack.session.apply([...sources.map((source) => servedHere(stack, source, signer)), ...others, ...groups]);
  return stories;
}

/** Reports the rollout of each SyncGroup, then what is in the clusters. */
export async function showExample(
  stack: Stack,
  example: ExampleFleet,
  output: DemoOutput,
): Promise<readonly GroupEnd[]> {
  const { say } = output;
  const { clusters } = example;
  const ends: GroupEnd[] = [];
  for (const [index, { name, namespace, templates, story }] of (await startExample(stack, example, output)).entries()) {
    say();
    say(`${index + 1}. SyncGroup ${namespace}/${name}: ${templates.join(", ")}`);
    ends.push({ name, namespace, ...(await story.follow()) });
  }
  say();
  say("Objects in the clusters:");
  for (const { metadata } of clusters)
    say(`   ${metadata.name.padEnd(widest(clusters))}  ${objectsOf(stack, metadata.name)}`);
  return ends;
}

/** Points a Source to the servers of this machine, and lets it trust the signer. The rest of the document stays. */
function servedHere(
  stack: Stack,
  source: ExampleFleet["sources"][number],
  signer: KeyPair | undefined,
): ExampleFleet["sources"][number] {
  const { git, helm } = source.spec;
  const isSigned = helm?.verify?.cosign !== undefined && signer !== undefined;
  const trust = isSigned ? { verify: { cosign: { keys: [signer.publicKey] } } } : {};
  const here = {
    ...(git && { git: { ...git, ...stack.gitSpec(stack.git.url(repositoryOf(git))) } }),
    ...(helm && { helm: { ...helm, url: `oci://${registryOf(stack).host}/${chartsInRegistry}`, ...trust } }),
  };
  return { ...source, spec: { ...source.spec, ...here } };
}

interface Chart {
  readonly name: string;
  readonly files: Readonly<Record<string, Uint8Array>>;
}

/** Publishes a chart to the registry of this machine, as `helm push` does. @returns the digest of its manifest. */
export async function publishChart(stack: Stack, { name, files }: Chart, version: string): Promise<string> {
  const own = { ...files, [chartFile]: chartFileAt(files, version) };
  const packed = await packArtifact(
    Object.entries(own).map(([path, content]) => ({ path: `${name}/${path}`, executable: false, content })),
  );
  return registryOf(stack).pushChart(`${chartsInRegistry}/${name}`, version, packed);
}

/** Puts the signature of a published chart into the registry, as `cosign sign` does. */
export function signChart(
  stack: Stack,
  { name, digest }: { readonly name: string; readonly digest: string },
  signer: KeyPair,
): void {
  const at = { registry: registryOf(stack), repository: `${chartsInRegistry}/${name}`, digest };
  attachBundle(at, keyedBundle(statementOf(digest), signer));
}

function chartFileAt(files: Chart["files"], version: string): Uint8Array {
  return Buffer.from(
    Buffer.from(files[chartFile] ?? [])
      .toString()
      .replace(versionLine, `version: ${version}`),
  );
}

function versionIn(files: Chart["files"]): string {
  return versionLine.exec(Buffer.from(files[chartFile] ?? []).toString())?.[1] ?? "";
}

function registryOf({ registry }: Stack): RegistryServer {
  if (registry === undefined) throw new Error("the example has a chart, but no registry runs");
  return registry;
}

function widest(clusters: ExampleFleet["clusters"]): number {
  return Math.max(...clusters.map(({ metadata }) => metadata.name.length));
}

/** For example `26 objects: 5 Deployment, 4 Service, ...`, with the most frequent kinds first. */
function objectsOf(stack: Stack, cluster: string): string {
  // Controllers copy the label to objects that they create, so only objects with an apply by Starling count.
  const objects = stack.clusters
    .objects(cluster)
    .filter((object) => labelsOf(object)[partOfLabel] !== undefined && ownApplyEntry(object) !== undefined);
  const counts = new Map<string, number>();
  for (const object of objects) {
    const kind = stringAt(object, "kind") ?? "";
    counts.set(kind, (counts.get(kind) ?? 0) + 1);
  }
  const kinds = [...counts].sort(([, a], [, b]) => b - a).slice(0, 4);
  return `${objects.length} objects: ${kinds.map(([kind, count]) => `${count} ${kind}`).join(", ")}, ...`;
}
