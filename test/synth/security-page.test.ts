/** docs/security.md lists exactly the permissions that the role of each function has in the templates. */
import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { dueShards } from "#shared/fleet/rows/due.ts";
import { stateIndex } from "#shared/fleet/rows/keys.ts";
import { type Folder, folders, grantsIn, readActions } from "#test/synth/grants.ts";
import { listOf, synthesizeTemplates } from "#test/synth/synthesized.ts";

const page = readFileSync("docs/security.md", "utf8");
const { resources } = await synthesizeTemplates();
const { statementsOf, grantsOf, partitionsOf } = grantsIn(resources);

const none = "-";
const listed = (items: Iterable<string>) => [...new Set(items)].sort().join(", ") || none;
const code = (item: string) => `\`${item}\``;

/** The rows of the table with this header, as cells without the blanks around them. */
function tableBelow(header: string): readonly (readonly string[])[] {
  const lines = page.split("\n");
  const start = lines.findIndex((line) => line.startsWith(`| ${header}`));
  const rows = lines.slice(start);
  return rows
    .slice(
      0,
      rows.findIndex((line) => !line.startsWith("|")),
    )
    .map((line) =>
      line
        .slice(1, -1)
        .split("|")
        .map((cell) => cell.trim()),
    );
}

function partitions(folder: Folder, actions: readonly string[]): string {
  const ofIndexes: readonly string[] = [dueShards, stateIndex.partition];
  const named = partitionsOf(folder, actions).filter((each) => !ofIndexes.includes(each));
  return listed(named.map(code));
}

function indexes(folder: Folder): string {
  const found = grantsOf(folder, "dynamodb").flatMap((grant) => /\/index\/(\w+)$/.exec(grant)?.[1] ?? []);
  return listed(found.map(code));
}

function bucket(folder: Folder): string {
  const folderOf = (grant: string) => /\/(\w+)\/\*/.exec(grant)?.[1] ?? "";
  const of = (verb: string, grants: readonly string[]) =>
    grants.length === 0 ? [] : [`${verb} ${listed(grants.map(folderOf))}`];
  const grants = grantsOf(folder, "s3");
  const puts = grants.filter((grant) => grant.startsWith("s3:PutObject"));
  return (
    [
      ...of(
        "reads",
        grants.filter((grant) => grant.startsWith("s3:GetObject")),
      ),
      ...of(
        "writes",
        puts.filter((grant) => !grant.includes(" from ")),
      ),
      ...of(
        "renews",
        puts.filter((grant) => grant.includes(" from ")),
      ),
    ].join("; ") || none
  );
}

function secrets(folder: Folder): string {
  const said = grantsOf(folder, "secretsmanager").map((grant) => {
    const [action = "", resource = ""] = grant.split(" ");
    const which = resource.endsWith("/*")
      ? code(`<installation>/${resource.split("/").slice(-2).join("/")}`)
      : "webhook";
    return action.endsWith(":DescribeSecret") ? `${which}: whether it has a value` : which;
  });
  return listed(said);
}

const lowerFirst = (text: string) => text[0]?.toLowerCase() + text.slice(1);

/** The queues that a function sends to, and the functions that it invokes. */
function sends(folder: Folder): string {
  const queues = grantsOf(folder, "sqs").flatMap(
    (grant) => /^sqs:SendMessage <WiringTo(\w+?)Queue/.exec(grant)?.[1] ?? [],
  );
  const invoked = grantsOf(folder, "lambda").flatMap((grant) => /<Wiring(\w+?)Function/.exec(grant)?.[1] ?? []);
  return listed([...queues.map(lowerFirst), ...invoked.map((name) => `invokes ${lowerFirst(name)}`)]);
}

/** The other actions that a function's role allows, by name. */
function besides(folder: Folder): string {
  const inOtherColumns = /^(dynamodb|s3|secretsmanager):|^sqs:SendMessage$|^lambda:InvokeFunction$|^logs:(Create|Put)/;
  const actions = statementsOf(folder)
    .filter(({ Effect }) => Effect === "Allow")
    .flatMap(({ Action }) => listOf(Action))
    // Lambda itself receives and deletes messages with the role.
    .filter(
      (action) =>
        !inOtherColumns.test(action) &&
        !/^sqs:(ReceiveMessage|DeleteMessage|ChangeMessageVisibility|GetQueueUrl)$/.test(action),
    );
  const ownQueueOnly = folder !== "api" && actions.includes("sqs:GetQueueAttributes");
  return listed(actions.filter((action) => !(ownQueueOnly && action === "sqs:GetQueueAttributes")).map(code));
}

const rows = folders.map((folder) => [
  code(folder),
  partitions(folder, readActions),
  indexes(folder),
  partitions(folder, ["dynamodb:PutItem", "dynamodb:BatchWriteItem", "dynamodb:UpdateItem"]),
  partitions(folder, ["dynamodb:DeleteItem"]),
  bucket(folder),
  secrets(folder),
  sends(folder),
  besides(folder),
]);

describe("the security page", () => {
  test("the page has a row for each function, with the permissions of its role in the templates", () => {
    const [, , ...written] = tableBelow("function ");
    expect(written.map((row) => `| ${row.join(" | ")} |`)).toEqual(rows.map((row) => `| ${row.join(" | ")} |`));
  });

  test.each(["artifacts", "incoming", "uploads", "renderings", "plans", "inventories"])(
    "the page names exactly the functions that may read %s",
    (blobs) => {
      const readers = folders.filter((folder) =>
        grantsOf(folder, "s3").some((grant) => grant.startsWith("s3:GetObject") && grant.includes(`/${blobs}/*`)),
      );
      const row = tableBelow("place ").find(([place = ""]) => place.includes(`\`${blobs}/\``));
      const named = [...(row?.at(-1) ?? "").matchAll(/`(\w+)`/g)].map(([, name]) => name);
      expect(named.toSorted()).toEqual([...readers].sort());
    },
  );
});
