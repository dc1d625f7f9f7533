import { mkdir, readdir, readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Cluster } from "#apiserver/cluster.ts";
import { isJsonObject, type JsonObject, parseJson, stringifyJson } from "#apiserver/json.ts";
import type { TlsCertificate } from "#apiserver/tls-certificate.ts";

export interface SavedCluster {
  readonly identity: { readonly name: string; readonly uid: string; readonly token: string; readonly version: string };
  /** The cluster's own port, if it has one. */
  readonly port: number | undefined;
  readonly revision: number;
  /** Each object with its `group/plural`. */
  readonly objects: readonly (readonly [string, JsonObject])[];
}

export interface SavedState {
  readonly tls: TlsCertificate | undefined;
  readonly clusters: readonly SavedCluster[];
}

const tlsFile = "tls.json";
const clusterSuffix = ".cluster.json";

/** Reads the files of `saveState`. A missing directory gives an empty state. */
export async function loadState(directory: string): Promise<SavedState> {
  await mkdir(directory, { recursive: true });
  const clusters: SavedCluster[] = [];
  let tls: TlsCertificate | undefined;
  for (const file of (await readdir(directory)).sort()) {
    const path = join(directory, file);
    if (file === tlsFile) tls = await readAs(path, JSON.parse);
    if (file.endsWith(clusterSuffix)) clusters.push(await readAs(path, readCluster));
  }
  return { tls, clusters };
}

async function readAs<Value>(path: string, read: (text: string) => Value): Promise<Value> {
  const text = await readFile(path, "utf8");
  try {
    return read(text);
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new Error(`cannot read ${path}: ${why}; remove the file to start without it`, { cause });
  }
}

function readCluster(text: string): SavedCluster {
  const saved = parseJson(text);
  if (!isJsonObject(saved) || !isJsonObject(saved.identity) || !Array.isArray(saved.objects)) {
    throw new Error("the file holds no cluster");
  }
  const { name, uid, token, version } = saved.identity;
  const identity = { name: String(name), uid: String(uid), token: String(token), version: String(version) };
  const port = saved.port === undefined ? undefined : Number(saved.port);
  return { identity, port, revision: Number(saved.revision), objects: saved.objects as SavedCluster["objects"] };
}

/** Writes one file per cluster, and the certificate, so that kubeconfigs stay valid. The files contain secrets. */
export async function saveState(
  directory: string,
  state: {
    readonly tls: TlsCertificate;
    readonly clusters: readonly Cluster[];
    readonly portOf: (cluster: string) => number | undefined;
  },
): Promise<void> {
  await mkdir(directory, { recursive: true });
  await replaceFile(join(directory, tlsFile), JSON.stringify(state.tls));
  for (const { options, store } of state.clusters) {
    const { name, uid, token, version } = options;
    const objects = store
      .resources()
      .flatMap((resource) => store.list(resource).map((object) => [resource, object] as const));
    const port = state.portOf(name);
    const own = port === undefined ? {} : { port };
    const saved = { identity: { name, uid, token, version }, ...own, revision: store.revision, objects };
    await replaceFile(join(directory, `${encodeURIComponent(name)}${clusterSuffix}`), stringifyJson(saved));
  }
}

/** Replaces a file atomically: a crash during the write leaves the old file. */
async function replaceFile(file: string, text: string): Promise<void> {
  await writeFile(`${file}.new`, text, { mode: 0o600 });
  await rename(`${file}.new`, file);
}
