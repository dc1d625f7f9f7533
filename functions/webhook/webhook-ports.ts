import type { Clock } from "#shared/base/clock.ts";
import type { HttpRemote, Log, MessageSender, SecretReader, Table } from "#shared/ports.ts";

export interface WebhookPorts {
  readonly table: Table;
  readonly sender: MessageSender;
  readonly secrets: SecretReader;
  /** Asks the issuers of tokens for their keys. */
  readonly http: HttpRemote;
  readonly clock: Clock;
  readonly log: Log;
  /** Name of the secret that holds a JSON list of one or two texts, for all hosts or for each host. */
  readonly secretName: string;
}
