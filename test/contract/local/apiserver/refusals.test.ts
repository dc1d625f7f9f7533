import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import type { JsonObject } from "#shared/base/json.ts";
import type { ClusterClient } from "#shared/kube/cluster-client.ts";
import { clusterTargets } from "#test/contract/targets.ts";
import { clusterFixture } from "#test/support/cluster-fixture.ts";
import { forAllTests } from "#test/support/for-tests.ts";

const folder = new URL("../../../fixtures/refusals/", import.meta.url);
const files = readdirSync(folder);
const records = process.env.STARLING_UPDATE_REFUSALS === "1";

/** The message with which a real server refused an object, empty if it accepted it, and the object. */
type Refusal = readonly [said: string, object: JsonObject];

function read(file: string): readonly Refusal[] {
  const lines = readFileSync(new URL(file, folder), "utf8").split("\n");
  return lines.filter((line) => line !== "").map((line) => JSON.parse(line) as Refusal);
}

async function collectionOf(client: ClusterClient, { apiVersion, kind }: JsonObject): Promise<string> {
  const [version = "", group = ""] = String(apiVersion).split("/").reverse();
  const found = await client.lookup({ group, kind: String(kind), version });
  if (found.outcome !== "found") throw new Error(`no kind ${String(kind)} in ${String(apiVersion)}`);
  const space = found.info.namespaced ? "/namespaces/default" : "";
  return `/${group === "" ? "api" : "apis"}/${apiVersion}${space}/${found.info.plural}`;
}

/** Each line of a file has one object. `STARLING_UPDATE_REFUSALS=1` records the messages of a real server again. */
describe.each(clusterTargets)("refused objects on $name", ({ name, start }) => {
  const cluster = forAllTests(async () => clusterFixture(await start()));

  async function answerTo(object: JsonObject): Promise<string> {
    const path = `${await collectionOf(cluster.client, object)}?dryRun=All`;
    return cluster.raw("POST", path, { body: object, expect: 201 }).then(
      () => "",
      async () => String((await cluster.raw("POST", path, { body: object, expect: 422 })).message),
    );
  }

  test.each(files)("the objects in %s are refused with the recorded messages", async (file) => {
    const refusals = read(file);
    const said: Refusal[] = [];
    for (const [, object] of refusals) said.push([await answerTo(object), object]);
    if (records && name === "kube-apiserver") {
      writeFileSync(new URL(file, folder), said.map((each) => `${JSON.stringify(each)}\n`).join(""));
    } else expect(said).toEqual(refusals);
  });
});
