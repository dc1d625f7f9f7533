/** The interface of each kind of upstream: a place that a Source is fed from. */
import type { Clock } from "#shared/base/clock.ts";
import type { GitRemote, HttpRemote, SourceCredentials } from "#shared/ports.ts";
import type { SourceListing } from "#shared/source/http-listing.ts";
import type { Verified } from "#shared/source/signatures/verified.ts";
import type { ListedFile } from "#shared/source/tree-listing.ts";

export interface UpstreamPorts {
  readonly git: GitRemote;
  readonly http: HttpRemote;
  readonly clock: Clock;
}

export interface UpstreamUse {
  /** Does the work with the credentials that the spec names; once more with renewed ones, if the upstream refused them. */
  signedIn<T>(work: (credentials: SourceCredentials | undefined) => Promise<T>): Promise<T>;
  /** Milliseconds that may be spent. */
  readonly timeLeftMs: () => number;
  /** A revision that the Source had, to find exactly this one; absent: what the spec means now. */
  readonly revision: string | undefined;
  /** The listing in which the present revision was found by the same spec: the server may answer that it is unchanged. */
  readonly listing?: SourceListing;
}

/** The revision that a Source means now, and how its files are read. */
export interface Located {
  /** `main@sha1:<commit>`, `sha256:<digest>`: equal while nothing has changed. */
  readonly revision: string;
  /** Id of the tag whose signature counts: a tag that is signed later is at the same commit. */
  readonly tag?: string;
  /** The signatures are kept apart from what they sign: one may come later, without another revision. */
  readonly isSignedApart?: true;
  /** The listing that named it, if the server can tell whether it has changed. */
  readonly listing?: SourceListing;
  /** For errors: `commit 1f3a… of https://…`. */
  readonly what: string;
  fetch(part: SourcePart): Promise<Fetched>;
}

/** The part of an upstream that a Source takes. */
export interface SourcePart {
  /** Relative to the root of the upstream; `.` means all. */
  readonly paths: readonly string[];
  /** `spec.ignore` */
  readonly ignore?: string | undefined;
}

export interface Fetched {
  /** The revision of these files, where the upstream changed between the look and the fetch. */
  readonly revision?: string;
  readonly files: readonly ListedFile[];
  /** First line of a commit's message, or what a file is. */
  readonly title: string;
  /** `Ana <ana@acme.io>`; empty when nobody is named. */
  readonly author: string;
  readonly committedAt?: string;
  /** The origin of the files, if it is not the upstream. */
  readonly origin?: string;
  readonly verified?: Verified;
}

/**
 * Finds the revision of a Source's spec, and reads no files.
 * @throws StarlingError that names the field and the remedy.
 */
export type LocateUpstream<Spec> = (spec: Spec, use: UpstreamUse, ports: UpstreamPorts) => Promise<Located>;
