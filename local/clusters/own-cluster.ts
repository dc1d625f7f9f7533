/**
 * A cluster of the user. Starling creates its own account there with the user's kubectl, because only kubectl can use
 * exec plugins and client certificates of a kubeconfig. It renews the account's token while it runs.
 */

import { spawn } from "node:child_process";
import { once } from "node:events";
import { text } from "node:stream/consumers";
import * as z from "zod";
import { LocalFailure } from "#local/base/local-failure.ts";
import { type KubeconfigCluster, readKubeconfigCluster } from "#local/clusters/kubeconfig-file.ts";
import { locateKubectl } from "#shared/adapters/render/kubectl-binary.ts";
import { defined } from "#shared/base/defined.ts";
import { errorMessage } from "#shared/base/errors.ts";
import type { JsonObject } from "#shared/base/json.ts";
import { quoted } from "#shared/base/shell-word.ts";

export interface OwnCluster {
  /** The path of the kubectl binary. */
  readonly kubectl: string;
  readonly kubeconfig: string;
  readonly context: string;
}

export interface AccountToken {
  readonly token: string;
  readonly expiresAt: Date;
}

const namespace = "starling-system";
const account = "starling-local";
const role = "cluster-admin";
/** Many servers grant less. The expiry in the answer counts. */
const tokenDuration = "24h";
/** An address without a route never answers. Nobody should wait longer than this. */
const requestTimeout = "20s";

/** @throws LocalFailure when the kubeconfig is not usable, or when kubectl is missing. */
export async function ownCluster({
  path,
  context,
}: {
  readonly path: string;
  readonly context: string;
}): Promise<{ readonly cluster: KubeconfigCluster; readonly own: OwnCluster }> {
  const cluster = readKubeconfigCluster(path, context);
  try {
    const kubectl = await locateKubectl(process.env.PATH ?? "");
    return { cluster, own: { kubectl, kubeconfig: path, context } };
  } catch (cause) {
    const next = "install kubectl (kubernetes.io/docs/tasks/tools), then: starling local up";
    throw new LocalFailure(errorMessage(cause), { exit: "unknown", next, cause });
  }
}

/** The objects to create in the cluster, in this order. */
const accountObjects: readonly JsonObject[] = [
  { apiVersion: "v1", kind: "Namespace", metadata: { name: namespace } },
  { apiVersion: "v1", kind: "ServiceAccount", metadata: { name: account, namespace: namespace } },
  {
    apiVersion: "rbac.authorization.k8s.io/v1",
    kind: "ClusterRoleBinding",
    metadata: { name: account },
    roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: role },
    subjects: [{ kind: "ServiceAccount", name: account, namespace: namespace }],
  },
];

/** One line per object, shown to the person who confirms. */
export const accountText: readonly string[] = [
  `namespace ${namespace}`,
  `serviceaccount ${namespace}/${account}, with a token for ${tokenDuration} that Starling renews while it runs`,
  `clusterrolebinding ${account}: ${role} for that account`,
];

/** The command that removes the account. */
export function removalCommand({ kubeconfig, context }: Pick<OwnCluster, "kubeconfig" | "context">): string {
  const where = `--kubeconfig ${quoted(kubeconfig)} --context ${quoted(context)}`;
  return `kubectl ${where} -n ${namespace} delete clusterrolebinding/${account} serviceaccount/${account}`;
}

/** The version of the API server, for example `v1.36.2`. @throws LocalFailure when the server does not answer. */
export async function serverVersion(cluster: OwnCluster): Promise<string> {
  const answered = await runKubectl(cluster, ["get", "--raw", "/version"]);
  return z.object({ gitVersion: z.string() }).parse(JSON.parse(answered)).gitVersion;
}

/** Creates or updates the account. @throws LocalFailure with the error of kubectl. */
export async function makeAccount(cluster: OwnCluster): Promise<void> {
  const list = { apiVersion: "v1", kind: "List", items: accountObjects };
  const args = ["apply", "--server-side", `--field-manager=${account}`, "--force-conflicts", "-f", "-"];
  await runKubectl(cluster, args, { input: JSON.stringify(list) });
}

