import type { RowKey } from "#shared/fleet/rows/row.ts";

/**
 * `GET /v1/installation`: the state of the installation itself. A part that cannot be read has its reason, and hides no
 * other part.
 */
export interface Installation {
  readonly kind: "Installation";
  /** The name by which clusters know their installation. */
  readonly name: string;
  readonly version: string;
  /** Time of the answer, by the installation's clock. */
  readonly at: string;
  /** The zone from which Sources are read; absent where there are no networks, and in answers of older stacks. */
  readonly resolveZone?: string;
  readonly webhookSecret: Fact<WebhookSecret>;
  readonly tick: Fact<Tick>;
  readonly due: Fact<DueWork>;
  readonly deadLetters: Fact<readonly DeadLetters[]>;
  readonly concurrency: Fact<AccountConcurrency>;
}

export type Fact<T> =
  | { readonly known: true; readonly value: T }
  | { readonly known: false; readonly code: string; readonly message: string };

export interface WebhookSecret {
  readonly arn: string;
  /** The secret has no value yet: every sender is refused. */
  readonly state: "set" | "empty";
}

export interface Tick {
  /** Name of the function. */
  readonly function: string;
  /** End of the last successful tick; absent when there was none. */
  readonly lastAt?: string;
}

/** Rows that are due and that no tick has claimed. */
export interface DueWork {
  /** At least this many rows. */
  readonly rows: number;
  readonly oldest?: { readonly row: RowKey; readonly since: string };
}

export interface DeadLetters {
  /** The function that failed on the messages. */
  readonly of: string;
  readonly queueUrl: string;
  readonly queueArn: string;
  readonly messages: number;
  /** Why they could not be counted. A zone in another account lets its queues be counted by a policy of its own. */
  readonly uncounted?: string;
}

/** Simultaneous invocations of Lambda. */
export interface AccountConcurrency {
  /** Limit of the account. */
  readonly account: number;
  /** The number that the installation was deployed for (context concurrency). */
  readonly deployedFor: number;
  /** The number that a fleet of `clusters` (context clusters) needs. */
  readonly desired: number;
  readonly clusters: number;
}
