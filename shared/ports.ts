/**
 * The interfaces of every side effect of Starling, except time (`Clock`) and clusters (`ClusterClient`), which lower
 * layers know. Adapters in `shared/adapters` implement them; nothing else does I/O.
 */

import type { BusEvent } from "#shared/fleet/outside-event.ts";
import type { AlarmReading } from "#shared/fleet/rollout/alarms.ts";
import type { Row, RowKey, RowKeyOf, RowRange } from "#shared/fleet/rows/row.ts";
import type { Newer, RowOf, RowRead, RowType } from "#shared/fleet/rows/stored-row.ts";
import type { Message } from "#shared/messages.ts";
import type { HelmRelease } from "#shared/source/helm/helm-release.ts";
import type { InflatedChart } from "#shared/source/kustomize/inflated-chart.ts";
import type { BuildOptions } from "#shared/source/render-options.ts";
import type { Specialisation } from "#shared/source/specialisation.ts";

/** Creates identifiers that must be unpredictable or unique: deduplication ids and lease owners. */
export interface Ids {
  unique(): string;
}

export type AttributeValue = string | number | boolean;

export type Precondition =
  | { readonly attribute: string; readonly equals: AttributeValue }
  | { readonly attribute: string; readonly lessThan: AttributeValue }
  | { readonly attribute: string; readonly absent: true };

/**
 * One conditional write. All conditions of `when` must hold, or with `any` at least one of them.
 * - `put` replaces the row; `when: "absent"` creates it, `{version}` replaces the version that was read.
 * - `update` sets, adds to (numbers, absent = 0) and removes top-level attributes of a row, and creates a missing row.
 * - `check` writes nothing, and fails the whole transaction when the condition does not hold.
 */
export type Write =
  | { readonly put: Row; readonly when?: "absent" | { readonly version: number } }
  | { readonly delete: RowKey; readonly when?: { readonly version: number } }
  | { readonly check: RowKey; readonly when: "absent" | { readonly version: number } | readonly Precondition[] }
  | RowUpdate;

export interface RowUpdate<Type extends string = string> {
  readonly update: RowKeyOf<Type>;
  readonly set?: Readonly<Record<string, unknown>>;
  readonly add?: Readonly<Record<string, number>>;
  readonly remove?: readonly string[];
  readonly when?: readonly Precondition[];
  readonly any?: true;
}

export interface Page<T> {
  readonly items: readonly T[];
  /** Present when there is more. Pass it as `after`. */
  readonly next?: string;
}

export interface RowQuery<Type extends RowType = RowType, Kept extends Newer = Newer> extends RowRange<Type> {
  /** Default: one row of a newer version fails the whole read. */
  readonly newer?: Kept;
  readonly limit?: number;
  readonly after?: string;
  readonly newestFirst?: boolean;
  /**
   * Only rows whose attribute `state` is one of these, for types that do not pack it (`packed-row.ts`). The table reads
   * the other rows, too, but does not return them. So finding a few among many takes few requests.
   */
  readonly states?: readonly string[];
}

export interface IndexQuery {
  readonly index: "due" | "state";
  readonly pk: string;
  readonly prefix?: string;
  /** Only keys up to this one. */
  readonly upTo?: string;
  readonly limit?: number;
  readonly after?: string;
}

export interface IndexEntry {
  readonly key: RowKey;
  /** The index's sort key, which may be older than the table's. */
  readonly sort: string;
}

/**
 * The one table. The key decides the type of a row. Reads of rows are strongly consistent. Reads of an index are not,
 * and return only keys. Throttles, transaction conflicts and unprocessed items are retried inside. The remaining errors
 * are `StarlingError`s with `retry: "transient"`.
 */
export interface Table {
  /** @throws StarlingError `NewerRow`, like all reads of rows. */
  get<Type extends RowType>(key: RowKeyOf<Type>): Promise<RowOf<Type> | undefined>;
  /**
   * The rows that exist, in no order. Keys may repeat.
   * @param reading.newer - default: one row of a newer version fails the whole read.
   */
  getMany<Type extends RowType, Kept extends Newer = undefined>(
    keys: readonly RowKeyOf<Type>[],
    reading?: { readonly newer?: Kept },
  ): Promise<readonly RowRead<Type, Kept>[]>;
  query<Type extends RowType, Kept extends Newer = undefined>(
    query: RowQuery<Type, Kept>,
  ): Promise<Page<RowRead<Type, Kept>>>;
  queryIndex(query: IndexQuery): Promise<Page<IndexEntry>>;
  /**
   * Writes at most 100 rows, all or none. A single put costs half as much alone. @throws ConflictError when a condition
   * does not hold; `data.failed` contains the indexes.
   * @throws StarlingError `RowTooLarge` when a row would be larger than 400 KB; `data.row` is its key.
   */
  write(writes: readonly Write[]): Promise<void>;
  /** One conditional update. Returns the updated row. @throws ConflictError when the condition does not hold. */
  update<Type extends RowType>(write: RowUpdate<Type>): Promise<RowOf<Type>>;
}

