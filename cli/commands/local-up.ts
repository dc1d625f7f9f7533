import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync, readFileSync } from "node:fs";
import { resolve } from "node:path";
import { fileURLToPath } from "node:url";
import * as z from "zod";
import { makeFleet, readFleetFile } from "#cli/commands/local-fleet.ts";
import {
  adoptContext,
  forgetContext,
  type LocalOptions,
  localContext,
  logFile,
  machineIn,
  maxClusters,
  printMachine,
  stateFlag,
  stateFolder,
  withLocalFailures,
} from "#cli/commands/local-folder.ts";
import { confirmConsequences } from "#cli/session/confirm.ts";
import { contextPath } from "#cli/session/contexts.ts";
import { CliFailure, type ExitReason, usageFailure } from "#cli/session/failure.ts";
import type { Session } from "#cli/session/session.ts";
import { LocalFailure } from "#local/base/local-failure.ts";
import { contextsOf } from "#local/clusters/kubeconfig-file.ts";
import { accountText, ownCluster, removalCommand, serverVersion } from "#local/clusters/own-cluster.ts";
import { isSameRepository } from "#local/git/user-repository.ts";
import { portFlags } from "#local/serve/choose-ports.ts";
import type { MachineFile } from "#local/serve/machine-file.ts";
import { prepareFolder } from "#local/serve/prepare-folder.ts";
import type { ServePlan } from "#local/serve/serve-local.ts";
import { type ClusterChoice, clustersOf, type Identity, type Ports, readIdentity } from "#local/serve/state-folder.ts";
import { defined } from "#shared/base/defined.ts";
import { errorMessage } from "#shared/base/errors.ts";
import { quoted } from "#shared/base/shell-word.ts";

/** The emulators need two seconds; a kube-apiserver on a busy machine needs much longer. */
const startSeconds = 150;
const stopSeconds = 30;
const pollMs = 100;
const maxPort = 65_535;
const logLinesShown = 10;

export interface LocalUpOptions extends LocalOptions {
  readonly clusters?: number;
  readonly kubeconfig?: string;
  readonly envtest?: boolean;
  readonly port?: number;
  readonly gitPort?: number;
  readonly clusterPort?: number;
  readonly repo?: string;
  readonly path?: string;
  readonly ref?: string;
  readonly foreground?: boolean;
}

/** Starts Starling on this machine, in the background by default, and makes it the current context. */
export async function localUp(session: Session, options: LocalUpOptions): Promise<ExitReason> {
  const plan = await withLocalFailures(() => planOf(session, options));
  const folder = stateFolder(session, options);
  const running = machineIn(folder);
  if (running !== undefined) return isUpAlready(session, running, { options, plan });
  const known = await withLocalFailures(async () => {
    await prepareFolder(folder);
    return readIdentity(folder);
  });
  const clusters = await withLocalFailures(() =>
    clustersOf(folder, { known: known?.clusters, desired: plan.clusters }),
  );
  refuseClusterPort(clusters, plan);
  const asked = { folder, repo: plan.repo, ...defined({ path: options.path, ref: options.ref }) };
  const fleet = await readFleetFile({ ...asked, known: known?.repository, choice: clusters });
  if (clusters?.kind === "kubeconfig") await askForAccount(session, { clusters, known, options });
  warnOfGitPort(session, { known, plan });
  session.note(`starting Starling on this machine; its state is in ${folder}`);
  const child = spawnMachine(folder, { plan, attached: options.foreground === true });
  const machine = await untilReady(session, { folder, child });
  adoptContext(session, machine);
  printMachine(session, machine);
  sayWhatNext(session, machine);
  if (fleet !== undefined) await makeFleet(session, machine, fleet);
  if (options.foreground === true) return stayWith(session, { machine, child });
  child.disconnect();
  return "done";
}

