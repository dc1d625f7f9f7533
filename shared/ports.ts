/**
 * Every side effect of Starling as roles, but for time (`Clock`) and clusters (`ClusterClient`), which rooms below know.
 * Adapters in `shared/adapters` play them; nothing else does I/O.
 */

import type { Row, RowKey, RowKeyOf, RowRange } from "#shared/fleet/rows/row.ts";
import type { Newer, RowOf, RowRead, RowType } from "#shared/fleet/rows/stored-row.ts";
import type { Message } from "#shared/messages.ts";
import type { HelmRelease } from "#shared/source/helm/helm-release.ts";
import type { InflatedChart } from "#shared/source/kustomize/inflated-chart.ts";
import type { BuildOptions } from "#shared/source/render-options.ts";
import type { Specialisation } from "#shared/source/specialisation.ts";

/** Sources of identifiers that must be unpredictable or unique: de-duplication ids, lease owners. */
export interface Ids {
  unique(): string;
}

export type AttributeValue = string | number | boolean;

export type Precondition =
  | { readonly attribute: string; readonly equals: AttributeValue }
  | { readonly attribute: string; readonly lessThan: AttributeValue }
  | { readonly attribute: string; readonly absent: true };

/**
 * One conditional write. All conditions of `when` must hold, or, where `any` is true, at least one of them.
 * - `put` replaces the row; `when: "absent"` creates it, `{version}` replaces the one that was read.
 * - `update` sets, adds to (numbers, absent = 0) and removes top-level attributes of a row, creating it when absent.
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
  /** Present when there is more: pass it as `after`. */
  readonly next?: string;
}

export interface RowQuery<Type extends RowType = RowType, Kept extends Newer = Newer> extends RowRange<Type> {
  /** Without it one row of a newer version fails the whole reading. */
  readonly newer?: Kept;
  readonly limit?: number;
  readonly after?: string;
  readonly newestFirst?: boolean;
  /**
   * Only rows whose attribute `state` is one of these, for types that keep it bare (`packed-row.ts`). The table reads the others, too,
   * as many as a page of it holds, and gives them not: a few among many take few requests.
   */
  readonly states?: readonly string[];
}

export interface IndexQuery {
  readonly index: "due" | "state";
  readonly pk: string;
  readonly prefix?: string;
  /** Only keys at or before this one. */
  readonly upTo?: string;
  readonly limit?: number;
  readonly after?: string;
}

export interface IndexEntry {
  readonly key: RowKey;
  /** The index's sort key as it was read; may be behind the table. */
  readonly sort: string;
}

/**
 * The one table. The key says what a row is. Reads of rows are strongly consistent; reads of an index are not, and give keys only.
 * Throttles, transaction conflicts and unprocessed items are retried inside; what is left is a `StarlingError`
 * with `retry: "transient"`.
 */
export interface Table {
  /** @throws StarlingError `NewerRow`, as all that read rows. */
  get<Type extends RowType>(key: RowKeyOf<Type>): Promise<RowOf<Type> | undefined>;
  /**
   * Rows that exist, in no order; keys may repeat.
   * @param reading.newer - without it one row of a newer version fails the whole reading.
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
   * All or nothing, at most 100; a single put costs half of what it does among others. @throws ConflictError when a condition does not hold; `data.failed` has the indexes.
   * @throws StarlingError `RowTooLarge` when a row would be larger than 400 KB; `data.row` is its key.
   */
  write(writes: readonly Write[]): Promise<void>;
  /** One conditional update; the row after it. @throws ConflictError when the condition does not hold. */
  update<Type extends RowType>(write: RowUpdate<Type>): Promise<RowOf<Type>>;
}

/** Where rows are added that stand by themselves: nobody changes them, and whoever adds one again adds the same. */
export interface EventLog {
  /**
   * Any number, each by itself: where it throws, some may be there.
   * @throws StarlingError `RowTooLarge`, before anything is written; transient when the table is busy.
   */
  append(events: readonly Row[]): Promise<void>;
}

/**
 * Large immutable values. Each goes by itself when it was stored long ago (`blob-life.ts`): to want one is to store it.
 * All throw a transient StarlingError: `BlobStoreBusy`, or `BlobDenied`, which says nothing of whether the blob is there.
 */