/** Adds independent rows. Nobody changes them, and adding one again adds the same row. */
export interface EventLog {
  /**
   * Adds any number of rows separately. After an error, some may have been added.
   * @throws StarlingError `RowTooLarge`, before anything is written; transient when the table is busy.
   */
  append(events: readonly Row[]): Promise<void>;
}

/** Sends events to programs outside. */
export interface EventBus {
  /**
   * Sends every event at least once. After an error, some may have been sent.
   * @throws StarlingError `SendFailed`
   */
  send(events: readonly BusEvent[]): Promise<void>;
}

/**
 * Large immutable values. Each disappears by itself a long time after it was last stored (`blob-life.ts`); storing it
 * again keeps it. All methods throw a transient StarlingError: `BlobStoreBusy`, or `BlobDenied`, which does not say
 * whether the blob exists.
 */
export interface BlobStore {
  /** Stores the blob over any existing one, which may be old or damaged. */
  overwrite(key: string, bytes: Uint8Array): Promise<void>;
  /**
   * Stores a blob again without reading it, if it was last stored before that time. Readers verify it.
   * @throws StarlingError `BlobNotFound`
   */
  renew(key: string, before: Date): Promise<void>;
  /** @throws StarlingError `BlobNotFound`; `BlobTooLarge` before the download, if a limit is given. */
  get(key: string, limits?: { readonly maxBytes: number }): Promise<Uint8Array>;
}

/** URLs with which a blob can be read for some minutes, without credentials. */
export interface BlobLinks {
  link(key: string): Promise<string>;
}

/** Places for bytes that somebody else uploads. */
export interface UploadPlaces {
  /** A URL that takes exactly so many bytes, once, within some minutes. */
  place(key: string, bytes: number): Promise<string>;
  /** The size of what was uploaded; undefined if nothing was. */
  size(key: string): Promise<number | undefined>;
}

/** Sends messages in batches, each with a unique deduplication id. The order within a queue is not guaranteed. */
export interface MessageSender {
  send(messages: readonly Message[]): Promise<void>;
}

/** A message that stays in its queue. */
export interface UndoneMessage {
  readonly receiptHandle: string;
  /** How often it was received, including this time. */
  readonly receives: number;
  /** When the message returns. Default: it was not processed, and returns soon, later with each receive. */
  readonly afterSeconds?: number;
}

/** Decides when messages return. Otherwise, the queue hides them for its whole visibility timeout. */
export interface MessageReturns {
  giveBack(messages: readonly UndoneMessage[]): Promise<void>;
}

/** Reads secrets by name. Values never appear in errors, logs, rows or events. */
export interface SecretReader {
  /**
   *
   * @param options.fresh - the value that was read before was refused, so that it is read again.
   * @throws StarlingError `SecretNotFound`, `SecretDenied`, `SecretKeyDenied`, `SecretsUnavailable`
   */
  read(name: string, options?: { readonly fresh?: boolean }): Promise<string>;
}

export type SourceCredentials = HttpCredentials | SshKey;

export type HttpCredentials = {
  /** They go to addresses below it only. */
  readonly prefix?: string;
  readonly tls?: TlsIdentity;
} & (
  | {
      readonly kind: "basic";
      readonly username: string;
      readonly password: string;
      /** Other hosts that may get them: they give the tokens for a registry. */
      readonly tokenHosts?: readonly string[];
    }
  | { readonly kind: "bearer"; readonly token: string }
  /** The certificate alone says who asks. */
  | { readonly kind: "tls" }
);

/** For the host of the credentials only, in PEM. */
export interface TlsIdentity {
  /** With `privateKey`: the certificate of the client, and those between it and its authority. */
  readonly certificate?: string;
  readonly privateKey?: string;
  /** Authorities that are trusted besides the public ones. */
  readonly ca?: string;
}

export interface SshKey {
  readonly kind: "ssh";
  /** As `ssh-keygen` writes it, or PEM. */
  readonly privateKey: string;
  readonly passphrase?: string;
  /** Lines in the form of known_hosts, with the keys that the server may have. */
  readonly knownHosts: string;
}

export interface GitRef {
  /** The full name: `refs/heads/main`, `refs/tags/v1`, `HEAD`. */
  readonly ref: string;
  readonly oid: string;
  /** The commit to which an annotated tag points. */
  readonly peeled?: string;
  /** For `HEAD`: the branch to which it points. */
  readonly target?: string;
}