function isUpAlready(
  session: Session,
  running: MachineFile,
  { options, plan }: { readonly options: LocalUpOptions; readonly plan: ServePlan },
): Promise<ExitReason> {
  return withLocalFailures(async () => {
    clustersOf(running.folder, { known: running.kept, desired: plan.clusters });
    const state = stateFlag(session, running.folder);
    for (const [name, flag] of Object.entries(portFlags)) {
      const desired = plan.ports[name as keyof Ports];
      const has = running.ports[name as keyof Ports];
      if (desired === undefined || desired === has) continue;
      throw usageFailure(
        `${flag} is ${desired}, but the running machine has ${has ?? "none"}`,
        `starling local down${state}`,
      );
    }
    const { repository } = running;
    if (plan.repo !== undefined && (repository === undefined || !isSameRepository(repository.url, plan.repo))) {
      const message = `--repo is ${plan.repo}, but the running machine has ${repository?.url ?? "none"}`;
      throw usageFailure(message, `starling local down${state}`);
    }
    if (options.foreground === true) {
      throw usageFailure(
        `local is already up in the background: process ${running.pid}`,
        `starling local down${state}`,
      );
    }
    const asked = { folder: running.folder, repo: plan.repo, ...defined({ path: options.path, ref: options.ref }) };
    const fleet = await readFleetFile({ ...asked, known: repository?.url, choice: running.kept });
    session.note("local is already up");
    adoptContext(session, running);
    printMachine(session, running);
    sayRepository(session, running);
    if (fleet !== undefined) await makeFleet(session, running, fleet);
    return "done" as const;
  });
}

/** `https://`, `file://`, and the forms that other programs accept, so that a refusal names the URL. */
const isUrl = /^([a-z+]+:|[^/]+@[^/]+:)/;
const kindsHelp = "--clusters, --kubeconfig and --envtest exclude each other";

/** @throws CliFailure for flags that do not go together, and values out of range. */
function planOf(session: Session, options: LocalUpOptions): ServePlan {
  const { clusters, kubeconfig, envtest, repo, port: api, gitPort: git, clusterPort } = options;
  const given = [clusters, kubeconfig, envtest].filter((flag) => flag !== undefined);
  if (given.length > 1) throw usageFailure(kindsHelp, "starling local up --clusters 3");
  if (clusters !== undefined && clusters > maxClusters) {
    throw usageFailure(`--clusters is ${clusters}; at most ${maxClusters}`, "starling local up --clusters 12");
  }
  const ports = {
    ...defined({ api, git, clusters: clusterPort }),
  };
  refuseBadPorts(ports);
  const choice = choiceOf(session, options);
  return {
    ports,
    ...defined({ clusters: choice }),
    ...(repo === undefined ? {} : { repo: isUrl.test(repo) ? repo : resolve(session.io.cwd, repo) }),
  };
}

function choiceOf(session: Session, options: LocalUpOptions): ClusterChoice | undefined {
  const { clusters, kubeconfig, envtest } = options;
  const { context } = session.options;
  if (kubeconfig === undefined) {
    if (context !== undefined) {
      const next = `starling local up --kubeconfig ~/.kube/config --context ${quoted(context)}`;
      throw usageFailure("--context needs --kubeconfig: it names a context of that file", next);
    }
    if (envtest === true) return { kind: "envtest" };
    return clusters === undefined ? undefined : { kind: "embedded", count: clusters };
  }
  const path = resolve(session.io.cwd, kubeconfig);
  if (context !== undefined) return { kind: "kubeconfig", path, context };
  const contexts = contextsOf(path);
  const known = contexts.length === 0 ? "the file has none" : `the file has ${contexts.join(", ")}`;
  const next = `starling local up --kubeconfig ${quoted(kubeconfig)} --context ${quoted(contexts[0] ?? "NAME")}`;
  throw usageFailure(`no context of ${path} is given; ${known}`, next);
}

function refuseBadPorts(ports: Partial<Ports>): void {
  const seen = new Map<number, string>();
  for (const [name, port] of Object.entries(ports)) {
    const flag = portFlags[name as keyof Ports];
    if (port > maxPort) throw usageFailure(`${flag} is ${port}; at most ${maxPort}`, `starling local up ${flag} 8080`);
    const other = seen.get(port);
    if (other !== undefined) {
      throw usageFailure(`${other} and ${flag} are both ${port}`, `starling local up ${other} ${port}`);
    }
    seen.set(port, flag);
  }
}

