import type { BucketPorts } from "#functions/resolve/upstreams/locate-bucket.ts";

/** Buckets that nothing should read. */
export const noBuckets: BucketPorts = {
  buckets: {
    list: ({ bucket }) => Promise.reject(new Error(`nothing should list ${bucket}`)),
    get: ({ bucket }) => Promise.reject(new Error(`nothing should read ${bucket}`)),
  },
  bucketRules: { allowed: [], own: "starling-blobs" },
};