export interface GitCommit {
  readonly oid: string;
  readonly subject: string;
  readonly authorName: string;
  readonly authorEmail: string;
  readonly committedAt: string;
}

export interface TreeFile {
  /** Relative to the repository, separated by `/`. */
  readonly path: string;
  readonly executable: boolean;
  readonly content: Uint8Array;
}

export interface GitTree {
  readonly commit: GitCommit;
  /** The objects themselves, for their signatures. */
  readonly raw: {
    readonly commit: Uint8Array;
    /** The tag that was asked for; absent when a commit was. */
    readonly tag?: Uint8Array;
  };
  readonly files: readonly TreeFile[];
}

export interface GitRepository {
  readonly url: string;
  readonly credentials?: SourceCredentials;
  /** The time in which the caller needs an answer. Default: the adapter's limit of one operation. */
  readonly timeLeftMs?: () => number;
}

/** A remote repository over HTTPS. Errors are `StarlingError`s: `GitNotFound`, `GitAuthenticationFailed`,
 * `GitRefNotFound`, `EmptyGitRepository`, `GitTooLarge`, `GitPathRefused`, `GitOperationFailed`. */
export interface GitRemote {
  /** The refs whose names start with one of `prefixes`, in one listing. */
  listRefs(repository: GitRepository, prefixes: readonly string[]): Promise<readonly GitRef[]>;
  /**
   * The commit `oid` and the files below `paths` (`.` means all), without those that `ignore` and the files `.sourceignore`
   * leave out. Without paths, only the commit.
   */
  fetchTree(
    repository: GitRepository,
    commit: {
      readonly oid: string;
      readonly ref?: string;
      readonly paths: readonly string[];
      readonly ignore?: string;
    },
  ): Promise<GitTree>;
}

export interface RemoteQuestion {
  readonly url: string;
  /** `GET` when absent. */
  readonly method?: "GET" | "HEAD" | "POST";
  /** Names in lower case. They go to the origin of `url` only; after a redirect elsewhere, just `accept` is sent. */
  readonly headers?: Readonly<Record<string, string>>;
  /** They go to the origin of `url` only, and there to addresses below their prefix, also after a redirect. */
  readonly credentials?: SourceCredentials | undefined;
  readonly body?: Uint8Array;
  /** Largest body of the answer. */
  readonly maxBytes: number;
  /** The time in which the caller needs an answer. Default: the adapter's own limit. */
  readonly timeLeftMs?: () => number;
  /** For an answer that counts only at the URL itself. Default: redirects are followed. */
  readonly redirects?: "refused";
}

export interface RemoteAnswer {
  /** The URL that answered, after redirects. */
  readonly url: string;
  /** Any status that is no redirect: what it means is the caller's to say. */
  readonly status: number;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
}

/** A bucket of S3 that a Source names. */
export interface BucketPlace {
  readonly bucket: string;
  /** Default: the region of the installation. */
  readonly region?: string | undefined;
}

export interface BucketObject {
  readonly key: string;
  /** Without quotes. */
  readonly etag: string;
  /** In bytes. */
  readonly size: number;
  readonly modifiedAt: string | undefined;
}

export interface ObjectPage {
  readonly objects: readonly BucketObject[];
  /** For the next page; absent on the last. */
  readonly next?: string;
}

/**
 * Objects of the buckets that Sources name. Errors are `StarlingError`s: `BucketNotFound`, `BucketDenied`, `BucketElsewhere`,
 * `UpstreamUnavailable`.
 */
export interface BucketReader {
  /** Up to 1,000 objects whose keys begin with the prefix, in the order of their keys. */
  list(
    place: BucketPlace,
    page: { readonly prefix: string; readonly from?: string | undefined; readonly timeLeftMs: () => number },
  ): Promise<ObjectPage>;
  /** The bytes of exactly the listed object; undefined if it is gone, or another one by now. */
  get(place: BucketPlace, object: BucketObject, timeLeftMs: () => number): Promise<Uint8Array | undefined>;
}

/**
 * HTTP to hosts that Sources name, except git. Errors are `StarlingError`s: `UpstreamUnavailable`, `UpstreamTooLarge`,
 * `AddressRefused`.
 */
export interface HttpRemote {
  ask(question: RemoteQuestion): Promise<RemoteAnswer>;
}

export interface RenderInput {
  /** The files of the artifact. */
  readonly files: readonly TreeFile[];
  /** The folder to render inside the artifact. */
  readonly path: string;
  /** Renders a chart that a kustomization inflates, as YAML; absent: charts are refused. */
  readonly inflate?: (chart: InflatedChart) => Promise<string>;
}

/**
 * Runs the `kustomize` that is built into kubectl, and returns its YAML output. @throws StarlingError `KustomizeFailed`
 */
