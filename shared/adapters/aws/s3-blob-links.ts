import { GetObjectCommand, type S3Client } from "@aws-sdk/client-s3";
import { getSignedUrl } from "@aws-sdk/s3-request-presigner";
import { linkSeconds } from "#shared/fleet/blob-keys.ts";
import type { BlobLinks } from "#shared/ports.ts";

/** Links that are presigned with the function's role. */
export class S3BlobLinks implements BlobLinks {
  readonly #s3: S3Client;
  readonly #bucket: string;

  constructor(s3: S3Client, bucket: string) {
    this.#s3 = s3;
    this.#bucket = bucket;
  }

  link(key: string): Promise<string> {
    return getSignedUrl(this.#s3, new GetObjectCommand({ Bucket: this.#bucket, Key: key }), { expiresIn: linkSeconds });
  }
}
