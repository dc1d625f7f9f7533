import { GetObjectCommand, NoSuchKey, PutObjectCommand, type S3Client, S3ServiceException } from "@aws-sdk/client-s3";
import { StarlingError } from "#shared/errors.ts";
import type { BlobStore } from "#shared/ports.ts";

/** Blobs in one S3 bucket. Keys name their content's digest; whoever reads verifies it. */
export class S3BlobStore implements BlobStore {
  readonly #client: S3Client;
  readonly #bucket: string;

  constructor(client: S3Client, bucket: string) {
    this.#client = client;
    this.#bucket = bucket;
  }

  async putOnce(key: string, bytes: Uint8Array): Promise<boolean> {
    try {
      await this.#client.send(new PutObjectCommand({ Bucket: this.#bucket, Key: key, Body: bytes, IfNoneMatch: "*" }));
      return true;
    } catch (error) {
      if (statusOf(error) === 412) return false;
      throw error;
    }
  }

  async get(key: string): Promise<Uint8Array> {
    try {
      const answer = await this.#client.send(new GetObjectCommand({ Bucket: this.#bucket, Key: key }));
      return (await answer.Body?.transformToByteArray()) ?? new Uint8Array();
    } catch (error) {
      // S3 answers 403 for a missing key to a role that may not list the bucket, and none of Starling's may.
      if (!(error instanceof NoSuchKey) && statusOf(error) !== 403) throw error;
      throw new StarlingError(`no blob ${key}`, {
        code: "BlobNotFound",
        retry: "permanent",
        data: { key },
        cause: error,
      });
    }
  }
}

function statusOf(error: unknown): number | undefined {
  return error instanceof S3ServiceException ? error.$metadata.httpStatusCode : undefined;
}
