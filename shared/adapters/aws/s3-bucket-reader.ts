import {
  GetObjectCommand,
  ListObjectsV2Command,
  type S3Client,
  type _Object as S3Object,
  S3ServiceException,
} from "@aws-sdk/client-s3";
import { AnswerTooLong, boundAnswers } from "#shared/adapters/aws/bounded-answers.ts";
import { inNewSession } from "#shared/adapters/aws/in-new-session.ts";
import { isNetworkFailure } from "#shared/adapters/aws/network-failure.ts";
import type { ErrorCode } from "#shared/base/error-codes.ts";
import { errorMessage, StarlingError } from "#shared/base/errors.ts";
import { excerpt } from "#shared/base/excerpt.ts";
import type { BucketObject, BucketPlace, BucketReader, ObjectPage } from "#shared/ports.ts";

/** Answers of S3 to a request that another region should get. */
const elsewhere: ReadonlySet<string> = new Set([
  ...["PermanentRedirect", "TemporaryRedirect", "AuthorizationHeaderMalformed", "IllegalLocationConstraintException"],
]);
/** Answers of S3 to a read of an object that is no longer there, or is another one. */
const moved: ReadonlySet<string> = new Set(["NoSuchKey", "NotFound", "PreconditionFailed"]);

/** A page of 1,000 objects, whose keys have up to 1,024 bytes and are escaped, has at most 7 MiB. */
const mostMiB = 8;

/** An answer says something impossible. */
class BrokenAnswer extends Error {}

/** Buckets of any account and region, read with the function's role. */
export class S3BucketReader implements BucketReader {
  readonly #clientIn: (region: string | undefined) => S3Client;
  readonly #clients = new Map<string | undefined, S3Client>();

  /** @param clientIn - makes the client of a region; undefined for the function's own. */
  constructor(clientIn: (region: string | undefined) => S3Client) {
    this.#clientIn = clientIn;
  }

  async list(
    place: BucketPlace,
    { prefix, from, timeLeftMs }: { readonly prefix: string; readonly from?: string | undefined; timeLeftMs(): number },
  ): Promise<ObjectPage> {
    const list = new ListObjectsV2Command({ Bucket: place.bucket, Prefix: prefix, ContinuationToken: from });
    return this.#asked(place, "s3:ListBucket", async (client) => {
      const abortSignal = AbortSignal.timeout(Math.max(1, timeLeftMs()));
      const { Name, Contents = [], NextContinuationToken: next } = await client.send(list, { abortSignal });
      // The SDK reads any other document as a listing of nothing.
      if (Name === undefined) throw new BrokenAnswer("it is no listing of a bucket");
      const objects = Contents.map(objectOf);
      if (next === undefined) return { objects };
      if (next === from) throw new BrokenAnswer("the page that follows a page is that page again");
      return { objects, next };
    });
  }

  async get(place: BucketPlace, object: BucketObject, timeLeftMs: () => number): Promise<Uint8Array | undefined> {
    const { key, etag, size } = object;
    const get = new GetObjectCommand({ Bucket: place.bucket, Key: key, IfMatch: `"${etag}"` });
    return this.#asked(place, "s3:GetObject", async (client) => {
      try {
        const abortSignal = AbortSignal.timeout(Math.max(1, timeLeftMs()));
        const { Body, ContentLength, ETag } = await client.send(get, { abortSignal });
        if (ContentLength !== size || ETag?.replaceAll('"', "") !== etag) {
          (Body as { destroy?(): void } | undefined)?.destroy?.();
          return undefined;
        }
        return (await Body?.transformToByteArray()) ?? new Uint8Array();
      } catch (error) {
        if (error instanceof Error && moved.has(error.name)) return undefined;
        throw error;
      }
    });
  }

  async #asked<T>(place: BucketPlace, action: string, ask: (client: S3Client) => Promise<T>): Promise<T> {
    try {
      return await inNewSession(() => ask(this.#client(place.region)));
    } catch (error) {
      throw translated(error, place, action);
    }
  }

  #client(region: string | undefined): S3Client {
    const known = this.#clients.get(region);
    if (known !== undefined) return known;
    const client = this.#clientIn(region);
    boundAnswers(client, mostMiB * 1024 * 1024);
    this.#clients.set(region, client);
    return client;
  }
}

