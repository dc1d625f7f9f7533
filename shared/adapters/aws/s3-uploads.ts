import { HeadObjectCommand, NotFound, PutObjectCommand, type S3Client } from "@aws-sdk/client-s3";
import { getSignedUrl } from "@aws-sdk/s3-request-presigner";
import type { UploadPlaces } from "#shared/ports.ts";

/** The time in which an upload begins. */
const urlSeconds = 900;

/** Places in one bucket, with links that are presigned with the function's role. */
export class S3Uploads implements UploadPlaces {
  readonly #s3: S3Client;
  readonly #bucket: string;

  constructor(s3: S3Client, bucket: string) {
    this.#s3 = s3;
    this.#bucket = bucket;
  }

  place(key: string, bytes: number): Promise<string> {
    const put = new PutObjectCommand({ Bucket: this.#bucket, Key: key, ContentLength: bytes, IfNoneMatch: "*" });
    return getSignedUrl(this.#s3, put, { expiresIn: urlSeconds });
  }

  async size(key: string): Promise<number | undefined> {
    try {
      return (await this.#s3.send(new HeadObjectCommand({ Bucket: this.#bucket, Key: key }))).ContentLength;
    } catch (error) {
      if (error instanceof NotFound) return undefined;
      throw error;
    }
  }
}
