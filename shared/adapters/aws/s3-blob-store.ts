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

/** Blobs in one S3 bucket. A key contains the digest of the content, and readers verify it. */
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
    // S3 refuses a copy onto itself that changes nothing.
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

  /** Errors that can pass become Starling's own. Others are defects and stay unchanged. */
  #translated(error: unknown, key: string): unknown {
    if (isMissing(error)) {
      return new StarlingError(`blob ${key} does not exist`, {
        code: "BlobNotFound",
        retry: "permanent",
        data: { key },
        cause: error,
      });
    }
    if (statusOf(error) === 403 && !isOver(error)) return denied(error, { bucket: this.#bucket, key });
    const status = statusOf(error) ?? 0;
    if (!isNetworkFailure(error) && !isOver(error) && status !== 429 && status < 500) return error;
    return new StarlingError(`S3 refused all tries for ${key}`, {
      code: "BlobStoreBusy",
      retry: "transient",
      data: { key },
      cause: error,
    });
  }
}

/**
 * Nothing is known about the blob: S3 also answers 403 for a missing key, unless the role may list it. The same call
 * succeeds after someone grants the permission, or removes the Deny.
 */
function denied(error: unknown, { bucket, key }: { readonly bucket: string; readonly key: string }): StarlingError {
  // The answer to a HEAD has no body, and the error's name is the SDK's own.
  const said = error instanceof Error && error.name !== "Unknown" ? error.name : "403";
  const grants = "its role needs s3:GetObject, s3:PutObject or s3:ListBucket there, and access to the bucket's KMS key";
  const remedy = `${grants}; check the bucket's policy and the organisation's policies for a Deny`;
  return new StarlingError(`S3 denied ${key} in the bucket ${bucket} (${said}): ${remedy}`, {
    code: "BlobDenied",
    retry: "transient",
    data: { bucket, key },
    cause: error,
  });
}

/** The answer to a HEAD has no body, so that no code distinguishes a missing key from a missing bucket. */
function isMissing(error: unknown): boolean {
  return error instanceof S3ServiceException && (error.name === "NoSuchKey" || error.name === "NotFound");
}

/** The answer to a HEAD has no body with the code. */
function isOver(error: unknown): boolean {
  return isExpired(error) || (error instanceof Error && error.name === "Unknown" && statusOf(error) === 400);
}

function statusOf(error: unknown): number | undefined {
  return error instanceof S3ServiceException ? error.$metadata.httpStatusCode : undefined;
}