function objectOf({ Key: key = "", ETag = "", Size: size = 0, LastModified }: S3Object): BucketObject {
  const etag = ETag.replaceAll('"', "");
  // A size below 0 would hide others from the sum. An ETag is sent back in a header, and is part of the revision.
  if (!Number.isSafeInteger(size) || size < 0 || !/^[\x21-\x7e]{1,200}$/.test(etag)) {
    const said = JSON.stringify({ key: excerpt(key, 200), etag: excerpt(etag, 100), size });
    throw new BrokenAnswer(`no object is ${said}`);
  }
  return { key, etag, size, modifiedAt: LastModified?.toISOString() };
}

function translated(error: unknown, { bucket, region }: BucketPlace, action: string): unknown {
  const status = error instanceof S3ServiceException ? (error.$metadata.httpStatusCode ?? 0) : 0;
  const name = error instanceof Error ? error.name : "";
  const refused = (code: ErrorCode, message: string) =>
    new StarlingError(`bucket ${bucket}: ${message}`, { code, retry: "permanent", data: { bucket }, cause: error });
  if (name === "NoSuchBucket") {
    return refused("BucketNotFound", "there is no such bucket: create it, or correct spec.s3.bucket");
  }
  if (elsewhere.has(name) || status === 301) {
    const found = regionIn(error);
    const asked = region ?? "the region of the installation";
    const remedy = found === undefined ? "write its region into spec.s3.region" : `write spec.s3.region: ${found}`;
    return refused("BucketElsewhere", `it is not in ${asked}: ${remedy}`);
  }
  if (name === "InvalidObjectState") {
    const remedy = "restore them, or move them out of spec.s3.prefix and spec.paths";
    return refused("BucketDenied", `some objects are archived, and S3 does not hand them out: ${remedy}`);
  }
  if (status === 401 || status === 403) {
    const own = `the setting sourceBuckets must name the bucket, with its account if that is another one`;
    const other = `the policy of a bucket in another account must allow s3:ListBucket and s3:GetObject to the role in the output ResolveRole`;
    const key = "the policy of the bucket's KMS key must allow it kms:Decrypt";
    return refused("BucketDenied", `S3 denies ${action} (${excerpt(name, 100)}): ${own}; ${other}; ${key}`);
  }
  if (error instanceof AnswerTooLong) {
    const remedy = "ask who runs the endpoint or the proxy between, or correct spec.s3.bucket";
    return refused(
      "UpstreamTooLarge",
      `the answer to ${action} has more than ${mostMiB} MiB, and S3 sends less: ${remedy}`,
    );
  }
  if (isUnreadable(error)) {
    // The SDK adds lines that are for programmers.
    const [problem = ""] = errorMessage(error).split("\n");
    const remedy = "Starling tries again; if that goes on, ask who runs the endpoint or the proxy between";
    const message = `bucket ${bucket}: the answer to ${action} cannot be read: ${excerpt(problem, 400)}; ${remedy}`;
    return new StarlingError(message, {
      code: "UpstreamUnavailable",
      retry: "transient",
      data: { bucket },
      cause: error,
    });
  }
  const passes = isNetworkFailure(error) || name === "AbortError" || status === 429 || status >= 500;
  if (!passes) return error;
  return new StarlingError(`bucket ${bucket}: S3 gave no answer to ${action}: ${errorMessage(error)}`, {
    code: "UpstreamUnavailable",
    retry: "transient",
    data: { bucket },
    cause: error,
  });
}

/** The SDK keeps the answer beside an error of reading it; the parser of HTTP gives codes of its own. */
function isUnreadable(error: unknown): boolean {
  if (!(error instanceof Error) || error instanceof S3ServiceException) return false;
  const isOfHttp = String((error as NodeJS.ErrnoException).code).startsWith("HPE_");
  return error instanceof BrokenAnswer || isOfHttp || ("$response" in error && !isNetworkFailure(error));
}

/** S3 says the region of a bucket in a header, and in some errors. */
function regionIn(error: unknown): string | undefined {
  if (!(error instanceof S3ServiceException)) return undefined;
  const headers: Readonly<Record<string, string>> = error.$response?.headers ?? {};
  const said = headers["x-amz-bucket-region"] ?? (error as { readonly Region?: unknown }).Region;
  return typeof said === "string" && /^[a-z0-9-]{1,64}$/.test(said) ? said : undefined;
}
