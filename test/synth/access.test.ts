import { App, Stack } from "aws-cdk-lib";
import { expect, test } from "vitest";
import * as z from "zod";
import { type AccessFor, blobsOf, plain, rowsOf } from "#infra/constructs/access.ts";
import { blobKeys } from "#shared/fleet/blob-keys.ts";
import { dueShard } from "#shared/fleet/rows/due.ts";
import { keys, stateIndex } from "#shared/fleet/rows/keys.ts";

const env = z.object({ NEEDED: z.string(), OPTIONAL: z.string().optional() });
type Access = AccessFor<typeof env>;

/** The compiler checks these lines. The check of the types fails when a line compiles that should not. */
test("an environment lacks no variable and has none too many", () => {
  const complete: Access = { NEEDED: plain("a"), OPTIONAL: plain("b") };
  const without: Access = { NEEDED: plain("a") };
  // @ts-expect-error NEEDED is missing
  const missing: Access = { OPTIONAL: plain("b") };
  // @ts-expect-error UNKNOWN is not in the schema
  const unknown: Access = { NEEDED: plain("a"), UNKNOWN: plain("c") };
  // @ts-expect-error a bare text names a resource without the permission to use it
  const bare: Access = { NEEDED: "a" };
  expect([complete, without, missing, unknown, bare].map((access) => Object.keys(access).length)).toEqual([
    2, 1, 1, 2, 1,
  ]);
});

const owner = { namespace: "shop", kind: "SyncGroup", name: "web" } as const;
const source = { namespace: "shop", name: "app" };

/** Every key of the table | the pattern that grants it, as in the policies: `*` is any text. */
test.each([
  [keys.object("shop", "Source", "app").pk, "NS#*#Source"],
  [keys.object("shop", "SyncGroup", "web").pk, "NS#*#SyncGroup"],
  [keys.object("shop", "Sync", "web").pk, "NS#*#Sync"],
  [keys.cluster("c1").pk, "CL#*"],
  [keys.sync("c1", "shop", "web").pk, "CL#*"],
  [keys.lease("c1").pk, "CL#*"],
  [keys.check("c1").pk, "CHECK#*"],
  [keys.fleet("c1").pk, "FLEET"],
  [keys.freezeState.pk, "FREEZES"],
  [keys.owner(owner).pk, "OWNERS"],
  [keys.sourceEntry(source).pk, "SOURCES"],
  [keys.uses(source, owner).pk, "USES#*"],
  [keys.repository("git.example/a", source).pk, "REPO#*"],
  [keys.rolloutState(owner).pk, "ROLL#*"],
  [keys.fleetVersion(3).pk, "FLEETVERSION"],
  [keys.tick.pk, "TICK"],
  [keys.zone("spoke").pk, "ZONE#*"],
  [keys.rendering("sha256:1").pk, "REND#*"],
  [keys.revision(source, "t", "d").pk, "REV#*"],
  [keys.event(owner, "t", "1").pk, "EVT#*"],
] as const)("%s is granted as %s", (pk, partition) => {
  const { statements } = rowsOf({ name: "t", arn: "arn:t" }, { read: [partition] });
  const patterns = leadingKeysOf(statements);
  expect(patterns).toEqual([partition]);
  expect(new RegExp(`^${partition.replaceAll("*", ".*")}$`).test(pk)).toBe(true);
});

test.each([
  ["due", dueShard(15)],
  ["state", stateIndex.pk(owner)],
] as const)("index %s is granted by its own partitions, and as itself", (index, pk) => {
  const { statements } = rowsOf({ name: "t", arn: "arn:t" }, { indexes: [index] });
  expect(statements.map(({ actions, resources }) => ({ actions, resources }))).toEqual([
    { actions: ["dynamodb:Query"], resources: [`arn:t/index/${index}`] },
  ]);
  const [pattern = ""] = leadingKeysOf(statements);
  expect(new RegExp(`^${pattern.replaceAll("*", ".*")}$`).test(pk)).toBe(true);
});

test.each([
  [blobKeys.artifact("sha256:00"), "artifacts"],
  [blobKeys.rendering("sha256:00"), "renderings"],
  [blobKeys.inventory("c1", "sha256:00"), "inventories"],
  [blobKeys.members("sha256:00"), "plans"],
] as const)("%s is in folder %s", (key, folder) => {
  const [statement] = blobsOf({ name: "b", arn: "arn:b" }, { read: [folder] }).statements;
  expect(statement?.resources).toEqual([`arn:b/${folder}/*`]);
  expect(key.startsWith(`${folder}/`)).toBe(true);
});

test("a function that renews files of a folder may copy them within the folder and may store nothing else there", () => {
  const stack = new Stack(new App(), "Any");
  const { statements } = blobsOf({ name: "b", arn: "arn:b" }, { read: ["renderings"], renew: ["renderings"] });
  const puts = statements.filter(({ actions }) => actions.includes("s3:PutObject"));
  expect(puts.map(({ resources, conditions }) => [resources, stack.resolve(conditions)])).toEqual([
    [["arn:b/renderings/*"], { StringLike: { "s3:x-amz-copy-source": "b/renderings/*" } }],
  ]);
});

function leadingKeysOf(statements: ReturnType<typeof rowsOf>["statements"]): string[] {
  const stack = new Stack(new App(), "Any");
  return statements.flatMap(
    ({ conditions }) => stack.resolve(conditions)["ForAllValues:StringLike"]["dynamodb:LeadingKeys"],
  );
}