const tokenRequestSchema = z.object({ status: z.object({ token: z.string(), expirationTimestamp: z.string() }) });

/** Creates a token of the account. @throws LocalFailure with the error of kubectl. */
export async function createToken(cluster: OwnCluster, signal?: AbortSignal): Promise<AccountToken> {
  const args = ["create", "token", account, "--namespace", namespace, `--duration=${tokenDuration}`, "-o", "json"];
  const answered = await runKubectl(cluster, args, signal === undefined ? {} : { signal });
  const { token, expirationTimestamp } = tokenRequestSchema.parse(JSON.parse(answered)).status;
  return { token, expiresAt: new Date(expirationTimestamp) };
}

export interface FreshTokenOptions {
  /** The stored token. */
  readonly current: AccountToken;
  readonly create: (signal: AbortSignal) => Promise<AccountToken>;
  readonly store: (token: string) => Promise<void>;
  readonly now: () => number;
  readonly checkEveryMs: number;
  readonly onProblem: (error: unknown) => void;
}

/**
 * Replaces a token when half of its time is over. After a failure it tries again at every check. It polls the clock,
 * because a timer stands still while a laptop sleeps. @returns an object that stops the renewal.
 */
export function keepTokenFresh(options: FreshTokenOptions): { stop(): Promise<void> } {
  const { create, store, now, onProblem } = options;
  const ending = new AbortController();
  let dueAt = halfWay(now(), options.current);
  let renewal: Promise<void> | undefined;

  async function renew(): Promise<void> {
    try {
      const next = await create(ending.signal);
      await store(next.token);
      dueAt = halfWay(now(), next);
    } catch (error) {
      if (!ending.signal.aborted) onProblem(error);
    } finally {
      renewal = undefined;
    }
  }
  const timer = setInterval(() => {
    if (renewal === undefined && now() >= dueAt) renewal = renew();
  }, options.checkEveryMs);
  return {
    async stop() {
      clearInterval(timer);
      ending.abort();
      await renewal;
    },
  };
}

function halfWay(nowMs: number, { expiresAt }: AccountToken): number {
  return nowMs + (expiresAt.getTime() - nowMs) / 2;
}

interface KubectlInput {
  readonly input?: string;
  readonly signal?: AbortSignal;
}

async function runKubectl(
  cluster: OwnCluster,
  args: readonly string[],
  { input = "", signal }: KubectlInput = {},
): Promise<string> {
  const { kubectl, kubeconfig, context } = cluster;
  const where = ["--kubeconfig", kubeconfig, "--context", context, "--request-timeout", requestTimeout];
  const child = spawn(kubectl, [...where, ...args], {
    stdio: ["pipe", "pipe", "pipe"],
    ...defined({ signal }),
  });
  child.stdin.on("error", () => {});
  child.stdin.end(input);
  const [out, complaint, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, "close")]);
  if (code === 0) return out;
  throw kubectlFailure(cluster, { verb: args[0] ?? "", complaint });
}

function kubectlFailure(
  cluster: OwnCluster,
  { verb, complaint }: { readonly verb: string; readonly complaint: string },
): LocalFailure {
  const said = complaint
    .trim()
    .split("\n")
    .filter((line) => !/^[EWI]\d{4} /.test(line))
    .join("; ")
    .replace(/^error: /i, "");
  const kubectl = `kubectl --kubeconfig ${quoted(cluster.kubeconfig)} --context ${quoted(cluster.context)}`;
  const where = `context ${cluster.context} of ${cluster.kubeconfig}`;
  if (/\(Forbidden\)|is forbidden/.test(said)) {
    const message = `you may not ${verb} the objects that Starling needs in ${where}: ${said}`;
    return new LocalFailure(message, { exit: "no", next: `${kubectl} auth can-i '*' '*' --all-namespaces` });
  }
  const isAway = /Unable to connect|refused|no such host|i\/o timeout|deadline exceeded|no route/.test(said);
  const message = isAway ? `the API server of ${where} does not answer: ${said}` : `${where}: ${said}`;
  return new LocalFailure(message, { exit: "unknown", next: `${kubectl} version` });
}
