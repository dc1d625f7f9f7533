import { InvokeCommand, type LambdaClient } from "@aws-sdk/client-lambda";
import { GetObjectCommand, PutObjectCommand, type S3Client } from "@aws-sdk/client-s3";
import { getSignedUrl } from "@aws-sdk/s3-request-presigner";
import { inNewSession } from "#shared/adapters/aws/in-new-session.ts";
import { defined } from "#shared/base/defined.ts";
import { digestOf, sha256 } from "#shared/base/digest.ts";
import { otherCode } from "#shared/base/error-codes.ts";
import { errorMessage, StarlingError } from "#shared/base/errors.ts";
import { blobKeys } from "#shared/fleet/blob-keys.ts";
import type { BlobStore, Builder, BuildRequest, Built } from "#shared/ports.ts";
import {
  type BuildAnswer,
  type BuildJob,
  buildAnswer,
  maxRenderingBytes,
  uploadSizes,
} from "#shared/source/build-job.ts";
import { valueArtifacts } from "#shared/source/helm/helm-release.ts";

export interface LambdaBuilderOptions {
  readonly lambda: LambdaClient;
  readonly presigner: S3Client;
  readonly blobs: BlobStore;
  readonly bucket: string;
  readonly functionName: string;
}

/** The longest time of a build, with a reserve. A transfer that has not begun by then is refused. */
const urlSeconds = 180;
/** Longer than the function may run, and shorter than the invocation that waits for it. */
const invokeMs = 108_000;
/** An answer contains a digest or a message. Its sender is not trusted, so that the size is limited. */
const maxAnswerBytes = 64 * 1024;

/**
 * Renders artifacts with the function `build`, whose role has no permissions. The function gets URLs for reading its
 * artifacts and for writing its output, and a sandbox that has read no other artifact. Its tenant is the artifact's
 * digest, or a digest of all artifacts when values come from others.
 */
export class LambdaBuilder implements Builder {
  readonly #options: LambdaBuilderOptions;

  constructor(options: LambdaBuilderOptions) {
    this.#options = options;
  }

  async build({ artifactDigest, path, render, specialise, attempt }: BuildRequest): Promise<Built> {
    const { blobs } = this.#options;
    const staged = blobKeys.incoming(attempt);
    const others = valueArtifacts(render?.helm);
    const [artifact, renderingUrls, ...besides] = await Promise.all([
      this.#readable(artifactDigest),
      Promise.all(uploadSizes.map((bytes) => this.#writable(staged, bytes))),
      ...others.map((digest) => this.#readable(digest)),
    ]);
    const options = defined({ render, specialise, besides: besides.length === 0 ? undefined : besides });
    const answer = await this.#ask({ ...artifact, path, ...options, renderingUrls });
    if (answer.outcome === "failed") throw failureOf(answer);
    const filled = await blobs.get(staged, { maxBytes: maxRenderingBytes }).catch((error: unknown) => {
      throw error instanceof StarlingError && error.retry === "permanent" ? broken(errorMessage(error)) : error;
    });
    const bytes = filled.subarray(0, answer.bytes);
    if (sha256(bytes) !== answer.digest)
      throw broken("the bytes that it stored do not have the digest that it reported");
    return { digest: answer.digest, objects: answer.objects, ...defined({ leftOut: answer.leftOut }), bytes };
  }

  async #readable(artifactDigest: string): Promise<Pick<BuildJob, "artifactDigest" | "artifactUrl">> {
    const { presigner, bucket: Bucket } = this.#options;
    const get = new GetObjectCommand({ Bucket, Key: blobKeys.artifact(artifactDigest) });
    return { artifactDigest, artifactUrl: await getSignedUrl(presigner, get, { expiresIn: urlSeconds }) };
  }

  /**
   * The size and the condition are signed headers. S3 refuses a body of another size before it stores it, and a second
   * body, because the bucket keeps the first one.
   */
  async #writable(Key: string, bytes: number): Promise<BuildJob["renderingUrls"][number]> {
    const { presigner, bucket: Bucket } = this.#options;
    const put = new PutObjectCommand({ Bucket, Key, ContentLength: bytes, IfNoneMatch: "*" });
    return { bytes, url: await getSignedUrl(presigner, put, { expiresIn: urlSeconds }) };
  }

  async #ask(job: BuildJob): Promise<BuildAnswer> {
    const { FunctionError, Payload } = await this.#invoke(job);
    const text = new TextDecoder().decode(Payload?.subarray(0, maxAnswerBytes));
    if (FunctionError !== undefined) throw broken(endOf(text));
    const parsed = buildAnswer.safeParse(parseLeniently(text));
    if (!parsed.success) throw broken("its answer is invalid");
    return parsed.data;
  }

  async #invoke(job: BuildJob) {
    const { lambda, functionName } = this.#options;
    const command = new InvokeCommand({
      FunctionName: functionName,
      InvocationType: "RequestResponse",
      TenantId: tenantOf(job),
      Payload: new TextEncoder().encode(JSON.stringify(job)),
    });
    const abortSignal = AbortSignal.timeout(invokeMs);
    try {
      return await inNewSession(() => lambda.send(command, { abortSignal }));
    } catch (error) {
      throw new StarlingError(`the build could not be started: ${errorMessage(error)}`, {
        code: "BuilderBusy",
        retry: "transient",
        cause: error,
      });
    }
  }
}

/** A sandbox must not keep what it has read for another tenant. */
function tenantOf({ artifactDigest, besides = [] }: BuildJob): string {
  const others = besides.map((one) => one.artifactDigest).sort();
  return others.length === 0 ? artifactDigest : digestOf([artifactDigest, ...others]);
}

/** Errors that an operator repairs, or that pass; the input is not at fault. */
const isOurs: ReadonlySet<string> = new Set(["KubectlNotFound", "TransferFailed", "ArtifactInvalid"]);

function failureOf(answer: Extract<BuildAnswer, { outcome: "failed" }>): StarlingError {
  const { message, permanent } = answer;
  const code = otherCode(answer.code);
  if (isOurs.has(code)) return new StarlingError(message, { code, retry: "transient" });
  if (permanent) return new StarlingError(message, { code, retry: "permanent" });
  return new StarlingError(message, { code, retry: "transient", data: { strike: true } });
}

/** The function ended without an answer, or with an invalid one. */
function broken(how: string): StarlingError {
  return new StarlingError(
    `the build ended without a rendering: ${how}; most likely it needs more memory or time than the function has`,
    { code: "BuildFailed", retry: "transient", data: { strike: true } },
  );
}

/** The function's end as Lambda reports it: `{"errorType": "Runtime.ExitError", "errorMessage": "..."}`. */
function endOf(text: string): string {
  const said = parseLeniently(text);
  const { errorType = "", errorMessage: message = "" } = typeof said === "object" && said !== null ? said : {};
  return `${String(errorType)} ${String(message)}`.trim().slice(0, 300) || "it gave no reason";
}

function parseLeniently(text: string): { readonly errorType?: unknown; readonly errorMessage?: unknown } | null {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
