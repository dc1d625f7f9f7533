/** Shows people in the loop: a canary that bakes, an approval, a rollback, and a window. */
import { configMapIn } from "#local/machine/by-hand.ts";
import type { Stack } from "#local/machine/stack.ts";
import type { DemoOutput } from "#local/stories/demo-tale.ts";
import type { ExampleFleet } from "#local/stories/example-fleet.ts";
import { type ExampleStory, type GroupEnd, startExample } from "#local/stories/example-tale.ts";
import type { ApiList, SyncGroupObject, TargetItem } from "#shared/fleet/api/objects.ts";
import type { Document } from "#shared/fleet/kinds/document.ts";
import type { Wait } from "#shared/fleet/waits/wait.ts";
import { stringAt } from "#shared/kube/kube-object.ts";

/** The example with gates has chapters of its own. */
export const gatesExample = "gates";

const file = "deploy/app.yaml";
const good = { image: "registry.example/payments/web:1.0.0", rounding: "half-even" };
const hourMs = 3_600_000;
const soonMs = 5000;

interface Content {
  readonly repository: string;
  /** The manifests of the first version. */
  readonly first: string;
  /** It is applied in the last chapter, with times of the demo. */
  readonly window: Document;
}

interface Version {
  readonly image: string;
  readonly rounding: string;
}

/** Creates the example's clusters and repository, and takes four commits through its gates. */
export async function showGates(stack: Stack, example: ExampleFleet, output: DemoOutput): Promise<readonly GroupEnd[]> {
  const { others, repositories } = example;
  const [window] = others.filter(({ kind }) => kind === "Window");
  const isNow = (document: Document) => document !== window;
  const [started] = await startExample(stack, { ...example, others: others.filter(isNow) }, output);
  const [content] = repositories;
  if (started === undefined || content === undefined || window === undefined)
    throw new Error("the example has no SyncGroup with a repository and a Window");
  const [repository, files] = content;
  const fleet = new GatedFleet(stack, started, { repository, first: String(files[file]), window });
  await fleet.firstVersion();
  await fleet.badVersion();
  await fleet.rollBack();
  await fleet.fixedVersion();
  const end = await fleet.closedWindow();
  return [{ name: started.name, namespace: started.namespace, ...end }];
}

class GatedFleet {
  readonly #stack: Stack;
  readonly #group: ExampleStory;
  readonly #repository: string;
  /** The manifests of the first version. */
  readonly #first: string;
  readonly #window: Document;

  constructor(stack: Stack, group: ExampleStory, { repository, first, window }: Content) {
    this.#stack = stack;
    this.#group = group;
    this.#repository = repository;
    this.#first = first;
    this.#window = window;
  }

  async firstVersion(): Promise<void> {
    const { story } = this.#group;
    story.chapter("Version 1.0.0: the canary bakes, then production waits for an approval");
    await story.untilWaiting("bake");
    await this.#approve("the canary is well");
    await story.follow();
  }

  async badVersion(): Promise<void> {
    const { story } = this.#group;
    story.chapter("Version 1.1.0 is ready everywhere, but rounds wrongly: nobody sees it before production has it");
    const commit = await this.#push({ image: "registry.example/payments/web:1.1.0", rounding: "down" }, "1.1.0");
    await this.#approve("looked well to me");
    await story.follow(commit);
    this.#showRounding();
  }

  async rollBack(): Promise<void> {
    const { story } = this.#group;
    story.chapter("Production goes back, without git and without the gates");
    await this.#say("rollback", {}, "INC-4711: cents are missing");
    await story.until("no cluster went back", () => this.#roundings().includes(good.rounding));
    story.note("the first cluster is back");
    await story.follow();
    this.#showRounding();
  }

  async fixedVersion(): Promise<void> {
    const { story } = this.#group;
    story.chapter("Version 1.1.1 is the fix; the group is held since the rollback, so that it waits for a release");
    const commit = await this.#push({ ...good, image: "registry.example/payments/web:1.1.1" }, "1.1.1");
    await story.untilWaiting("held", { commit });
    await this.#say("release", {}, "1.1.1 has the fix");
    await this.#approve("rounding is tested now");
    await story.follow(commit);
    this.#showRounding();
  }

  async closedWindow() {
    const { story } = this.#group;
    story.chapter("Production is closed for an hour, and version 1.2.0 waits for the window");
    await this.#closeFor(hourMs);
    const commit = await this.#push({ ...good, image: "registry.example/payments/web:1.2.0" }, "1.2.0");
    await this.#approve("may go as soon as the window opens");
    await story.untilWaiting("window", { commit });
    story.note(`somebody lets the window open ${soonMs / 1000} seconds from now`);
    await this.#closeFor(soonMs);
    return story.follow(commit);
  }

  /** Applies the Window so that it is closed from now on. */
  #closeFor(ms: number): Promise<void> {
    const now = Date.now();
    const deny = [{ start: new Date(now).toISOString(), end: new Date(now + ms).toISOString() }];
    return this.#stack.session.apply([{ ...this.#window, spec: { ...this.#window.spec, deny } }]);
  }

  #push({ image, rounding }: Version, version: string): Promise<string> {
    const changed = this.#first.replace(good.image, image).replace(good.rounding, rounding);
    return this.#stack.git.commitFiles(this.#repository, { [file]: changed }, { message: `Roll out ${version}` });
  }

  /** Approves the plan that waits, as the command does. */
  async #approve(reason: string): Promise<void> {
    // The stage has asked when the time for an answer runs. Before that, people may approve in advance.
    const isMeant = ({ until }: Wait) => until !== undefined;
    const { clear } = await this.#group.story.untilWaiting("approval", { isMeant });
    const clearing = clear.find(({ verb }) => verb === "approve");
    if (clearing?.verb !== "approve") throw new Error("the wait for an approval does not name the plan");
    const { stage, plan } = clearing;
    await this.#showPlan(stage);
    await this.#say("approve", { stage, plan }, reason);
  }

  async #showPlan(stage: string): Promise<void> {
    const { namespace, name, story } = this.#group;
    const group = `/v1/namespaces/${namespace}/syncgroups/${name}`;
    const { status } = await this.#stack.session.call<SyncGroupObject>("GET", group);
    const targets = `${group}/rollouts/${status.rollout}/targets?stage=${stage}&limit=100`;
    const { items } = await this.#stack.session.call<ApiList<TargetItem>>("GET", targets);
    story.note(`the plan: ${items.map(({ cluster }) => cluster).join(", ")} get ${status.revision}`);
  }

  /** Prints the command of a verb, and does what it does. */
  async #say(verb: string, body: Readonly<Record<string, string>>, reason: string): Promise<void> {
    const { namespace, name, story } = this.#group;
    const flags = Object.entries(body).map(([flag, value]) => ` --${flag} ${value}`);
    story.note(`$ starling rollout ${verb} ${name} -n ${namespace}${flags.join("")} --reason "${reason}"`);
    await this.#stack.session.call("POST", `/v1/namespaces/${namespace}/syncgroups/${name}/${verb}`, {
      ...body,
      reason,
    });
  }

  #showRounding(): void {
    const { story, clusters } = this.#group;
    story.note(clusters.map((cluster, index) => `${cluster}: ${this.#roundings()[index]}`).join(", "));
  }

  /** The rounding in each cluster, in their order. */
  #roundings(): readonly (string | undefined)[] {
    const key = { namespace: "payments", name: "settings" };
    return this.#group.clusters.map((cluster) =>
      stringAt(configMapIn(this.#stack.clusters, cluster, key), "data", "rounding"),
    );
  }
}