export interface BlobStore {
  /** Stores over whatever is there, which may be old, or was changed. */
  overwrite(key: string, bytes: Uint8Array): Promise<void>;
  /**
   * Stores a blob once more as it is, unread, where it was stored last before that time. Who reads it verifies it.
   * @throws StarlingError `BlobNotFound`
   */
  renew(key: string, before: Date): Promise<void>;
  /** @throws StarlingError `BlobNotFound`; `BlobTooLarge` before it is read, where a limit is given. */
  get(key: string, limits?: { readonly maxBytes: number }): Promise<Uint8Array>;
}

/** URLs by which whoever has one may read a blob as it is, for minutes, without credentials. */
export interface BlobLinks {
  link(key: string): Promise<string>;
}

/** Sends messages, in batches, with a de-duplication id unique per send. Order within one queue is not promised. */
export interface MessageSender {
  send(messages: readonly Message[]): Promise<void>;
}

/** A message that stays in its queue. */
export interface UndoneMessage {
  readonly receiptHandle: string;
  /** How often it was received, this time included. */
  readonly receives: number;
  /** When it comes back; left out: it was not worked off, and comes soon, and ever later. */
  readonly afterSeconds?: number;
}

/** Says when messages come back; else their queue hides them for all of its visibility timeout. */
export interface MessageReturns {
  giveBack(messages: readonly UndoneMessage[]): Promise<void>;
}

/** Reads secrets by name. Values never appear in errors, logs, rows or events. */
export interface SecretReader {
  /**
   * @param options.fresh - the value that was read before was refused: ask again.
   * @throws StarlingError `SecretNotFound`, `SecretDenied`, `SecretKeyDenied`, `SecretsUnavailable`
   */
  read(name: string, options?: { readonly fresh?: boolean }): Promise<string>;
}

export type GitCredentials =
  | { readonly kind: "basic"; readonly username: string; readonly password: string }
  | { readonly kind: "bearer"; readonly token: string };

export interface GitRef {
  /** Full name: `refs/heads/main`, `refs/tags/v1`, `HEAD`. */
  readonly ref: string;
  readonly oid: string;
  /** The commit an annotated tag points to. */
  readonly peeled?: string;
  /** For `HEAD`: the branch it stands for. */
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
  /** Relative to the repository, `/` separated. */
  readonly path: string;
  readonly executable: boolean;
  readonly content: Uint8Array;
}

export interface GitTree {
  readonly commit: GitCommit;
  readonly files: readonly TreeFile[];
}

export interface GitRepository {
  readonly url: string;
  readonly credentials?: GitCredentials;
  /** Until whoever asks has to have an answer; left out, what the adapter takes for one operation. */
  readonly timeLeftMs?: () => number;
}

/** A remote repository over HTTPS. Errors are `StarlingError`s: `GitNotFound`, `GitAuthenticationFailed`,
 * `GitRefNotFound`, `EmptyGitRepository`, `GitTooLarge`, `GitPathRefused`, `GitOperationFailed`. */
export interface GitRemote {
  /** The refs whose names start with one of `prefixes`, in one listing. */
  listRefs(repository: GitRepository, prefixes: readonly string[]): Promise<readonly GitRef[]>;
  /**
   * The commit `oid` and the files below `paths` (`.` = all), symbolic links and submodules left out. Without paths, the
   * commit alone.
   */
  fetchTree(
    repository: GitRepository,
    commit: { readonly oid: string; readonly ref?: string; readonly paths: readonly string[] },
  ): Promise<GitTree>;
}

export interface RenderInput {
  /** Files of the artifact. */
  readonly files: readonly TreeFile[];
  /** The folder to render, inside the artifact. */
  readonly path: string;
  /** The objects of a chart that a kustomization inflates, as YAML; absent: none may. */
  readonly inflate?: (chart: InflatedChart) => Promise<string>;
}

/** Runs the `kustomize` built into kubectl. The answer is its YAML output. @throws StarlingError `KustomizeFailed` */
export interface KustomizeRunner {
  build(input: RenderInput): Promise<string>;
}