function refuseClusterPort(clusters: ClusterChoice | undefined, { ports }: ServePlan): void {
  if (clusters?.kind !== "kubeconfig" || ports.clusters === undefined) return;
  const message = `--cluster-port is ${ports.clusters}, but your own cluster has a port already (context ${clusters.context})`;
  throw usageFailure(message, "the same command without --cluster-port");
}

interface Asked {
  readonly clusters: ClusterChoice & { readonly kind: "kubeconfig" };
  readonly known: Identity | undefined;
  readonly options: LocalUpOptions;
}

/** Asks before it creates objects in a user's own cluster. The folder remembers the consent. */
async function askForAccount(session: Session, { clusters, known, options }: Asked): Promise<void> {
  const { cluster, own } = await withLocalFailures(() => ownCluster(clusters));
  if (known !== undefined) {
    session.note(
      `Starling's account in context ${clusters.context} of ${clusters.path} is created again if it is missing`,
    );
    return;
  }
  const version = await withLocalFailures(() => serverVersion(own));
  const lines = [
    `context ${clusters.context} of ${clusters.path} (${cluster.server}, Kubernetes ${version.replace(/^v/, "")})`,
    "this creates in the cluster:",
    ...accountText.map((line) => `  ${line}`),
    `to remove it again: ${removalCommand({ kubeconfig: clusters.path, context: clusters.context })}`,
  ];
  const state = options.state === undefined ? "" : ` --state ${quoted(options.state)}`;
  const where = `--kubeconfig ${quoted(clusters.path)} --context ${quoted(clusters.context)}`;
  await confirmConsequences(session, { message: lines.join("\n") }, `starling local up${state} ${where} --yes`);
}

/** Warns when the git server's port changes, because Sources name it. */
function warnOfGitPort(
  session: Session,
  { known, plan }: { readonly known: Identity | undefined; readonly plan: ServePlan },
): void {
  const [before, after] = [known?.ports.git, plan.ports.git];
  if (before === undefined || after === undefined || before === after) return;
  session.note(`warning: apply the Sources that name https://127.0.0.1:${before}/ again, with port ${after}`);
}

function sayWhatNext(session: Session, machine: MachineFile): void {
  session.note(`context ${localContext} is current in ${contextPath(session.io)}`);
  sayRepository(session, machine);
  session.note(`  next: starling get clusters\n        export KUBECONFIG=${quoted(machine.kubeconfig)}`);
}

function sayRepository(session: Session, { repository }: MachineFile): void {
  if (repository === undefined) return;
  const { url, credentials, config } = repository;
  session.note(`repository ${url}`);
  if (credentials === undefined) return;
  const { secret, kind } = credentials;
  session.note(`  its Source has spec: {git: {url: "${url}", credentials: {secret: ${secret}, kind: ${kind}}}}`);
  // Git prefers it to the authority that the file names.
  const git = session.io.env.GIT_SSL_CAINFO === undefined ? "git" : "env -u GIT_SSL_CAINFO git";
  session.note(`  push to it: ${git} -c include.path=${quoted(config)} push ${url} HEAD`);
}

interface Spawning {
  readonly plan: ServePlan;
  /** The child ends with this process, even if this process is killed. */
  readonly attached: boolean;
}

function spawnMachine(folder: string, { plan, attached }: Spawning): ChildProcess {
  const log = openSync(logFile(folder), "w", 0o600);
  const main = fileURLToPath(new URL("../main.ts", import.meta.url));
  const given = ["--folder", folder, "--plan", JSON.stringify(plan), ...(attached ? ["--attached"] : [])];
  const child = spawn(process.execPath, [main, "local", "serve", ...given], {
    detached: true,
    stdio: ["ignore", log, log, "ipc"],
    cwd: folder,
  });
  closeSync(log);
  child.unref();
  return child;
}

const refusalSchema = z.object({
  message: z.string(),
  exit: z.enum(["no", "wrongInput", "unknown"]),
  next: z.string().optional(),
});
type Refusal = z.infer<typeof refusalSchema>;

interface Starting {
  readonly folder: string;
  readonly child: ChildProcess;
}

