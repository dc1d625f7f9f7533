import type { LastArtifact } from "#functions/build/last-artifact.ts";
import { type Renderers, renderObjects } from "#shared/adapters/render/render-objects.ts";
import { defined } from "#shared/base/defined.ts";
import { errorMessage, StarlingError } from "#shared/base/errors.ts";
import type { Transfer } from "#shared/ports.ts";
import { type BuildAnswer, type BuildJob, maxRenderingBytes } from "#shared/source/build-job.ts";
import { encodeRendering } from "#shared/source/rendering.ts";
import { ManifestError } from "#shared/source/yaml/manifest-error.ts";

export interface BuildPorts extends Renderers {
  readonly transfer: Transfer;
  readonly artifact: Pick<LastArtifact, "read">;
}

const maxMessageLength = 2000;
const maxLeftOut = 20;
const maxLeftOutLength = 500;

/**
 * Renders one artifact, with values from other artifacts where the job names some, and uploads the bytes to the job's URL.
 * Only this function reads the bytes of a repository: in a sandbox that has read no other repository, under a role that
 * permits nothing.
 */
export async function build(job: BuildJob, ports: BuildPorts): Promise<BuildAnswer> {
  try {
    const { files, others } = await ports.artifact.read(job);
    const request = { files, others, path: job.path, ...defined({ render: job.render, specialise: job.specialise }) };
    const { objects, upgrade, leftOut } = await renderObjects(request, ports);
    const { digest, bytes } = encodeRendering(objects, upgrade);
    const room = job.renderingUrls.find((one) => one.bytes >= bytes.length);
    if (room === undefined) throw tooLarge(job.path, bytes.length);
    await ports.transfer.upload(room.url, filledUp(bytes, room.bytes));
    const reported = leftOut.slice(0, maxLeftOut).map((text) => text.slice(0, maxLeftOutLength));
    const size = bytes.length;
    return {
      outcome: "done",
      digest,
      bytes: size,
      objects: upgrade.length,
      ...(reported.length === 0 ? {} : { leftOut: reported }),
    };
  } catch (error) {
    return failureOf(error);
  }
}

/** Pads with zeros to a fixed size; the answer states the length of the rendering. */
function filledUp(bytes: Uint8Array, size: number): Uint8Array {
  const filled = new Uint8Array(size);
  filled.set(bytes);
  return filled;
}

function tooLarge(path: string, size: number): StarlingError {
  return new StarlingError(
    `${path} renders to ${size} bytes, more than ${maxRenderingBytes}; split it into several templates`,
    { code: "RenderingTooLarge", retry: "permanent" },
  );
}

function failureOf(error: unknown): BuildAnswer {
  const message = errorMessage(error).slice(0, maxMessageLength);
  if (error instanceof ManifestError) return { outcome: "failed", code: error.code, message, permanent: true };
  if (!(error instanceof StarlingError)) return { outcome: "failed", code: "Internal", message, permanent: false };
  return { outcome: "failed", code: error.code, message, permanent: error.retry === "permanent" };
}
