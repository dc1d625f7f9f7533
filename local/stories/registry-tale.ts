/** Shows a chart from a registry: published versions roll out, or do not, and the values come from git. */
import { configMapIn } from "#local/machine/by-hand.ts";
import type { Stack } from "#local/machine/stack.ts";
import type { DemoOutput } from "#local/stories/demo-tale.ts";
import type { ExampleFleet } from "#local/stories/example-fleet.ts";
import { type ExampleStory, type GroupEnd, publishChart, startExample } from "#local/stories/example-tale.ts";
import type { SourceObject, SyncGroupObject } from "#shared/fleet/api/objects.ts";
import { stringAt } from "#shared/kube/kube-object.ts";

/** The example with a registry has chapters of its own. */
export const registryExample = "registry";

const versions = { inRange: "4.3.0", outside: "5.0.0" };
const values = { file: "env/us.yaml", before: "currency: USD", after: "currency: CAD" };

/** Creates the example's clusters, repository and registry, publishes two versions, and changes the values of a region. */
export async function showRegistry(
  stack: Stack,
  example: ExampleFleet,
  output: DemoOutput,
): Promise<readonly GroupEnd[]> {
  const [group] = await startExample(stack, example, output);
  const [chart] = example.charts;
  const [repository] = example.repositories;
  if (group === undefined || chart === undefined || repository === undefined)
    throw new Error("the example has no SyncGroup with a chart and a repository");
  const [name, files] = chart;
  const { story, namespace } = group;
  const publish = (version: string) => {
    story.note(`$ helm push ${name}-${version}.tgz oci://${stack.registry?.host}/charts`);
    return publishChart(stack, { name, files }, version);
  };
  const source = `/v1/namespaces/${namespace}/sources/${name}`;
  const poll = async () => {
    story.note(`$ starling reconcile source/${name} -n ${namespace}`);
    await stack.session.call("POST", `${source}/reconcile`, {});
  };

  story.chapter("The chart is in the registry, and rolls out with the values of each region from git");
  await story.follow();
  showSettings(stack, group);

  story.chapter(
    `Version ${versions.inRange} is published: it is in the range of the Source, and rolls out without a commit`,
  );
  await publish(versions.inRange);
  await poll();
  await story.follow(versions.inRange);
  showSettings(stack, group);

  story.chapter(`Version ${versions.outside} is published: it is outside of the range, and nothing changes`);
  const rollout = await newestRollout(stack, group);
  await publish(versions.outside);
  const before = (await stack.session.call<SourceObject>("GET", source)).status;
  await poll();
  await story.until("the registry was not read again", async () => {
    const { status } = await stack.session.call<SourceObject>("GET", source);
    return status.handledReconcile !== before.handledReconcile;
  });
  const { status } = await stack.session.call<SourceObject>("GET", source);
  story.note(`the Source stays at ${status.artifact?.revision}`);
  if ((await newestRollout(stack, group)) !== rollout) throw new Error("a version outside of the range rolled out");

  story.chapter("A commit changes the values of a region, and only its clusters change");
  const [fleet, content] = repository;
  const text = Buffer.from(content[values.file] as Uint8Array).toString();
  await stack.git.commitFiles(
    fleet,
    { [values.file]: text.replace(values.before, values.after) },
    { message: "Sell in Canadian dollars" },
  );
  const end = await story.follow();
  showSettings(stack, group);
  return [{ name: group.name, namespace, ...end }];
}

async function newestRollout(stack: Stack, { namespace, name }: ExampleStory): Promise<number | undefined> {
  const { status } = await stack.session.call<SyncGroupObject>("GET", `/v1/namespaces/${namespace}/syncgroups/${name}`);
  return status.rollout;
}

/** Prints the version and the currency in each cluster, as its API server has them. */
function showSettings(stack: Stack, { story, clusters }: ExampleStory): void {
  const of = (cluster: string) => {
    const data = (key: string) =>
      stringAt(configMapIn(stack.clusters, cluster, { namespace: "shop", name: "settings" }), "data", key);
    return `${cluster}: ${data("VERSION")} ${data("CURRENCY")}`;
  };
  story.note(clusters.map(of).join(", "));
}
