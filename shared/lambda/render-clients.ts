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

/** With those that have something built elsewhere: they are in the bundle of the one function that does. */
export interface RenderClients extends RowClients, BlobClients, LambdaClients {
  /** Only signs: it sends nothing itself. */
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
      // Else the checksum of an empty body is part of what is signed, and no other body can be put.
      requestChecksumCalculation: "WHEN_REQUIRED",
    }),
  };
}