export interface KustomizeRunner {
  build(input: RenderInput): Promise<string>;
}

export interface HelmInput {
  /** The chart's files, relative to the chart. */
  readonly chart: ReadonlyMap<string, Uint8Array>;
  /** Files that replace the chart's in the second rendering. */
  readonly instead: ReadonlyMap<string, Uint8Array>;
  /** YAML documents of values. A later one overrides an earlier one, and all override the chart's own. */
  readonly values: readonly string[];
  readonly release: HelmRelease;
  /** `apart`: the chart's templates depend on install or upgrade, so that the upgrade is rendered, too. */
  readonly upgrade: "alike" | "apart";
}

/** Two renderings of the same input, with different random values and clocks. */
export type HelmOutputs = readonly [first: string, second: string];

export type HelmAnswer =
  | { readonly outputs: HelmOutputs; readonly upgrade?: HelmOutputs }
  | { readonly refusal: string };

/**
 * Renders a chart with `helm template`, twice, and twice again for an upgrade that differs. A refusal is Helm's message
 * about the chart or its values.
 * @throws StarlingError `HelmFailed` when Helm did not end by itself.
 */
export interface HelmRunner {
  template(input: HelmInput): Promise<HelmAnswer>;
}

/** Transfers bytes with presigned URLs. @throws StarlingError `TransferFailed`, which never contains the URL. */
export interface Transfer {
  download(url: string): Promise<Uint8Array>;
  upload(url: string, bytes: Uint8Array): Promise<void>;
}

export interface BuildRequest {
  readonly artifactDigest: string;
  readonly path: string;
  readonly render?: BuildOptions;
  readonly specialise?: Specialisation;
  /** Unique for this try. */
  readonly attempt: string;
}

export interface Built {
  /** The digest of the bytes, already checked. */
  readonly digest: string;
  readonly objects: number;
  /** Sentences about everything that was left out, with the reason. */
  readonly leftOut?: readonly string[];
  readonly bytes: Uint8Array;
}

/**
 * Renders an artifact in isolation, without access to anything else.
 * @throws StarlingError for a problem of the input (`permanent`), or for one that may pass; `data.strike` when the
 * input may be at fault nevertheless, so that it is not retried forever.
 */
export interface Builder {
  build(request: BuildRequest): Promise<Built>;
}

/**
 * AWS' reports about an installation's own parts. It reads neither the value of a secret nor a message. Errors are
 * the SDK's own.
 */
export interface AccountReader {
  /** Whether the secret has a value. */
  hasValue(secretArn: string): Promise<boolean>;
  /** The approximate number of waiting messages in a queue, and the queue's ARN. */
  queueLength(queueUrl: string): Promise<{ readonly arn: string; readonly messages: number }>;
  /** The account's limit of concurrent invocations of all functions in this region. */
  concurrency(): Promise<number>;
}

/**
 * Counters and durations, written as CloudWatch embedded metrics. Dimensions are few and bounded, and never a cluster.
 */
export interface Metrics {
  count(name: string, value: number, dimensions?: Readonly<Record<string, string>>): void;
  seconds(name: string, value: number): void;
}

/** One line of a function's log that is JSON. */
export interface LogLine {
  /** Unique for the line. */
  readonly id: string;
  readonly at: string;
  /** The function's name, which is the name of its folder. */
  readonly function: string;
  readonly fields: Readonly<Record<string, unknown>>;
}

/** At least one of these must match, with all of its fields. */
export type LogFilter = readonly Readonly<Record<string, string>>[];

export interface LogQuery {
  /** `audit` means the log of `api`, which has a line for every change; `functions` means all other logs. */
  readonly of: "audit" | "functions";
  readonly filter: LogFilter;
  readonly since: Date;
  /** The most lines. */
  readonly limit: number;
}

/** Reads the functions' logs, which appear after some seconds. @throws StarlingError `LogsUnavailable` */
export interface LogReader {
  /** Oldest first. `isMore` says that lines follow the last one. */
  read(query: LogQuery): Promise<{ readonly lines: readonly LogLine[]; readonly isMore: boolean }>;
}

/** Reads CloudWatch alarms of the installation's account and region. */
export interface AlarmReader {
  /**
   * The state of the alarm now, and its changes since then.
   * @throws StarlingError `AlarmNotFound`, `AlarmDenied`, `AlarmsUnavailable`
   */
  read(arn: string, since: string, now: Date): Promise<AlarmReading>;
}

export interface Log {
  info(message: string, fields?: Readonly<Record<string, unknown>>): void;
  warn(message: string, fields?: Readonly<Record<string, unknown>>): void;
  error(message: string, fields?: Readonly<Record<string, unknown>>): void;
}
