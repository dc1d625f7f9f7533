import { build } from "#functions/build/build.ts";
import { LastArtifact } from "#functions/build/last-artifact.ts";
import type { Renderers } from "#shared/adapters/render/render-objects.ts";
import { defined } from "#shared/base/defined.ts";
import { otherCode } from "#shared/base/error-codes.ts";
import { StarlingError } from "#shared/base/errors.ts";
import { blobKeys } from "#shared/fleet/blob-keys.ts";
import type { Builder, BuildRequest, Built } from "#shared/ports.ts";
import { uploadSizes } from "#shared/source/build-job.ts";
import { valueArtifacts } from "#shared/source/helm/helm-release.ts";
import type { MemoryBlobStore } from "#test/support/memory-blob-store.ts";

/** The function `build` in this process, with blobs in memory. */
export function memoryBuilder(blobs: MemoryBlobStore, renderers: Renderers): Builder {
  return {
    async build({ artifactDigest, path, render, specialise }: BuildRequest): Promise<Built> {
      let bytes = new Uint8Array();
      const transfer = {
        download: (key: string) => blobs.get(key),
        upload: async (_key: string, uploaded: Uint8Array) => {
          bytes = Uint8Array.from(uploaded);
        },
      };
      const readable = (digest: string) => ({ artifactDigest: digest, artifactUrl: blobKeys.artifact(digest) });
      const besides = valueArtifacts(render?.helm).map(readable);
      const job = {
        ...readable(artifactDigest),
        path,
        besides,
        renderingUrls: uploadSizes.map((size) => ({ bytes: size, url: "memory" })),
      };
      const answer = await build(
        { ...job, ...defined({ render, specialise }) },
        {
          transfer,
          artifact: new LastArtifact(transfer),
          ...renderers,
        },
      );
      if (answer.outcome === "done")
        return {
          digest: answer.digest,
          objects: answer.objects,
          ...defined({ leftOut: answer.leftOut }),
          bytes: bytes.subarray(0, answer.bytes),
        };
      const { message, permanent } = answer;
      const code = otherCode(answer.code);
      throw new StarlingError(message, { code, retry: permanent ? "permanent" : "transient", data: { strike: true } });
    },
  };
}
