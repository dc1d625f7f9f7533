import { unpackArtifact } from "#shared/adapters/render/artifact-archive.ts";
import { type Renderers, renderObjects } from "#shared/adapters/render/render-objects.ts";
import { defined } from "#shared/base/defined.ts";
import { errorMessage, StarlingError } from "#shared/base/errors.ts";
import type { Transfer } from "#shared/ports.ts";
import { type BuildAnswer, type BuildJob, maxRenderingBytes } from "#shared/source/build-job.ts";
import { encodeRendering } from "#shared/source/rendering.ts";
import { ManifestError } from "#shared/source/yaml/manifest-error.ts";

export interface BuildPorts extends Renderers {
  readonly transfer: Transfer;
}

const maxMessageLength = 2000;
const maxLeftOut = 20;
const maxLeftOutLength = 500;

/**
 * Renders one artifact and leaves the bytes where the job says. Every byte of a repository is read here and only here: in
 * a sandbox that has seen no other artifact, under a role that may do nothing.
 */
export async function build(job: BuildJob, ports: BuildPorts): Promise<BuildAnswer> {
  try {
    const archive = await ports.transfer.download(job.artifactUrl);
    const files = await unpackArtifact(archive, job.artifactDigest);
    const request = { files, path: job.path, ...defined({ render: job.render, specialise: job.specialise }) };
    const { objects, leftOut } = await renderObjects(request, ports);
    const { digest, bytes } = encodeRendering(objects);
    if (bytes.length > maxRenderingBytes) throw tooLarge(job.path, bytes.length);
    await ports.transfer.upload(job.renderingUrl, bytes);
    const told = leftOut.slice(0, maxLeftOut).map((text) => text.slice(0, maxLeftOutLength));
    return { outcome: "done", digest, objects: objects.length, ...(told.length === 0 ? {} : { leftOut: told }) };
  } catch (error) {
    return failureOf(error);
  }
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
