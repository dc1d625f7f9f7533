import { expect, test } from "vitest";
import { zonedSender } from "#shared/adapters/zoned-sender.ts";
import type { RowKey } from "#shared/fleet/rows/row.ts";
import type { Message } from "#shared/messages.ts";
import type { Table } from "#shared/ports.ts";

/** A sender and a table that record what they were asked. */
function recorded(entries: readonly object[] = []) {
  const sent: Message[] = [];
  const read: RowKey[] = [];
  const table = {
    getMany: async (keys: readonly RowKey[]) => {
      read.push(...keys);
      return entries;
    },
  } as unknown as Table;
  return { sent, read, table, sender: { send: async (messages: readonly Message[]) => void sent.push(...messages) } };
}

const zones = new Map([["spoke", "url"]]);
const served = new Map();
const about = (cluster: string) => ({ to: "apply", cluster }) as const;

test("without zones nothing is read, and messages stay as they are", async () => {
  const { sender, table, sent, read } = recorded();
  await zonedSender(sender, { zones: new Map(), served, table }).send([about("c1")]);
  expect({ sent, read }).toEqual({ sent: [about("c1")], read: [] });
});

test("the zone of a cluster is read once for all messages about it, and not for a message that has one", async () => {
  const { sender, table, sent, read } = recorded([
    { type: "Fleet", name: "c1", zone: "spoke" },
    { type: "Fleet", name: "c2" },
  ]);
  const rollout = { to: "rollout", owner: { namespace: "shop", kind: "SyncGroup", name: "web" } } as const;
  const known = { ...about("c4"), zone: "spoke" };
  const check = { ...about("c1"), check: true } as const;
  await zonedSender(sender, { zones, served, table }).send([
    about("c1"),
    check,
    rollout,
    about("c2"),
    about("c3"),
    known,
  ]);
  expect(sent).toEqual([
    { ...about("c1"), zone: "spoke" },
    { ...check, zone: "spoke" },
    rollout,
    { ...about("c2"), zone: "home" },
    { ...about("c3"), zone: "home" },
    known,
  ]);
  expect(read.map(({ sk }) => sk)).toEqual(["c1", "c2", "c3"]);
});

test("a message about a cluster whose zone does not serve its name goes to home, whose workers report that", async () => {
  const { sender, table, sent } = recorded([
    { type: "Fleet", name: "eu-1", zone: "spoke" },
    { type: "Fleet", name: "us-1", zone: "spoke" },
  ]);
  const only = new Map([["spoke", ["eu-*"]]]);
  const check = { ...about("us-1"), check: true, zone: "spoke" } as const;
  await zonedSender(sender, { zones, served: only, table }).send([about("eu-1"), about("us-1"), check]);
  expect(sent).toEqual([
    { ...about("eu-1"), zone: "spoke" },
    { ...about("us-1"), zone: "home" },
    { ...check, zone: "home" },
  ]);
});
