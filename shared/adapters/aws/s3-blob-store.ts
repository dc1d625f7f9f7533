import {
  CopyObjectCommand,
  GetObjectCommand,
  HeadObjectCommand,
  PutObjectCommand,
  type S3Client,
  S3ServiceException,
} from "@aws-sdk/client-s3";
import { blobTooLarge } from "#shared/adapters/aws/blob-too-large.ts";
import { inNewSession, isExpired } from "#shared/adapters/aws/in-new-session.ts";
import { isNetworkFailure } from "#shared/adapters/aws/network-failure.ts";
import { StarlingError } from "#shared/base/errors.ts";
import type { BlobStore } from "#shared/ports.ts";

/** Blobs in one S3 bucket. Keys name their content's digest; whoever reads verifies it. */
export class S3BlobStore implements BlobStore {
  readonly #client: S3Client;
  readonly #bucket: string;

  constructor(client: S3Client, bucket: string) {
    this.#client = client;
    this.#bucket = bucket;
  }

  async overwrite(key: string, bytes: Uint8Array): Promise<void> {
    await this.#asked(key, () => this.#client.send(new PutObjectCommand({ ...this.#at(key), Body: bytes })));
  }

  async renew(key: string, before: Date): Promise<void> {
    const { LastModified } = await this.#asked(key, () => this.#client.send(new HeadObjectCommand(this.#at(key))));
    if (LastModified !== undefined && LastModified >= before) return;
    // S3 refuses a copy onto itself in which nothing changes.
    const copy = { ...this.#at(key), CopySource: `${this.#bucket}/${key}`, MetadataDirective: "REPLACE" } as const;
    await this.#asked(key, () => this.#client.send(new CopyObjectCommand(copy)));
  }

  #at(key: string) {
    return { Bucket: this.#bucket, Key: key };
  }

  async #asked<T>(key: string, send: () => Promise<T>): Promise<T> {
    try {
      return await inNewSession(send, isOver);
    } catch (error) {
      throw this.#translated(error, key);
    }
  }

  async get(key: string, limits?: { readonly maxBytes: number }): Promise<Uint8Array> {
    try {
      const get = new GetObjectCommand(this.#at(key));
      const { Body, ContentLength = 0 } = await inNewSession(() => this.#client.send(get), isOver);
      if (limits !== undefined && ContentLength > limits.maxBytes) {
        (Body as { destroy?(): void } | undefined)?.destroy?.();
        throw blobTooLarge({ key, size: ContentLength, maxBytes: limits.maxBytes });
      }
      return (await Body?.transformToByteArray()) ?? new Uint8Array();
    } catch (error) {
      if (error instanceof StarlingError) throw error;
      throw this.#translated(error, key);
    }
  }

  /** What may pass is said in Starling's words; the rest is a defect, and stays as it is. */
  #translated(error: unknown, key: string): unknown {
    if (isMissing(error)) {
      return new StarlingError(`no blob ${key}`, {
        code: "BlobNotFound",
        retry: "permanent",
        data: { key },
        cause: error,
      });
    }
    if (statusOf(error) === 403 && !isOver(error)) return denied(error, { bucket: this.#bucket, key });
    const status = statusOf(error) ?? 0;
    if (!isNetworkFailure(error) && !isOver(error) && status !== 429 && status < 500) return error;
    return new StarlingError(`S3 kept refusing ${key}`, {
      code: "BlobStoreBusy",
      retry: "transient",
      data: { key },
      cause: error,
    });
  }
}

/**
 * Nothing is known of the blob: S3 answers 403 for a key that does not exist, too, unless the role may list it. Somebody
 * grants it again, or lifts what denies it, and then the same call succeeds.
 */
function denied(error: unknown, { bucket, key }: { readonly bucket: string; readonly key: string }): StarlingError {
  // The answer to a HEAD has no body, and its name is the SDK's.
  const said = error instanceof Error && error.name !== "Unknown" ? error.name : "403";
  const grants = "its role needs s3:GetObject, s3:PutObject or s3:ListBucket there, and the key of the bucket";
  const remedy = `${grants}; look for a Deny in the bucket's policy and in those of the organisation`;
  return new StarlingError(`S3 denied ${key} in the bucket ${bucket} (${said}): ${remedy}`, {
    code: "BlobDenied",
    retry: "transient",
    data: { bucket, key },
    cause: error,
  });
}

/** The answer to a HEAD has no body, and so no code that would tell a key from a bucket. */
function isMissing(error: unknown): boolean {
  return error instanceof S3ServiceException && (error.name === "NoSuchKey" || error.name === "NotFound");
}

/** The answer to a HEAD has no body that would say so. */
function isOver(error: unknown): boolean {
  return isExpired(error) || (error instanceof Error && error.name === "Unknown" && statusOf(error) === 400);
}

function statusOf(error: unknown): number | undefined {
  return error instanceof S3ServiceException ? error.$metadata.httpStatusCode : undefined;
}
