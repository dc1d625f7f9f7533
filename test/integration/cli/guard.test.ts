/** Guards at the command line: what is withheld, its approval, and an edit that a guard would withhold. */
import { afterEach, beforeEach, expect, test } from "vitest";
import { keys } from "#shared/fleet/rows/keys.ts";
import type { WithheldChange } from "#shared/fleet/rows/rollout-rows.ts";
import { type CliFixture, fleet, principal, startCliFixture } from "#test/integration/cli/cli-fixture.ts";
import { shop, storeRollout } from "#test/unit/functions/api/row-fixture.ts";

let cli: CliFixture;
const [, one = "", group = ""] = fleet.split("---");
const guarded = `${group.trimEnd()}\n  guard: {additions: 10%}\n`;
const narrow = guarded.replace("{all: true}", "{names: [c1]}");
beforeEach(async () => {
  cli = await startCliFixture();
  const input = `${fleet.replace(group, guarded)}---${one.replace("c1", "c2")}`;
  expect((await cli.run("apply -f - -q", { input })).code).toBe(0);
});
afterEach(() => cli.stop());

const row = () => cli.table.get(keys.object(shop.namespace, "SyncGroup", shop.name));

/** The group is rolled out on two clusters, and its guard has this state. */
async function rolledOut(withheld: readonly WithheldChange[] = []): Promise<void> {
  const [stageRun] = await storeRollout(cli, { number: 12, states: { all: ["Succeeded", "Succeeded"] } });
  const key = keys.rolloutState(shop);
  const guard = { former: [], changes: [], withheld, used: [] };
  await cli.table.write([{ update: key, set: { guard, members: stageRun?.pages[0]?.key ?? "" } }]);
}

const change: WithheldChange = {
  kind: "additions",
  count: 8,
  before: 0,
  allowed: 0,
  members: 2,
  names: ["c3", "c4"],
  hash: "1f8a90c2d4e5f607",
  since: "2026-11-20T08:00:00Z",
};

test("a withheld change is listed, and approved by its hash with a reason", async () => {
  await rolledOut([change]);
  const listed = await cli.run("guard list shop");
  expect(listed.out).toContain("1f8a90c2d4e5f607");
  expect(listed.out).toContain("8 clusters would be added (c3, c4 and 6 more): the guard allows 0 of 2");
  const elsewhere = "no guard withholds anything in namespace other; add -A for all namespaces";
  expect((await cli.run("guard list -n other")).err).toContain(elsewhere);
  const approved = await cli.run("guard approve shop --hash 1f8a90c2d4e5f607 --reason INC-4711");
  expect(approved).toMatchObject({ code: 0, out: expect.stringMatching(/^shop: approved: 8 clusters would be added/) });
  expect((await row())?.operations.guard).toMatchObject({ hash: change.hash, by: principal, reason: "INC-4711" });
  expect(cli.log.at(-1)).toMatchObject({ audit: true, verb: "guard approve", reason: "INC-4711" });
  const other = await cli.run("guard approve shop --hash 0000000000000000 --reason x");
  expect(other).toMatchObject({ code: 1, err: expect.stringContaining("--hash 1f8a90c2d4e5f607") });
  expect((await cli.run("guard approve shop --hash 1f8a90c2d4e5f607")).code).toBe(2);
});

test("an edit that the guard would withhold is not passed by --yes, and is by the hash of the dry run", async () => {
  await rolledOut();
  const before = await row();
  const dry = await cli.run("apply -f - --dry-run=server", { input: narrow });
  const [, hash = ""] = /--guard-hash ([0-9a-f]{16})/.exec(dry.err) ?? [];
  expect(dry.err).toContain("would ask: SyncGroup payments/shop: 1 cluster would leave (c2): the guard allows 0 of 2");
  const yes = await cli.run("apply -f - --yes", { input: narrow });
  expect(yes.code).toBe(1);
  expect(yes.err).toContain("a guard withholds the change, and --yes does not pass it");
  expect(yes.err).toContain(`--yes --guard-hash ${hash}`);
  expect(await row()).toEqual(before);
  const refused = await cli.run("apply -f - --guard-hash 0000000000000000 --yes", { input: narrow });
  expect(refused.code).toBe(1);
  expect(await row()).toEqual(before);
  expect(await cli.run(`apply -f - --guard-hash ${hash}`, { input: narrow })).toMatchObject({ code: 0 });
  expect((await row())?.operations.guard).toMatchObject({ hash, by: principal });
});

test("the answer of a person at the terminal is the approval of what was shown", async () => {
  await rolledOut();
  const no = await cli.run("apply -f -", { input: narrow, answer: "n" });
  expect(no.code).toBe(1);
  expect((await row())?.operations.guard).toBeUndefined();
  const yes = await cli.run("apply -f -", { input: narrow, answer: "y" });
  expect(yes.code).toBe(0);
  expect((await row())?.operations.guard).toMatchObject({ by: principal });
});
