import { accessKeyIdOf } from "#local/aws/iam/sessions.ts";
import type { AwsCall } from "#local/aws/wire/aws-call.ts";
import type { HttpReply } from "#local/aws/wire/emulator-client.ts";
import type { Machine } from "#local/machine/machine.ts";
import { rowTypeOf } from "#shared/fleet/rows/keys.ts";
import type { RowKey } from "#shared/fleet/rows/row.ts";

export interface LedgerLine {
  readonly calls: number;
  readonly writeUnits?: number;
  /** The units among them that were written to indexes. */
  readonly indexUnits?: number;
}

interface Sum {
  calls: number;
  writeUnits: number;
  indexUnits: number;
}

/**
 * Records the AWS calls of each function and the rows, queue or folder of each call, to explain the calls and units of
 * a run.
 */
export class AwsLedger {
  readonly #machine: Machine;
  readonly #lines = new Map<string, Sum>();

  constructor(machine: Machine) {
    this.#machine = machine;
    machine.proxy.intercept({
      after: (call, reply) => this.#count(call, reply),
      wrote: (call, { written, writtenToIndexes }) => {
        const line = this.#line(call);
        line.writeUnits += written;
        line.indexUnits += writtenToIndexes;
      },
    });
  }

  /** The calls and units divided by a number, sorted by units and then by calls. */
  read(many: number): Readonly<Record<string, LedgerLine>> {
    const each = (count: number) => Math.round((count / many) * 100) / 100;
    const lines = [...this.#lines].filter(([, { calls }]) => each(calls) > 0);
    lines.sort(([, a], [, b]) => b.writeUnits - a.writeUnits || b.calls - a.calls);
    return Object.fromEntries(
      lines.map(([what, { calls, writeUnits, indexUnits }]) => [
        what,
        {
          calls: each(calls),
          ...(writeUnits > 0 ? { writeUnits: each(writeUnits) } : {}),
          ...(indexUnits > 0 ? { indexUnits: each(indexUnits) } : {}),
        },
      ]),
    );
  }

  #count(call: AwsCall, { status, body }: HttpReply): void {
    const isEmpty = call.operation === "ReceiveMessage" && status === 200 && !body.includes('"Messages"');
    if (!isEmpty) this.#line(call).calls++;
  }

  #line(call: AwsCall): Sum {
    const what = `${this.#caller(call)} ${call.service}:${call.operation} ${aboutOf(call)}`.trim();
    const line = this.#lines.get(what) ?? { calls: 0, writeUnits: 0, indexUnits: 0 };
    this.#lines.set(what, line);
    return line;
  }

  /** The folder of a function; `local` are event sources, which take messages from a queue and delete them. */
  #caller(call: AwsCall): string {
    const accessKey = this.#machine.principals.find(accessKeyIdOf(call) ?? "");
    return accessKey?.principalArn.split("/").at(-1) ?? "anybody";
  }
}

function aboutOf({ service, operation, request }: AwsCall): string {
  if (service === "s3") return String(request.key).split("/")[0] ?? "";
  if (service === "sqs") return queueOf(String(request.QueueUrl));
  if (service !== "dynamodb") return "";
  switch (operation) {
    case "TransactWriteItems":
      return kindsOf((request.TransactItems as readonly Readonly<Record<string, Item>>[]).flatMap(actionsIn));
    case "BatchGetItem":
      return kindsOf(
        Object.values(request.RequestItems as Readonly<Record<string, { readonly Keys: readonly Attributes[] }>>)
          .flatMap(({ Keys }) => Keys)
          .map(typeOf),
      );
    case "BatchWriteItem":
      return kindsOf(
        Object.values(request.RequestItems as Readonly<Record<string, readonly { readonly PutRequest?: Item }[]>>)
          .flat()
          .map(({ PutRequest }) => typeOf(PutRequest?.Item)),
      );
    case "Query":
      return String(request.IndexName ?? "");
    default:
      return typeOf((request.Item ?? request.Key) as Attributes | undefined);
  }
}

interface Item {
  readonly Item?: Attributes;
  readonly Key?: Attributes;
}

type Attributes = Readonly<Record<string, { readonly S?: string } | undefined>>;

function actionsIn(action: Readonly<Record<string, Item>>): readonly string[] {
  return Object.entries(action).map(([kind, { Item, Key }]) => `${kind} ${typeOf(Item ?? Key)}`);
}

/** Each kind once, because pages of one transaction differ in their number. */
function kindsOf(kinds: readonly string[]): string {
  return [...new Set(kinds)].sort().join(", ");
}

function typeOf(item: Attributes | undefined): string {
  const key: RowKey = { pk: item?.pk?.S ?? "", sk: item?.sk?.S ?? "" };
  return rowTypeOf(key) ?? "?";
}

/** The queue in a URL that ends with `<stack>-To<Queue><hash>`. */
function queueOf(url: string): string {
  return url.split("/").at(-1) ?? url;
}
