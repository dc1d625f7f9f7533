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

/** As long as a build may take, and a little: what was not begun by then is refused. */
const urlSeconds = 180;
/** Longer than the function may take, shorter than the invocation that waits for it. */
const invokeMs = 108_000;
/** An answer has a digest or a message; its sender is not trusted with more. */
const maxAnswerBytes = 64 * 1024;

/**
 * Has artifacts rendered by the function `build`, whose role may do nothing. It gets a URL to read this artifact and one
 * to leave its bytes at, and a sandbox that no other artifact has been in: the artifact's digest is its tenant, or that of
 * all, where values come from others.
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
    if (sha256(bytes) !== answer.digest) throw broken("it left other bytes than it told");
    return { digest: answer.digest, objects: answer.objects, ...defined({ leftOut: answer.leftOut }), bytes };
  }

  async #readable(artifactDigest: string): Promise<Pick<BuildJob, "artifactDigest" | "artifactUrl">> {
    const { presigner, bucket: Bucket } = this.#options;
    const get = new GetObjectCommand({ Bucket, Key: blobKeys.artifact(artifactDigest) });
    return { artifactDigest, artifactUrl: await getSignedUrl(presigner, get, { expiresIn: urlSeconds }) };
  }

  /**
   * Size and condition are headers that are signed: a body of another size is refused before it is stored, and so is a second
   * one, of which the bucket would keep the first.
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
    if (!parsed.success) throw broken("its answer is none");
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

/** Nothing is left for others of what a sandbox has read. */
function tenantOf({ artifactDigest, besides = [] }: BuildJob): string {
  const others = besides.map((one) => one.artifactDigest).sort();
  return others.length === 0 ? artifactDigest : digestOf([artifactDigest, ...others]);
}

/** What an operator mends, or what passes, and not what is wrong with the input. */
const isOurs: ReadonlySet<string> = new Set(["KubectlNotFound", "TransferFailed", "ArtifactInvalid"]);

function failureOf(answer: Extract<BuildAnswer, { outcome: "failed" }>): StarlingError {
  const { message, permanent } = answer;
  const code = otherCode(answer.code);
  if (isOurs.has(code)) return new StarlingError(message, { code, retry: "transient" });
  if (permanent) return new StarlingError(message, { code, retry: "permanent" });
  return new StarlingError(message, { code, retry: "transient", data: { strike: true } });
}

/** A function that ended without an answer, or with one that is none. */
function broken(how: string): StarlingError {
  return new StarlingError(
    `the build ended without a rendering: ${how}; most likely it takes more memory or time than there is`,
    { code: "BuildFailed", retry: "transient", data: { strike: true } },
  );
}

/** What Lambda says of a function's end: `{"errorType": "Runtime.ExitError", "errorMessage": "..."}`. */
function endOf(text: string): string {
  const said = parseLeniently(text);
  const { errorType = "", errorMessage: message = "" } = typeof said === "object" && said !== null ? said : {};
  return `${String(errorType)} ${String(message)}`.trim().slice(0, 300) || "it did not say why";
}

function parseLeniently(text: string): { readonly errorType?: unknown; readonly errorMessage?: unknown } | null {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
