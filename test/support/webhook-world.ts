import { webhookHandler } from "#functions/webhook/webhook-handler.ts";
import { defined } from "#shared/base/defined.ts";
import { StarlingError } from "#shared/base/errors.ts";
import { isTokenProvider, type ProviderName, type ReceiverSpec, receiverSpec } from "#shared/fleet/kinds/receiver.ts";
import { addressOf, type SourceSpec, sourceSpec } from "#shared/fleet/kinds/source.ts";
import { receiverId } from "#shared/fleet/receiver-id.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import type { DirectoryRow, Operations, ReceiverRow, SourceRow } from "#shared/fleet/rows/object-rows.ts";
import { rowSchema } from "#shared/fleet/rows/row.ts";
import type { HttpRemote, Log, Table } from "#shared/ports.ts";
import type { GitReference } from "#shared/source/git-ref-schema.ts";
import { normaliseGitUrl } from "#shared/source/git-url.ts";
import { MemorySender } from "#test/support/memory-sender.ts";
import { MemoryTable } from "#test/support/memory-table.ts";
import { noHttp } from "#test/support/no-http.ts";

export interface GitSource {
  readonly url?: string;
  readonly ref?: GitReference;
  readonly operations?: Operations;
}

export interface Delivered {
  /** The last segment of the URL. */
  readonly host: string;
  /** What follows the `?` of the URL. */
  readonly query?: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  readonly encoding?: "base64";
}

export interface AddedReceiver extends Omit<Partial<ReceiverSpec>, "provider"> {
  readonly provider: ProviderName;
  readonly namespace?: string;
  readonly operations?: Operations;
}

/** The webhook over rows in memory, in the namespace `shop`. */
export class WebhookWorld {
  readonly table: Table;
  readonly sender = new MemorySender();
  /** The value of the secret; an empty text for none. */
  secret = '["s3cret"]';
  /** The values of the secrets of Receivers, by name. */
  readonly tokens: Record<string, string> = { one: '{"token":"s3cret"}' };
  /** Asks the issuers of tokens. */
  http: HttpRemote = noHttp;
  now = new Date("2026-01-01T01:00:00Z");
  /** The log as JSON. */
  readonly lines: string[] = [];
  readonly #handler;

  constructor(table: Table = new MemoryTable()) {
    this.table = table;
    const write = (message: string, fields?: unknown) => this.lines.push(JSON.stringify({ message, fields }));
    const log: Log = { info: write, warn: write, error: write };
    this.#handler = webhookHandler({
      table: this.table,
      sender: this.sender,
      http: { ask: (question) => this.http.ask(question) },
      clock: { now: () => this.now },
      secrets: {
        read: async (name) => {
          const text = name === "starling/webhook" ? this.secret : (this.tokens[name] ?? "");
          if (text === "") throw new StarlingError("no secret", { code: "SecretNotFound", retry: "transient" });
          return text;
        },
      },
      log,
      secretName: "starling/webhook",
    });
  }

  async addSource(name: string, { url = "https://github.com/acme/fleet", ref, operations }: GitSource = {}) {
    await this.addSourceOf(name, sourceSpec.parse({ git: { url, ...defined({ ref }) } }), operations);
  }

  async addSourceOf(name: string, spec: SourceSpec, operations: Operations = {}): Promise<void> {
    const source = { namespace: "shop", name };
    const row: SourceRow = {
      ...keys.object("shop", "Source", name),
      type: "Source",
      schema: rowSchema,
      version: 1,
      ...source,
      uid: name,
      labels: {},
      annotations: {},
      generation: 1,
      createdAt: "2026-01-01T00:00:00.000Z",
      spec,
      operations,
      status: { conditions: [] },
    };
    const entry: DirectoryRow = {
      ...keys.repository(normaliseGitUrl(addressOf(spec)) ?? "", source),
      type: "Directory",
      schema: rowSchema,
      version: 1,
    };
    await this.table.write([{ put: row }, { put: entry }]);
  }

  /** Gives a Source of `shop` these labels. */
  async label(name: string, labels: Readonly<Record<string, string>>): Promise<void> {
    const row = await this.table.get(keys.object("shop", "Source", name));
    if (row === undefined) throw new Error(`no Source ${name}`);
    const labelled: SourceRow = { ...row, labels };
    await this.table.write([{ put: labelled }]);
  }

  /** @returns the last segments of its URL: give them as the host of a delivery. */
  async addReceiver(name: string, { operations = {}, namespace = "shop", ...spec }: AddedReceiver): Promise<string> {
    const receiver = { namespace, name };
    const row: ReceiverRow = {
      ...keys.object(namespace, "Receiver", name),
      ...receiver,
      type: "Receiver",
      schema: rowSchema,
      version: 1,
      uid: `${namespace}-${name}`,
      labels: {},
      annotations: {},
      generation: 1,
      createdAt: "2026-01-01T00:00:00.000Z",
      spec: receiverSpec.parse({
        sources: ["main"],
        ...(isTokenProvider(spec.provider) ? {} : { secrets: ["one"] }),
        ...spec,
      }),
      operations,
      status: { conditions: [] },
    };
    const id = receiverId(row);
    const entry: DirectoryRow = {
      ...keys.receiverEntry(id, receiver),
      type: "Directory",
      schema: rowSchema,
      version: 1,
    };
    await this.table.write([{ put: row }, { put: entry }]);
    return `r/${id}`;
  }

  async deliver({ host, headers, body, encoding, query = "" }: Delivered) {
    const answer = await this.handle({
      version: "2.0",
      rawPath: `/hook/${host}`,
      rawQueryString: query,
      headers,
      body: encoding === "base64" ? Buffer.from(body).toString("base64") : body,
      isBase64Encoded: encoding === "base64",
    });
    return { status: answer.statusCode, body: answer.body, woken: this.sender.take() };
  }

  /** Passes any event to the function. */
  handle(event: unknown) {
    return this.#handler(event, {});
  }
}
