import { StarlingError } from "#shared/base/errors.ts";

export function blobTooLarge(blob: {
  readonly key: string;
  readonly size: number;
  readonly maxBytes: number;
}): StarlingError {
  const { key, size, maxBytes } = blob;
  return new StarlingError(`the blob ${key} has ${size} bytes, more than the limit of ${maxBytes}`, {
    code: "BlobTooLarge",
    retry: "permanent",
    data: { key },
  });
}
