import { S3Client } from "@aws-sdk/client-s3";
import {
  type BlobClients,
  blobClients,
  type ClientOptions,
  clientConfig,
  type RowClients,
  rowClients,
} from "#shared/lambda/core-clients.ts";
import { type LambdaClients, lambdaClients } from "#shared/lambda/lambda-clients.ts";

/** Clients of the one function that starts builds. */
export interface RenderClients extends RowClients, BlobClients, LambdaClients {
  /** It only signs URLs and sends nothing. */
  readonly presigner: S3Client;
}

/** Clients for Lambda (region and credentials from its environment), or for the endpoints given. */
export function renderClients(options?: ClientOptions<keyof RowClients | keyof BlobClients | "lambda">): RenderClients {
  return {
    ...rowClients(options),
    ...blobClients(options),
    ...lambdaClients(options),
    presigner: new S3Client({
      ...clientConfig("s3", options),
      ...(options === undefined ? {} : { forcePathStyle: true }),
      // Without it, the checksum of an empty body would be signed, and no other body could be put.
      requestChecksumCalculation: "WHEN_REQUIRED",
    }),
  };
}
