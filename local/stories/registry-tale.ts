/** Shows a signed chart from a registry: published versions roll out, or are refused, and the values come from git. */
import { configMapIn } from "#local/machine/by-hand.ts";
import type { Stack } from "#local/machine/stack.ts";
import { cosignKeyPair, type KeyPair } from "#local/registry/cosign-keys.ts";
import type { DemoOutput } from "#local/stories/demo-tale.ts";
import type { ExampleFleet } from "#local/stories/example-fleet.ts";
import {
  type ExampleStory,
  type GroupEnd,
  publishChart,
  signChart,
  startExample,
} from "#local/stories/example-tale.ts";
import type { SourceObject, SyncGroupObject } from "#shared/fleet/api/objects.ts";
import { stringAt } from "#shared/kube/kube-object.ts";

/** The example with a registry has chapters of its own. */
export const registryExample = "registry";

/** Characters of a digest that are shown. */
const shownDigest = "sha256:".length + 12;
const versions = { inRange: "4.3.0", outside: "5.0.0" };
const values = { file: "env/us.yaml", before: "currency: USD", after: "currency: CAD" };

/** Creates the example's clusters, repository and registry, publishes two versions, and changes the values of a region. */
export async function showRegistry(
  stack: Stack,
  example: ExampleFleet,
  output: DemoOutput,
): Promise<readonly GroupEnd[]> {
  const team = cosignKeyPair();
  const [group] = await startExample(stack, example, output, team);
  const [chart] = example.charts;
  const [repository] = example.repositories;
  if (group === undefined || chart === undefined || repository === undefined)
    throw new Error("the example has no SyncGroup with a chart and a repository");
  const { story } = group;
  const published = new PublishedChart(stack, group, chart);

  story.chapter(
    "The chart is in the registry, signed by its team, and rolls out with the values of each region from git",
  );
  story.note(
    `the Source trusts one key, ${team.fingerprint.slice(0, shownDigest)}…: the demo made it, as cosign generate-key-pair does`,
  );
  await story.follow();
  showSettings(stack, group);

  story.chapter(
    `Version ${versions.inRange} is published by somebody without the key: it is refused, and the fleet stays`,
  );
  await published.push(versions.inRange);
  await published.poll();
  await published.showRefusal();
  published.sign({ signer: cosignKeyPair(), keyFile: "own.key" });
  await published.poll();
  await published.showRefusal();
  showSettings(stack, group);

  story.chapter(`The team signs ${versions.inRange}: it is in the range of the Source, and rolls out without a commit`);
  published.sign({ signer: team, keyFile: "cosign.key" });
  await published.poll();
  await story.follow(versions.inRange);
  showSettings(stack, group);

  story.chapter(`Version ${versions.outside} is published: it is outside of the range, and nothing changes`);
  const rollout = await newestRollout(stack, group);
  await published.push(versions.outside);
  published.sign({ signer: team, keyFile: "cosign.key" });
  await published.poll();
  const { artifact } = await published.status();
  story.note(`the Source stays at ${artifact?.revision}`);
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
  return [{ name: group.name, namespace: group.namespace, ...end }];
}

/** The chart of the example, and the Source that follows it. */
class PublishedChart {
  readonly #stack: Stack;
  readonly #group: ExampleStory;
  readonly #name: string;
  readonly #files: Readonly<Record<string, Uint8Array>>;
  /** Digest of the manifest that was pushed last. */
  #digest = "";

  constructor(
    stack: Stack,
    group: ExampleStory,
    [name, files]: readonly [string, Readonly<Record<string, Uint8Array>>],
  ) {
    this.#stack = stack;
    this.#group = group;
    this.#name = name;
    this.#files = files;
  }

  async push(version: string): Promise<void> {
    this.#group.story.note(`$ helm push ${this.#name}-${version}.tgz oci://${this.#stack.registry?.host}/charts`);
    this.#digest = await publishChart(this.#stack, { name: this.#name, files: this.#files }, version);
  }

  /** Signs the version that was pushed last. */
  sign({ signer, keyFile }: { readonly signer: KeyPair; readonly keyFile: string }): void {
    const short = this.#digest.slice(0, shownDigest);
    this.#group.story.note(
      `$ cosign sign --key ${keyFile} ${this.#stack.registry?.host}/charts/${this.#name}@${short}…`,
    );
    signChart(this.#stack, { name: this.#name, digest: this.#digest }, signer);
  }

  /** Lets the Source look at the registry, and waits until it has. */
  async poll(): Promise<void> {
    const { story, namespace } = this.#group;
    story.note(`$ starling reconcile source/${this.#name} -n ${namespace}`);
    const before = await this.status();
    await this.#stack.session.call("POST", `${this.#path}/reconcile`, {});
    await story.until("the registry was not read again", async () => {
      const { handledReconcile } = await this.status();
      return handledReconcile !== before.handledReconcile;
    });
  }

  /** @throws Error when the Source does not refuse what it found. */
  async showRefusal(): Promise<void> {
    const { conditions } = await this.status();
    const refusal = conditions.find(({ type, status }) => type === "SourceVerified" && status === "False");
    if (refusal === undefined) throw new Error("a chart without the signature of its team was not refused");
    this.#group.story.note(`the Source refuses it: ${refusal.reason}`);
    this.#group.story.explain(refusal.message);
  }

  async status(): Promise<SourceObject["status"]> {
    return (await this.#stack.session.call<SourceObject>("GET", this.#path)).status;
  }

  get #path(): string {
    return `/v1/namespaces/${this.#group.namespace}/sources/${this.#name}`;
  }
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
