import { ofPart } from "#functions/resolve/upstreams/unpack-upstream.ts";
import type { Fetched, Located } from "#functions/resolve/upstreams/upstream.ts";
import { upstreamError } from "#functions/resolve/upstreams/upstream-errors.ts";
import { nameProblem } from "#shared/adapters/render/artifact-archive.ts";
import { counted } from "#shared/base/counted.ts";
import { sha256 } from "#shared/base/digest.ts";
import { StarlingError } from "#shared/base/errors.ts";
import { excerpt } from "#shared/base/excerpt.ts";
import { runConcurrently } from "#shared/base/run-concurrently.ts";
import { compareText } from "#shared/base/text-order.ts";
import { bucketAddress, type S3Upstream } from "#shared/fleet/kinds/source.ts";
import { type BucketRules, bucketProblem } from "#shared/fleet/source-buckets.ts";
import type { BucketObject, BucketReader } from "#shared/ports.ts";
import { IgnoreError } from "#shared/source/ignore-pattern.ts";
import { ignoreRoot, withoutIgnored } from "#shared/source/ignore-rules.ts";
import { isWithin, type ListedFile } from "#shared/source/tree-listing.ts";

const maxFiles = 20_000;
const maxBytes = 100 * 1024 * 1024;
/** Of 1,000 objects each: what is looked through to find the files. */
const maxPages = 100;
const readsAtOnce = 16;
/** Number of times that the bucket is listed again because objects changed while they were read. */
const rounds = 3;

export interface BucketUse {
  /** Namespace of the Source. */
  readonly namespace: string;
  /** Relative to the prefix. */
  readonly paths: readonly string[];
  /** `spec.ignore` */
  readonly ignore?: string | undefined;
  readonly timeLeftMs: () => number;
  readonly revision: string | undefined;
}

export interface BucketPorts {
  readonly buckets: BucketReader;
  readonly bucketRules: BucketRules;
}

/** Objects by their path below the prefix. */
type Listing = ReadonlyMap<string, BucketObject>;

/** The revision is the digest of the keys and ETags in the Source's paths, so that one listing sees every change. */
export async function locateBucket(spec: S3Upstream, use: BucketUse, ports: BucketPorts): Promise<Located> {
  const problem = bucketProblem(spec.bucket, use.namespace, ports.bucketRules);
  if (problem !== undefined) throw upstreamError("BucketNotAllowed", `spec.s3.bucket ${spec.bucket} ${problem}`);
  const listing = await list(spec, use, ports.buckets);
  const revision = revisionOf(listing);
  if (use.revision !== undefined && use.revision !== revision) {
    throw upstreamError("ArtifactGone", `${bucketAddress(spec)} has other objects now, ${revision}`);
  }
  return {
    revision,
    what: bucketAddress(spec),
    fetch: () => read(listing, { spec, use, buckets: ports.buckets }),
  };
}

async function list(spec: S3Upstream, use: BucketUse, buckets: BucketReader): Promise<Listing> {
  const { prefix = "" } = spec;
  const folder = prefix === "" || prefix.endsWith("/") ? prefix : `${prefix}/`;
  const found = new Map<string, BucketObject>();
  let pages = 0;
  let bytes = 0;
  const isOut = ignoredBy(spec, use.ignore);
  for (const part of separate(use.paths)) {
    let from: string | undefined;
    do {
      if (++pages > maxPages) {
        throw tooLarge(spec, `more than ${maxPages * 1000} objects would be looked through`);
      }
      const start = part === "." ? folder : `${folder}${part}`;
      const page = await buckets.list(spec, { prefix: start, from, timeLeftMs: use.timeLeftMs });
      for (const object of page.objects) {
        const path = object.key.slice(folder.length);
        // Consoles make objects for folders.
        if (path === "" || path.endsWith("/") || !isWithin(path, [part]) || isOut(path)) continue;
        checkPath(spec, path, found);
        found.set(path, object);
        bytes += object.size;
        if (found.size > maxFiles) throw tooLarge(spec, `more than ${maxFiles} files are in spec.paths`);
        if (bytes > maxBytes) throw tooLarge(spec, `spec.paths has more than ${maxBytes / 1024 / 1024} MiB`);
      }
      from = page.next;
    } while (from !== undefined);
  }
  const inFile = [...found.keys()].find((path) => foldersOf(path).some((parent) => found.has(parent)));
  if (inFile !== undefined) throw refusedKey(spec, inFile, "is below an object that is a file; no folder can be both");
  return found;
}

