/**
 * Reads the address and the authority of one cluster from a kubeconfig. It ignores the user, whom only kubectl needs.
 */

import { readFileSync } from "node:fs";
import { dirname, resolve } from "node:path";
import * as z from "zod";
import { LocalFailure } from "#local/base/local-failure.ts";
import { defined } from "#shared/base/defined.ts";
import { errorMessage } from "#shared/base/errors.ts";
import { nameSchema } from "#shared/base/name-schema.ts";
import { nearestName } from "#shared/base/nearest-name.ts";
import { quoted } from "#shared/base/shell-word.ts";
import { parseDocuments } from "#shared/source/yaml/yaml.ts";

export interface KubeconfigCluster {
  readonly server: string;
  /** PEM in base64. The default is the public authorities. */
  readonly caData?: string;
  readonly tlsServerName?: string;
}

const kubeconfigSchema = z.object({
  contexts: z.array(z.object({ name: z.string(), context: z.object({ cluster: z.string() }) })).nullish(),
  clusters: z
    .array(
      z.object({
        name: z.string(),
        cluster: z.object({
          server: z.string(),
          "certificate-authority-data": z.string().optional(),
          "certificate-authority": z.string().optional(),
          "insecure-skip-tls-verify": z.boolean().optional(),
          "tls-server-name": z.string().optional(),
          "proxy-url": z.string().optional(),
        }),
      }),
    )
    .nullish(),
});
type Kubeconfig = z.infer<typeof kubeconfigSchema>;
type ClusterEntry = NonNullable<Kubeconfig["clusters"]>[number]["cluster"];

/**
 * The names of the contexts, in the order of the file. @throws LocalFailure when the file is missing or not a
 * kubeconfig.
 */
export function contextsOf(path: string): readonly string[] {
  return (readKubeconfig(path).contexts ?? []).map(({ name }) => name);
}

/**
 * The cluster of a context. Starling connects over verified https and without a proxy. @throws LocalFailure that names
 * the file, the context and the problem.
 */
export function readKubeconfigCluster(path: string, context: string): KubeconfigCluster {
  const config = readKubeconfig(path);
  const names = (config.contexts ?? []).map(({ name }) => name);
  const desired = config.contexts?.find(({ name }) => name === context)?.context;
  if (desired === undefined) {
    const known = names.length === 0 ? "it has none" : `it has ${names.join(", ")}`;
    const near = nearestName(context, names) ?? names[0] ?? "NAME";
    throw new LocalFailure(`${path} has no context "${context}"; ${known}`, {
      exit: "wrongInput",
      next: `starling local up --kubeconfig ${quoted(path)} --context ${quoted(near)}`,
    });
  }
  const cluster = config.clusters?.find(({ name }) => name === desired.cluster)?.cluster;
  if (cluster === undefined)
    throw wrong(
      `context ${context} of ${path} names cluster ${desired.cluster}, which the file does not contain`,
      path,
    );
  const where = `cluster ${desired.cluster} of ${path}`;
  requireDirectAndVerified(cluster, { where, path, name: desired.cluster });
  const { server, "tls-server-name": tlsServerName } = cluster;
  const caData = authorityOf(cluster, { where, path, name: desired.cluster });
  return {
    server,
    ...defined({ caData, tlsServerName }),
  };
}

/** The name of the Cluster: the text after the last `/`, as a Kubernetes name. It is `own` when no text is left. */
export function clusterNameOf(context: string): string {
  const name = (context.split("/").at(-1) ?? "")
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, "-")
    .slice(0, 63)
    .replaceAll(/^-+|-+$/g, "");
  return nameSchema.safeParse(name).success ? name : "own";
}

function readKubeconfig(path: string): Kubeconfig {
  let value: unknown;
  try {
    value = parseDocuments(readFileSync(path, "utf8"), path)[0]?.value ?? {};
  } catch (cause) {
    const isMissing = (cause as NodeJS.ErrnoException).code === "ENOENT";
    throw new LocalFailure(isMissing ? `there is no ${path}` : `cannot read ${path}: ${errorMessage(cause)}`, {
      exit: "wrongInput",
      next: "starling local up --kubeconfig ~/.kube/config --context NAME",
      cause,
    });
  }
  const parsed = kubeconfigSchema.safeParse(value);
  if (parsed.success) return parsed.data;
  const { path: field, message } = parsed.error.issues[0] ?? { path: [], message: "" };
  throw wrong(`${path} is not a kubeconfig: ${field.join(".")}: ${message}`, path);
}

interface Place {
  /** For example `cluster prod of ~/.kube/config`. */
  readonly where: string;
  readonly path: string;
  readonly name: string;
}

function requireDirectAndVerified(cluster: ClusterEntry, { where, path, name }: Place): void {
  const { server, "insecure-skip-tls-verify": isInsecure, "proxy-url": proxy } = cluster;
  if (isInsecure === true) {
    throw new LocalFailure(
      `${where} has insecure-skip-tls-verify: Starling sends its token only to a server that it can verify; set the certificate authority of the cluster`,
      {
        exit: "wrongInput",
        next: `kubectl config --kubeconfig ${quoted(path)} set-cluster ${quoted(name)} --insecure-skip-tls-verify=false --certificate-authority=FILE --embed-certs`,
      },
    );
  }
  if (!server.startsWith("https://")) throw wrong(`${where} has server ${server}; Starling supports only https`, path);
  if (proxy !== undefined)
    throw wrong(`${where} has proxy-url ${proxy}; Starling supports only direct connections`, path);
}

/** As for kubectl, a relative path starts at the folder of the kubeconfig. */
function authorityOf(cluster: ClusterEntry, { where, path, name }: Place): string | undefined {
  const { "certificate-authority-data": data, "certificate-authority": file } = cluster;
  if (data !== undefined && data !== "") return data;
  if (file === undefined || file === "") return undefined;
  const found = resolve(dirname(path), file);
  try {
    return readFileSync(found).toString("base64");
  } catch (cause) {
    throw new LocalFailure(
      `${where} has certificate-authority ${found}, which cannot be read: ${errorMessage(cause)}`,
      {
        exit: "wrongInput",
        next: `kubectl config --kubeconfig ${quoted(path)} set-cluster ${quoted(name)} --certificate-authority=FILE`,
        cause,
      },
    );
  }
}

function wrong(message: string, path: string): LocalFailure {
  return new LocalFailure(message, { exit: "wrongInput", next: `kubectl config view --kubeconfig ${quoted(path)}` });
}