export interface HelmInput {
  /** The chart's files, relative to it. */
  readonly chart: ReadonlyMap<string, Uint8Array>;
  /** For the second rendering: files that stand in the place of the chart's. */
  readonly instead: ReadonlyMap<string, Uint8Array>;
  /** Documents of values; a later one goes over an earlier one, and all over the chart's own. */
  readonly values: readonly string[];
  readonly release: HelmRelease;
  /** `apart`: the chart asks whether it is an install or an upgrade, and is rendered for the latter, too. */
  readonly upgrade: "alike" | "apart";
}

/** Of one and the same, with other chance and another clock. */
export type HelmOutputs = readonly [first: string, second: string];

export type HelmAnswer =
  | { readonly outputs: HelmOutputs; readonly upgrade?: HelmOutputs }
  | { readonly refusal: string };

/**
 * Renders a chart as `helm template` does, twice, and twice more for an upgrade where that is asked for and something else.
 * A refusal is what Helm said of the chart or its values.
 * @throws StarlingError `HelmFailed` when it came to no end of its own.
 */
export interface HelmRunner {
  template(input: HelmInput): Promise<HelmAnswer>;
}

/** Bytes from and to presigned URLs. @throws StarlingError `TransferFailed`, never naming the URL. */
export interface Transfer {
  download(url: string): Promise<Uint8Array>;
  upload(url: string, bytes: Uint8Array): Promise<void>;
}

export interface BuildRequest {
  readonly artifactDigest: string;
  readonly path: string;
  readonly render?: BuildOptions;
  readonly specialise?: Specialisation;
  /** Unique to this try. */
  readonly attempt: string;
}

export interface Built {
  /** Of the bytes, which were checked against it. */
  readonly digest: string;
  readonly objects: number;
  /** What was left out of it, and why, in words. */
  readonly leftOut?: readonly string[];
  readonly bytes: Uint8Array;
}

/**
 * Renders an artifact where nothing else is, and where nothing can be reached from.
 * @throws StarlingError of what is wrong with the input (`permanent`), or of what may pass; `data.strike` when it may be
 *   the input's fault all the same, so that it is not tried for ever.
 */
export interface Builder {
  build(request: BuildRequest): Promise<Built>;
}

/** What AWS says of an installation's own parts: neither the value of a secret nor a message. Errors are the SDK's own. */
export interface AccountReader {
  /** Whether somebody has written a value to the secret. */
  hasValue(secretArn: string): Promise<boolean>;
  /** About how many messages wait in a queue, and what it is called. */
  queueLength(queueUrl: string): Promise<{ readonly arn: string; readonly messages: number }>;
  /** How many invocations the account may have at once, of all its functions in this region. */
  concurrency(): Promise<number>;
}

/** Counters and durations, written as CloudWatch embedded metrics. Dimensions are few and bounded: never a cluster. */
export interface Metrics {
  count(name: string, value: number, dimensions?: Readonly<Record<string, string>>): void;
  seconds(name: string, value: number): void;
}

/** One line of a function's log, of those that are JSON. */
export interface LogLine {
  /** Unique to the line. */
  readonly id: string;
  readonly at: string;
  /** Name of the function, as its folder. */
  readonly function: string;
  readonly fields: Readonly<Record<string, unknown>>;
}

/** One of these has to hold, each of which says what all of its fields are. */
export type LogFilter = readonly Readonly<Record<string, string>>[];

export interface LogQuery {
  /** `audit`: the log of `api`, which has a line for every change. `functions`: those of all others. */
  readonly of: "audit" | "functions";
  readonly filter: LogFilter;
  readonly since: Date;
  /** Lines at most. */
  readonly limit: number;
}

/** Reads what the functions have logged; it is there some seconds after it was. @throws StarlingError `LogsUnavailable` */
export interface LogReader {
  /** The oldest first. `isMore`: there are others after the last of these. */
  read(query: LogQuery): Promise<{ readonly lines: readonly LogLine[]; readonly isMore: boolean }>;
}

export interface Log {
  info(message: string, fields?: Readonly<Record<string, unknown>>): void;
  warn(message: string, fields?: Readonly<Record<string, unknown>>): void;
  error(message: string, fields?: Readonly<Record<string, unknown>>): void;
}
