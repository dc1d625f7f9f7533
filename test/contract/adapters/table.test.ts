import { randomUUID } from "node:crypto";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { createTable } from "#local/aws/services/create-resources.ts";
import { type DynamoFaults, quiet } from "#local/aws/wire/fault-options.ts";
import { only } from "#local/machine/deployment.ts";
import { readPlan } from "#local/template/read-plan.ts";
import { synthesize } from "#local/template/synthesize.ts";
import { DynamoTable } from "#shared/adapters/aws/dynamo-table.ts";
import { type Row, rowSchema } from "#shared/fleet/rows/row.ts";
import { tableContract } from "#test/contract/adapters/table-contract.ts";
import { type EmulatedClients, startEmulatedClients } from "#test/support/emulated-clients.ts";
import { MemoryTable } from "#test/support/memory-table.ts";

describe("MemoryTable", () => {
  const table = new MemoryTable();
  tableContract(() => table);
});

// Each has its own table and its own proxy, which disturbs its calls in a fixed order. Both run at once, because they
// spend most of their time waiting until the SDK tries again.
describe.each(["port", "pipe"] as const)("DynamoTable over a %s", { concurrent: true }, (transport) => {
  describe("the contract of a Table", { concurrent: false }, () => {
    const reasons = transport === "port" ? "words" : "codes";
    let emulated: EmulatedClients;
    let table: DynamoTable;
    beforeAll(async () => {
      emulated = await startEmulatedClients({ seed: 7 }, transport);
      const deployed = only(readPlan(await synthesize()).tables, "table");
      await createTable(emulated.aws.dynamo, deployed);
      table = new DynamoTable(emulated.aws.dynamo, deployed.name);
    });
    afterAll(() => emulated.stop());
    afterEach(() => emulated.proxy.setFaults(quiet));

    function disturb(faults: Partial<DynamoFaults>): void {
      emulated.proxy.setFaults({ ...quiet, dynamodb: { ...quiet.dynamodb, ...faults } });
    }

    describe("without faults", () => {
      tableContract(() => table, reasons);
    });

    describe("with conflicts, throttling, partial batches and broken connections", () => {
      tableContract(() => {
        disturb({ transactionConflict: 0.2, throttle: 0.1, unprocessed: 0.5, resetBefore: 0.05 });
        return table;
      }, reasons);
    });

    const row = (pk: string): Row => ({ pk, sk: "a", type: "Test", schema: rowSchema, version: 1 });

    test.each(["TransactWriteItems", "PutItem"])(
      "a %s whose answer was lost is recognized as the table's own write",
      async (operation) => {
        const [pk, beside] = [randomUUID(), randomUUID()];
        const others = operation === "PutItem" ? [] : [{ put: row(beside) }];
        const lost = emulated.proxy.failCall(1, "after", { where: (call) => call.operation === operation });
        await table.write([{ put: row(pk), when: "absent" }, ...others]);
        expect(lost.fired()).toBe(true);
        const again = emulated.proxy.failCall(1, "after", { where: (call) => call.operation === operation });
        await table.write([{ put: { ...row(pk), version: 2 }, when: { version: 1 } }, ...others]);
        expect(again.fired()).toBe(true);
        expect(await table.get({ pk, sk: "a" })).toEqual({ ...row(pk), version: 2 });
      },
    );

    test.each<{ readonly name: string; readonly faults: Partial<DynamoFaults> }>([
      { name: "endless conflicts", faults: { transactionConflict: 1 } },
      { name: "endless throttling answers", faults: { throttle: 1 } },
      { name: "endless connection resets", faults: { resetBefore: 1 } },
    ])("$name become Starling's transient error TableBusy", async ({ faults }) => {
      disturb(faults);
      await expect(table.write([{ put: row(randomUUID()) }])).rejects.toMatchObject({
        name: "StarlingError",
        code: "TableBusy",
        retry: "transient",
      });
    });

    test("a write that can never succeed is not tried again", async () => {
      emulated.proxy.resetCalls();
      await expect(table.write([{ put: { ...row(""), sk: "" } }])).rejects.toThrow();
      await expect(table.write([{ put: row(randomUUID()) }, { put: row("") }])).rejects.toThrow();
      expect(emulated.proxy.calls()).toEqual({ "dynamodb:PutItem": 1, "dynamodb:TransactWriteItems": 1 });
    });

    const cursor = (value: unknown) => Buffer.from(JSON.stringify(value)).toString("base64url");

    test.each([
      ["not a cursor", "nonsense"],
      ["a number", cursor(123)],
      ["half a key", cursor({ pk: "a" })],
      ["a key of the wrong types", cursor({ pk: "a", sk: 1 })],
    ])(
      "a continue token that is %s is refused with a remedy, in a query and in a query of an index",
      async (_what, after) => {
        const refused = { code: "InvalidContinue", message: expect.stringContaining("list again") };
        await expect(table.query({ pk: "a", after })).rejects.toMatchObject(refused);
        await expect(table.queryIndex({ index: "due", pk: "a", after })).rejects.toMatchObject(refused);
      },
    );
  });
});
