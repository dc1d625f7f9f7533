/** `npm run demo`: a fleet on this machine follows a git repository, ring by ring. It leaves no process running. */
import { access, constants, mkdir, mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { type Stack, startStack, writeAccessFiles } from "#local/machine/stack.ts";
import { serveMachinePages } from "#local/serve/machine-pages.ts";
import { type DemoOptions, demoUsage, readDemoOptions } from "#local/stories/demo-options.ts";
import { type DemoOutput, demoGroup, demoNamespace, showDemo } from "#local/stories/demo-tale.ts";
import { removeAtEnd, untilEnded } from "#local/stories/end-of-process.ts";
import { type ExampleFleet, readExample } from "#local/stories/example-fleet.ts";
import { type GroupEnd, showExample } from "#local/stories/example-tale.ts";
import { gatesExample, showGates } from "#local/stories/gates-tale.ts";
import { registryExample, showRegistry } from "#local/stories/registry-tale.ts";
import { locateKubectl } from "#shared/adapters/render/kubectl-binary.ts";
import { errorMessage } from "#shared/base/errors.ts";
import { quoted } from "#shared/base/shell-word.ts";
import type { PageServer } from "#shared/pages/serve-pages.ts";

/** The time after which the process exits, even if a part has not stopped. */
const longestStopMs = 15_000;
const terminalColumns = { unknown: 80, most: 110 };
const exitCodes = { inSync: 0, not: 1, usage: 2 } as const;

const say = (line = "") => void process.stdout.write(`${line}\n`);

async function main(): Promise<number> {
  const ended = untilEnded();
  let options: DemoOptions | undefined;
  let example: ExampleFleet | undefined;
  try {
    options = readDemoOptions(process.argv.slice(2), process.env.INIT_CWD ?? process.cwd());
    if (options?.example !== undefined) example = readExample(options.example);
  } catch (error) {
    process.stderr.write(`demo: ${errorMessage(error)}\n\n${demoUsage}`);
    return exitCodes.usage;
  }
  if (options === undefined) {
    process.stdout.write(demoUsage);
    return exitCodes.inSync;
  }
  // No other user may read files of this process or its children.
  process.umask(0o077);
  if (options.keep !== undefined) await mkdir(options.keep, { recursive: true, mode: 0o700 });
  const scratch = await mkdtemp(join(tmpdir(), "starling-demo-"));
  removeAtEnd(scratch);
  // Functions put their temporary files here, so that they are removed even if this process is killed.
  process.env.TMPDIR = scratch;

  let stack: Stack | undefined;
  let pages: PageServer | undefined;
  try {
    const registry = example !== undefined && example.charts.size > 0;
    stack = await startStack({ repositories: join(scratch, "repositories"), database: "pipe", registry });
    pages = await serveMachinePages(stack.machine.api);
    const isInSync = await run(stack, { options, example }, { signal: ended.signal, pages });
    if (options.keep !== undefined) await ended.code;
    return isInSync ? exitCodes.inSync : exitCodes.not;
  } catch (error) {
    // An abort makes pending calls fail. The exit code then comes from the reason of the abort.
    if (ended.signal.aborted) return ended.code;
    throw error;
  } finally {
    setTimeout(() => process.exit(exitCodes.not), longestStopMs).unref();
    await pages?.close();
    await stack?.stop();
  }
}

interface Wish {
  readonly options: DemoOptions;
  readonly example: ExampleFleet | undefined;
}

/** Runs the demo and prints its result as the last line. @returns whether every cluster is in sync at the end. */
async function run(
  stack: Stack,
  { options, example }: Wish,
  { signal, pages }: { readonly signal: AbortSignal; readonly pages: PageServer },
): Promise<boolean> {
  signal.throwIfAborted();
  say(`Watch the demo in a browser: ${pages.url}`);
  say();
  const columns = Math.min(process.stdout.columns ?? terminalColumns.unknown, terminalColumns.most);
  const output = { say, columns, signal };
  const ends =
    example === undefined
      ? [await demoEnd(stack, options, output)]
      : await taleOf(options.example)(stack, example, output);
  say();
  if (options.keep === undefined) sayWhatNext(options);
  else await sayHowToInspect(stack, { folder: options.keep, ends, pages });
  for (const end of ends) sayEnd(end, ends.length === 1 ? "" : ` of ${end.namespace}/${end.name}`);
  return ends.every(isInSync);
}

function taleOf(example: string | undefined): typeof showExample {
  if (example === gatesExample) return showGates;
  return example === registryExample ? showRegistry : showExample;
}

/** All clusters of the demo count, also those without a Sync. */
async function demoEnd(stack: Stack, options: DemoOptions, output: DemoOutput): Promise<GroupEnd> {
  const end = await showDemo(stack, options, output);
  return { ...end, namespace: demoNamespace, name: demoGroup, clusters: options.clusters };
}

function isInSync({ state, ready, clusters }: GroupEnd): boolean {
  return state === "Complete" && ready === clusters;
}

function sayEnd(end: GroupEnd, of: string): void {
  const { state, message, ready, clusters, revision } = end;
  if (!isInSync(end)) say(`not in sync${of}: ${state}${message === "" ? "" : `, ${message}`}`);
  say(`in sync: ${ready}/${clusters} clusters${of} at ${revision === "" ? "no revision" : revision}`);
}

/** Prints the commands that show the demo again, because no process or file of it remains. */
function sayWhatNext({ user, example }: DemoOptions): void {
  const own = user === undefined && example === undefined;
  say("The demo has ended and left nothing running. Commands to try next:");
  say();
  const stays = "keeps the fleet running until Ctrl-C";
  say(own ? `  npm run demo -- --keep ./demo     ${stays}` : `  the same command with --keep ./demo     ${stays}`);
  if (own) say("  npm run demo -- --example platform     shows a fleet with charts, overlays and values");
  if (own) say("  npm run demo -- --example gates     shows a bake, an approval, a rollback and a window");
  if (own)
    say("  npm run demo -- --example registry     shows a signed chart from a registry, and values of each region");
  say("  npm run starling -- local up     runs Starling in the background, for your repository");
  say();
}

async function sayHowToInspect(
  stack: Stack,
  { folder, ends, pages }: { readonly folder: string; readonly ends: readonly GroupEnd[]; readonly pages: PageServer },
): Promise<void> {
  const files = await writeAccessFiles(stack, folder, ends[0]?.namespace ?? demoNamespace);
  const [first] = stack.clusters.connections();
  say("Everything keeps running until Ctrl-C. In another terminal, in this folder:");
  say();
  say(`  export KUBECONFIG=${quoted(files.kubeconfig)}`);
  say(`  export STARLING_CONFIG=${quoted(files.context)}`);
  say(`  ${quoted(await kubectl())} --context ${first?.name} get all -A`);
  for (const [index, { namespace, name }] of ends.entries())
    say(`  npm run starling -- rollout status ${name}${index === 0 ? "" : ` -n ${namespace}`}`);
  say();
  say(`In a browser: ${pages.url}`);
  say();
}

/** Uses `kubectl` from the PATH, or the one of the dependencies. */
async function kubectl(): Promise<string> {
  const path = process.env.PATH ?? "";
  for (const folder of path.split(delimiter)) {
    const isThere = access(join(folder, "kubectl"), constants.X_OK).then(
      () => true,
      () => false,
    );
    if (await isThere) return "kubectl";
  }
  return locateKubectl(path);
}

main().then(
  (code) => {
    process.exitCode = code;
  },
  (error: unknown) => {
    process.stderr.write(`demo: ${errorMessage(error)}\n`);
    process.exitCode = exitCodes.not;
  },
);
