/** `npm run demo`: a fleet on this machine follows a git repository, ring by ring. Nothing is left running at the end. */
import { access, constants, mkdir, mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { type Stack, startStack, writeAccessFiles } from "#local/machine/stack.ts";
import { serveMachinePages } from "#local/serve/machine-pages.ts";
import { type DemoOptions, demoUsage, readDemoOptions } from "#local/stories/demo-options.ts";
import { demoGroup, demoNamespace, tellDemo } from "#local/stories/demo-tale.ts";
import { removeAtEnd, untilEnded } from "#local/stories/end-of-process.ts";
import { locateKubectl } from "#shared/adapters/render/kubectl-binary.ts";
import { errorMessage } from "#shared/base/errors.ts";
import type { PageServer } from "#shared/pages/serve-pages.ts";

/** Whoever waits for an end that does not come ends it, and what it started. */
const longestStopMs = 15_000;
const terminalColumns = { unknown: 80, most: 110 };
const exitCodes = { inSync: 0, not: 1, usage: 2 } as const;

const say = (line = "") => void process.stdout.write(`${line}\n`);

async function main(): Promise<number> {
  const ended = untilEnded();
  let options: DemoOptions | undefined;
  try {
    options = readDemoOptions(process.argv.slice(2), process.env.INIT_CWD ?? process.cwd());
  } catch (error) {
    process.stderr.write(`demo: ${errorMessage(error)}\n\n${demoUsage}`);
    return exitCodes.usage;
  }
  if (options === undefined) {
    process.stdout.write(demoUsage);
    return exitCodes.inSync;
  }
  // Nothing that it or its children write is anybody else's to read.
  process.umask(0o077);
  if (options.keep !== undefined) await mkdir(options.keep, { recursive: true, mode: 0o700 });
  const scratch = await mkdtemp(join(tmpdir(), "starling-demo-"));
  removeAtEnd(scratch);
  // What a function has in its own temporary folder when this process is killed goes along.
  process.env.TMPDIR = scratch;

  let stack: Stack | undefined;
  let pages: PageServer | undefined;
  try {
    stack = await startStack({ repositories: join(scratch, "repositories"), database: "pipe" });
    pages = await serveMachinePages(stack.machine.api);
    const isInSync = await run(stack, options, { signal: ended.signal, pages });
    if (options.keep !== undefined) await ended.code;
    return isInSync ? exitCodes.inSync : exitCodes.not;
  } catch (error) {
    // What was awaited fails when everything is told to end: the reason to end is the one that counts.
    if (ended.signal.aborted) return ended.code;
    throw error;
  } finally {
    setTimeout(() => process.exit(exitCodes.not), longestStopMs).unref();
    await pages?.close();
    await stack?.stop();
  }
}

/** @returns whether every cluster ended in sync; prints that, last. */
async function run(
  stack: Stack,
  options: DemoOptions,
  { signal, pages }: { readonly signal: AbortSignal; readonly pages: PageServer },
): Promise<boolean> {
  signal.throwIfAborted();
  say(`Look at it while it runs: ${pages.url}`);
  say();
  const columns = Math.min(process.stdout.columns ?? terminalColumns.unknown, terminalColumns.most);
  const end = await tellDemo(stack, options, { say, columns, signal });
  const isInSync = end.state === "Complete" && end.ready === options.clusters;
  say();
  if (options.keep !== undefined) await sayHowToLook(stack, options.keep);
  if (!isInSync) say(`not in sync: ${end.state}${end.message === "" ? "" : `, ${end.message}`}`);
  say(`in sync: ${end.ready}/${options.clusters} clusters at ${end.revision === "" ? "no revision" : end.revision}`);
  return isInSync;
}

async function sayHowToLook(stack: Stack, folder: string): Promise<void> {
  const files = await writeAccessFiles(stack, folder, demoNamespace);
  const [first] = stack.clusters.connections();
  say("Everything keeps running until Ctrl-C. In another terminal, in this folder:");
  say();
  say(`  export KUBECONFIG=${quoted(files.kubeconfig)}`);
  say(`  export STARLING_CONFIG=${quoted(files.context)}`);
  say(`  ${quoted(await kubectl())} --context ${first?.name} get all -A`);
  say(`  npm run starling -- rollout status ${demoGroup}`);
  say();
}

/** `kubectl` where there is one; else the one that came with the dependencies. */
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

function quoted(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
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