/** Whether `spec.ignore`, or the default, leaves an object out. The files `.sourceignore` are read with the others. */
function ignoredBy(spec: S3Upstream, ignore: string | undefined): (path: string) => boolean {
  const root = ignoreRoot(ignore, { hasDefaults: true });
  return (path) => {
    try {
      return withoutIgnored([{ path, executable: false, content: new Uint8Array() }], root).length === 0;
    } catch (error) {
      throw error instanceof IgnoreError ? tooLarge(spec, `spec.ignore ${error.message}`) : error;
    }
  };
}

/** The paths that lie below no other one, so that nothing is listed twice. */
function separate(paths: readonly string[]): readonly string[] {
  const distinct = [...new Set(paths)];
  return distinct.filter((path) => !distinct.some((other) => other !== path && isWithin(path, [other])));
}

function foldersOf(path: string): readonly string[] {
  const parts = path.split("/");
  return parts.slice(1).map((_, index) => parts.slice(0, index + 1).join("/"));
}

function checkPath(spec: S3Upstream, path: string, found: Listing): void {
  const problem = /\p{Cc}/u.test(path) ? "has a control character" : nameProblem(path, "prefix");
  if (problem !== undefined) throw refusedKey(spec, path, problem);
  if (found.has(path)) throw refusedKey(spec, path, "is listed twice");
}

function refusedKey(spec: S3Upstream, path: string, problem: string): StarlingError {
  const remedy = "rename it, or narrow spec.paths";
  const shown = JSON.stringify(excerpt(path, 200));
  return upstreamError("BucketKeyRefused", `${bucketAddress(spec)}: the object ${shown} ${problem}; ${remedy}`);
}

function tooLarge(spec: S3Upstream, what: string): StarlingError {
  const remedy = "narrow spec.s3.prefix or spec.paths";
  return upstreamError("UpstreamTooLarge", `${bucketAddress(spec)}: ${what}; ${remedy}`);
}

/** Flux's form, so that both tools name the same content alike. */
function revisionOf(listing: Listing): string {
  const lines = [...listing].sort(([a], [b]) => compareText(a, b)).map(([path, { etag }]) => `${path} ${etag}\n`);
  return sha256(lines.join(""));
}

/**
 * Reads the listed objects. The bucket is listed again if one is gone or another one by then, so that the files are those
 * of one listing.
 */
async function read(
  listed: Listing,
  { spec, use, buckets }: { readonly spec: S3Upstream; readonly use: BucketUse; readonly buckets: BucketReader },
): Promise<Fetched> {
  const had = new Map<string, { readonly etag: string; readonly content: Uint8Array }>();
  let listing = listed;
  for (let round = 1; ; round++) {
    const lacking = [...listing].filter(([path, { etag }]) => had.get(path)?.etag !== etag);
    let isOld = false;
    await runConcurrently(lacking, readsAtOnce, async ([path, object]) => {
      const content = await buckets.get(spec, object, use.timeLeftMs);
      if (content === undefined) isOld = true;
      else had.set(path, { etag: object.etag, content });
    });
    if (!isOld) break;
    if (round === rounds) {
      const message = `${bucketAddress(spec)}: its objects change faster than they can be read; Starling tries again`;
      throw new StarlingError(message, { code: "UpstreamUnavailable", retry: "transient" });
    }
    listing = await list(spec, use, buckets);
  }
  const files = [...listing.keys()].flatMap((path): readonly ListedFile[] => {
    const { content } = had.get(path) ?? {};
    return content === undefined ? [] : [{ path, executable: false, content }];
  });
  const part = { what: bucketAddress(spec), hasDefaults: true, paths: use.paths, ignore: use.ignore };
  return { ...aboutOf(listing, spec), revision: revisionOf(listing), files: ofPart(files, part) };
}

function aboutOf(listing: Listing, spec: S3Upstream) {
  const times = [...listing.values()].flatMap(({ modifiedAt }) => modifiedAt ?? []);
  const newest = times.sort().at(-1);
  return {
    title: `${counted(listing.size, "object")} of ${bucketAddress(spec)}`,
    author: "",
    ...(newest === undefined ? {} : { committedAt: newest }),
  };
}
