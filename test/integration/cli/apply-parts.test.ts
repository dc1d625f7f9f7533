import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createTable } from "#local/aws/services/create-resources.ts";
import type { AwsCall } from "#local/aws/wire/aws-call.ts";
import { only } from "#local/machine/deployment.ts";
import { readPlan } from "#local/template/read-plan.ts";
import { synthesize } from "#local/template/synthesize.ts";
import { DynamoTable } from "#shared/adapters/aws/dynamo-table.ts";
import { defined } from "#shared/base/defined.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import type { SyncRow } from "#shared/fleet/rows/sync-row.ts";
import type { Table } from "#shared/ports.ts";
import { type CliFixture, startCliFixture, startCliFixtureOver } from "#test/integration/cli/cli-fixture.ts";
import { type EmulatedClients, startEmulatedClients } from "#test/support/emulated-clients.ts";
import { syncRow } from "#test/unit/functions/api/row-fixture.ts";

/** The tests write thousands of documents on a machine that may be busy. */
const long = 240_000;
const apiVersion = "starling.dev/v1alpha1";

function source(index: number): object {
  return {
    apiVersion,
    kind: "Source",
    metadata: { name: `s${index}`, namespace: "payments" },
    spec: { git: { url: `https://github.com/acme/app${index}` } },
  };
}

function group(index: number, template = "web"): object {
  return {
    apiVersion,
    kind: "SyncGroup",
    metadata: { name: `g${index}`, namespace: "payments" },
    spec: { clusters: { all: true }, templates: [{ name: template, source: `s${index}` }] },
  };
}

/** The file has the groups first, because its order is not the order of the writes. */
function fleetOf(groups: number, sources = groups): string {
  const documents = [
    ...Array.from({ length: groups }, (_, index) => group(index)),
    ...Array.from({ length: sources }, (_, index) => source(index)),
  ];
  return documents.map((document) => JSON.stringify(document)).join("\n---\n");
}

async function count(table: Table, pk: string): Promise<number> {
  let rows = 0;
  let after: string | undefined;
  do {
    const page = await table.query({ pk, ...defined({ after }) });
    rows += page.items.length;
    after = page.next;
  } while (after !== undefined);
  return rows;
}

const lines = (text: string) => text.trimEnd().split("\n");

describe("over DynamoDB", () => {
  let emulated: EmulatedClients;
  let cli: CliFixture<DynamoTable>;
  beforeEach(async () => {
    emulated = await startEmulatedClients({ seed: 1 });
    const deployed = only(readPlan(await synthesize()).tables, "table");
    await createTable(emulated.aws.dynamo, deployed);
    cli = await startCliFixtureOver(new DynamoTable(emulated.aws.dynamo, deployed.name));
  });
  afterEach(async () => {
    await cli.stop();
    await emulated.stop();
  });

  /** Calls a function once, before the n-th write of an object. */
  function atWrite(n: number, act: () => Promise<unknown>): void {
    let writes = 0;
    emulated.proxy.intercept({
      async before(call: AwsCall) {
        if (call.operation !== "TransactWriteItems") return;
        writes += 1;
        if (writes === n) await act();
      },
    });
  }

  test(
    "a thousand documents are checked, then written, once",
    async () => {
      cli.write("fleet.yaml", fleetOf(500));
      const first = await cli.run("apply -f fleet.yaml");
      expect(first.code).toBe(0);
      expect(first.err).toMatch(/^context here .*\n1000 documents, in 4 parts\n/);
      expect(lines(first.out)).toHaveLength(1000);
      expect(lines(first.out)[0]).toBe("syncgroup/g0 created");
      expect(lines(first.out)[999]).toBe("source/s499 created");
      expect(cli.requests()).toBe(8);
      expect(await count(cli.table, "NS#payments#Source")).toBe(500);
      expect(await count(cli.table, "NS#payments#SyncGroup")).toBe(500);
      expect(emulated.proxy.calls()["dynamodb:TransactWriteItems"]).toBe(1000);

      const second = await cli.run("apply -f fleet.yaml -q");
      expect(new Set(lines(second.out).map((line) => line.split(" ")[1]))).toEqual(new Set(["unchanged"]));
      expect(emulated.proxy.calls()["dynamodb:TransactWriteItems"]).toBe(1000);
    },
    long,
  );

  test(
    "an error in a later part is reported with the objects that were written, and the same command again finishes",
    async () => {
      cli.write("one.yaml", JSON.stringify(group(299)));
      expect((await cli.run("apply -q -f one.yaml")).code).toBe(0);
      const key = keys.object("payments", "SyncGroup", "g299");
      atWrite(100, async () => {
        const deletion = { by: "ben", at: "2026-11-20T08:00:00.000Z", cascade: "delete" };
        await cli.table.update({ update: key, set: { operations: { deletion } }, add: { version: 1 } });
      });
      cli.write("fleet.yaml", fleetOf(300));
      const halted = await cli.run("apply -q -f fleet.yaml");
      expect(halted.code).toBe(1);
      expect(lines(halted.out)).toHaveLength(500);
      expect(lines(halted.out).filter((line) => line.startsWith("source/"))).toHaveLength(300);
      const left = lines(halted.err).filter((line) => line.startsWith("not written: syncgroup/g"));
      expect(left).toHaveLength(100);
      expect(left.at(-1)).toBe("not written: syncgroup/g299");
      expect(halted.err).toContain(
        "error: 500 of 600 documents are written, 100 are not: SyncGroup payments/g299 is being deleted",
      );
      expect(halted.err).toContain("next: the same command again");
      expect(await count(cli.table, "NS#payments#SyncGroup")).toBe(201);

      await cli.table.update({ update: key, set: { operations: {} }, add: { version: 1 } });
      const again = await cli.run("apply -q -f fleet.yaml");
      expect(again.code).toBe(0);
      expect(lines(again.out).filter((line) => line.endsWith(" created"))).toHaveLength(99);
      expect(await count(cli.table, "NS#payments#SyncGroup")).toBe(300);
    },
    long,
  );

  test("documents of a part that was not answered are reported as perhaps not written", async () => {
    atWrite(300, () => cli.stop());
    cli.write("fleet.yaml", fleetOf(0, 600));
    const halted = await cli.run("apply -q -f fleet.yaml");
    expect(halted.code).toBe(3);
    expect(lines(halted.out)).toHaveLength(250);
    expect(halted.err).toContain("perhaps not written: source/s250");
    expect(halted.err).toContain("and 250 more");
    expect(halted.err).toContain("error: 250 of 600 documents are written, 350 are not: no answer from");
  });

  test("a failure within a part reports which of its documents are written", async () => {
    cli.write("one.yaml", JSON.stringify(source(5)));
    await cli.run("apply -q -f one.yaml");
    const rival = keys.object("payments", "Source", "s5");
    emulated.proxy.intercept({
      async before(call: AwsCall) {
        if (call.operation !== "TransactWriteItems" || !call.http.body.toString().includes('"s5"')) return;
        await cli.table.update({ update: rival, add: { version: 1 } });
      },
    });
    cli.write("fleet.yaml", fleetOf(0, 20).replace("acme/app5", "acme/other"));
    const ran = await cli.run("apply -q -f fleet.yaml");
    expect(ran.code).toBe(1);
    const written = await count(cli.table, "NS#payments#Source");
    const names = lines(ran.out).map((line) => line.split(" ")[0]);
    expect(names).toHaveLength(written - 1);
    expect(names).not.toContain("source/s5");
    expect(ran.err).toContain("not written: source/s5\n");
    expect(ran.err).toContain(
      `error: ${written - 1} of 20 documents are written, ${21 - written} are not: Source payments/s5`,
    );
    expect(ran.err).toContain("was being written by others 6 times in a row");
  });
});

