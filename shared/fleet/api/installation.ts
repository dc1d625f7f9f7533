import type { RowKey } from "#shared/fleet/rows/row.ts";

/** `GET /v1/installation`: how the installation itself is. What could not be found out says why, and hides nothing else. */
export interface Installation {
  readonly kind: "Installation";
  /** What clusters are told of whose they are. */
  readonly name: string;
  readonly version: string;
  /** When this was asked, by the installation's clock. */
  readonly at: string;
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
  /** Nobody has written one: every sender is refused. */
  readonly state: "set" | "empty";
}

export interface Tick {
  /** Name of the function. */
  readonly function: string;
  /** End of the last one that got through; absent: there never was one. */
  readonly lastAt?: string;
}

/** What is due and was claimed by no tick. */
export interface DueWork {
  /** At least so many rows. */
  readonly rows: number;
  readonly oldest?: { readonly row: RowKey; readonly since: string };
}

export interface DeadLetters {
  /** Whose they are: the function that did not get them done. */
  readonly of: string;
  readonly queueUrl: string;
  readonly queueArn: string;
  readonly messages: number;
}

/** Invocations of Lambda that may run at once. */
export interface AccountConcurrency {
  /** In the account. */
  readonly account: number;
  /** What the installation was deployed for (context concurrency). */
  readonly deployedFor: number;
  /** What a fleet of `clusters` (context clusters) wants. */
  readonly desired: number;
  readonly clusters: number;
}