/** @throws CliFailure with the machine's message when it does not start. The child has ended then, also after an interrupt. */
async function untilReady(session: Session, { folder, child }: Starting): Promise<MachineFile> {
  let refusal: Refusal | undefined;
  child.on("message", (said) => {
    refusal = refusalSchema.safeParse(said).data ?? refusal;
  });
  const closed = new AbortController();
  child.once("exit", () => closed.abort());
  const deadline = Date.now() + startSeconds * 1000;
  try {
    for (;;) {
      const machine = machineIn(folder);
      if (machine !== undefined) return machine;
      if (closed.signal.aborted || Date.now() > deadline) throw didNotStart(folder, refusal);
      await session.pause(pollMs);
    }
  } catch (error) {
    if (!closed.signal.aborted) await endChild(child);
    throw error;
  }
}

function didNotStart(folder: string, refusal: Refusal | undefined): CliFailure {
  const next = `less ${quoted(logFile(folder))}`;
  if (refusal !== undefined) {
    return new CliFailure(refusal.message, { exit: refusal.exit, next: refusal.next ?? next });
  }
  const lines = readFileSync(logFile(folder), "utf8").trim().split("\n").slice(-logLinesShown);
  return new CliFailure(`local was not ready within ${startSeconds} seconds`, { exit: "unknown", lines, next });
}

/** Asks the child to end, and kills it if it does not. */
async function endChild(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, "exit");
  child.kill("SIGTERM");
  const kill = setTimeout(() => child.kill("SIGKILL"), stopSeconds * 1000);
  await exited;
  clearTimeout(kill);
}

/** Stays until Ctrl-C, until `local down` stops the machine, or until the parent process is killed. */
async function stayWith(
  session: Session,
  { machine, child }: { readonly machine: MachineFile; readonly child: ChildProcess },
): Promise<ExitReason> {
  session.note(`local runs until Ctrl-C; its log is ${logFile(machine.folder)}`);
  const hasEnded = child.exitCode !== null || child.signalCode !== null;
  const exited = hasEnded ? [child.exitCode, child.signalCode] : once(child, "exit");
  child.ref();
  const left = new AbortController();
  const leave = () => left.abort(new Error("the parent process has ended"));
  process.once("disconnect", leave);
  // False, not undefined: the parent under an older Node had a channel to this process, and was killed.
  if (process.connected === false) leave();
  try {
    const signal = AbortSignal.any([session.signal, left.signal]);
    const interrupted = new Promise<never>((_resolve, reject) => {
      signal.addEventListener("abort", () => reject(signal.reason), { once: true });
      if (signal.aborted) reject(signal.reason);
    });
    const [code, killedBy] = await Promise.race([exited, interrupted]);
    if (code !== 0) {
      throw didNotStart(machine.folder, { message: `local ended with ${code ?? killedBy}`, exit: "unknown" });
    }
    session.io.out("local is down\n");
    return "done";
  } finally {
    process.off("disconnect", leave);
    await endChild(child);
    forgetContext(session, machine);
  }
}

export interface LocalServeOptions {
  readonly folder: string;
  readonly plan: string;
  readonly attached?: boolean;
}

/** The machine itself, which `up` runs in the background. Sends the reason to `up` when it does not start. */
export async function localServe(session: Session, options: LocalServeOptions): Promise<ExitReason> {
  const { servePlanSchema, serveLocal } = await import("#local/serve/serve-local.ts");
  const left = new AbortController();
  const leave = () => left.abort();
  if (options.attached === true) process.once("disconnect", leave);
  try {
    await serveLocal({
      folder: options.folder,
      plan: servePlanSchema.parse(JSON.parse(options.plan)),
      signal: AbortSignal.any([session.io.interrupted, left.signal]),
    });
    return "done";
  } catch (error) {
    const refusal: Refusal =
      error instanceof LocalFailure
        ? { message: error.message, exit: error.exit, next: error.next }
        : { message: `local did not start: ${errorMessage(error)}`, exit: "unknown" };
    if (process.connected) process.send?.(refusal);
    throw error;
  } finally {
    // A listener for the end of the channel keeps this process alive.
    process.off("disconnect", leave);
  }
}