describe("apply in parts", () => {
  let cli: CliFixture;
  beforeEach(async () => {
    cli = await startCliFixture();
  });
  afterEach(() => cli.stop());

  test(
    "ten thousand documents take forty requests to check and forty to write",
    async () => {
      cli.write("fleet.yaml", fleetOf(5000));
      const ran = await cli.run("apply -q -f fleet.yaml");
      expect(ran).toMatchObject({ code: 0, err: "" });
      expect(lines(ran.out)).toHaveLength(10_000);
      expect(cli.requests()).toBe(80);
      expect(cli.table.all().filter((row) => row.type === "SyncGroup")).toHaveLength(5000);
    },
    long,
  );

  test("nothing is written when one document of the last part is wrong", async () => {
    const wrong = JSON.stringify({
      apiVersion,
      kind: "Sync",
      metadata: { name: "moved", namespace: "payments" },
      spec: { cluster: "c2", source: "s0" },
    });
    cli.write("sync.yaml", wrong.replace("c2", "c1"));
    await cli.run("apply -q -f sync.yaml");
    const rows = cli.table.all();
    cli.write("fleet.yaml", `${fleetOf(300)}\n---\n${wrong}`);
    const ran = await cli.run("apply -q -f fleet.yaml");
    expect(ran).toMatchObject({ code: 2, out: "" });
    expect(ran.err).toMatch(/^fleet\.yaml:\d+: Sync\/moved: spec\.cluster is c2, was c1, and cannot change/);
    expect(ran.err).toContain("error: 1 problem in 601 documents; nothing was applied");
    expect(cli.table.all()).toEqual(rows);
  });

  test("a Source in another part counts as present", async () => {
    cli.write("fleet.yaml", fleetOf(300));
    const dry = await cli.run("apply -f fleet.yaml --dry-run=server");
    expect(dry).toMatchObject({ code: 0, err: "" });
    expect(cli.table.all()).toEqual([]);
    const applied = await cli.run("apply -f fleet.yaml");
    expect(applied.err).not.toContain("does not exist");
    cli.write("none.yaml", JSON.stringify(group(999)));
    expect((await cli.run("apply -f none.yaml --dry-run=server")).err).toContain(
      "warning: syncgroup/g999: Source s999 does not exist in namespace payments yet",
    );
  });

  test("the command asks once, before it writes the first part", async () => {
    cli.write("fleet.yaml", fleetOf(300));
    await cli.run("apply -q -f fleet.yaml");
    const owner = { namespace: "payments", kind: "SyncGroup", name: "g299" } as const;
    const onCluster: SyncRow = { ...syncRow("c1", "g299.web"), owner, statePk: "S#payments#SyncGroup#g299" };
    await cli.table.write([{ put: onCluster }]);
    const other = [...Array.from({ length: 299 }, (_, index) => group(index, "api")), group(299, "api")];
    cli.write("other.yaml", other.map((document) => JSON.stringify(document)).join("\n---\n"));
    const rows = cli.table.all();
    const refused = await cli.run("apply -q -f other.yaml");
    expect(refused.code).toBe(1);
    expect(refused.err).toContain("SyncGroup payments/g299 drops template web: the objects of 1 Sync on 1 cluster");
    expect(cli.table.all()).toEqual(rows);
    const sure = await cli.run("apply -q -f other.yaml", { answer: "y" });
    expect(sure.code).toBe(0);
    expect(sure.err.match(/Continue\?/g)).toHaveLength(1);
    const row = await cli.table.get(keys.object("payments", "SyncGroup", "g299"));
    expect(row?.spec.templates[0]?.name).toBe("api");
  });
});
