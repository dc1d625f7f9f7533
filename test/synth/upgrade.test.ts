/**
 * An upgrade from the version before replaces and deletes nothing that holds state or is named elsewhere: the
 * table, the bucket, the secret, the record of changes, queues with what is on them, the role that clusters trust, and the
 * API whose address is in contexts and webhooks.
 *
 * `fixtures/version-before.json` has the parts of its templates that matter here. Each release makes it again.
 */
import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { replacedOrDeleted, replacing, type StackTemplate, type StackTemplates } from "#test/synth/replaced.ts";
import { synthesizeTemplates } from "#test/synth/synthesized.ts";

const { state, control } = await synthesizeTemplates();
const after = {
  "starling-state": state.toJSON() as StackTemplate,
  "starling-control": control.toJSON() as StackTemplate,
};
const before = JSON.parse(readFileSync("test/synth/fixtures/version-before.json", "utf8")) as StackTemplates;

const resources = Object.entries(before).flatMap(([stack, { Resources }]) =>
  Object.entries(Resources).map(([id, resource]) => ({ stack, id, ...resource })),
);

test("an upgrade replaces and deletes nothing that holds state, and changes no export that is still imported", () => {
  expect(replacedOrDeleted(before, after)).toEqual([]);
});

test("the templates of the version before have every resource that this test protects", () => {
  const counts = Map.groupBy(resources, ({ Type }) => Type);
  expect(Object.fromEntries([...counts].map(([type, found]) => [type, found.length]))).toEqual({
    "AWS::DynamoDB::GlobalTable": 1,
    "AWS::S3::Bucket": 1,
    "AWS::SecretsManager::Secret": 1,
    "AWS::Logs::LogGroup": 1,
    "AWS::SQS::Queue": 11,
    "AWS::IAM::Role": 1,
    "AWS::ApiGatewayV2::Api": 1,
  });
});

/** The new templates with one change, of a resource or an output. */
function changed(stack: string, change: (template: Record<"Resources" | "Outputs", Record<string, object>>) => void) {
  const templates = structuredClone(after) as unknown as Record<
    string,
    Record<"Resources" | "Outputs", Record<string, object>>
  >;
  const template = templates[stack];
  if (template === undefined) throw new Error(`no stack is named ${stack}`);
  change(template);
  return replacedOrDeleted(before, templates as unknown as StackTemplates);
}

describe("the comparison of templates", () => {
  test.each(resources)("$id of $stack is reported when its logical id changes", ({ stack, id, Type }) => {
    const findings = changed(stack, ({ Resources }) => {
      const { [id]: moved = {} } = Resources;
      delete Resources[id];
      Resources[`${id}2`] = moved;
    });
    expect(findings).toEqual([`${id} of ${stack} (${Type}) is gone: its logical id has changed, or it was taken out`]);
  });

  const properties = resources.flatMap((resource) =>
    (replacing[resource.Type] ?? []).map((name) => ({ ...resource, name })),
  );

  test.each(properties)("$id of $stack is reported when its $name changes", ({ stack, id, Type, name }) => {
    const findings = changed(stack, ({ Resources }) => {
      const resource = Resources[id] as { Properties?: Record<string, unknown> };
      Resources[id] = { ...resource, Properties: { ...resource.Properties, [name]: "another" } };
    });
    expect(findings).toEqual([`${id} of ${stack} (${Type}) is replaced, for another ${name}`]);
  });

  const kept = resources.filter(({ DeletionPolicy }) => DeletionPolicy !== undefined);

  test.each(kept)("$id of $stack is reported when it would be deleted with its stack", ({ stack, id, Type }) => {
    const findings = changed(stack, ({ Resources }) => {
      Resources[id] = { ...Resources[id], DeletionPolicy: "Delete" };
    });
    expect(findings).toEqual([`${id} of ${stack} (${Type}) was kept when its stack is deleted, and is not: Delete`]);
  });

  test("a changed index of the table is reported", () => {
    const findings = changed("starling-state", ({ Resources }) => {
      const table = Resources.TableCD117FA1 as { Properties: { GlobalSecondaryIndexes: { IndexName: string }[] } };
      for (const index of table.Properties.GlobalSecondaryIndexes)
        index.IndexName = index.IndexName.replace("due", "d2");
    });
    expect(findings).toEqual([
      expect.stringMatching(/^TableCD117FA1 of starling-state .* has no index \{"IndexName":"due"/),
    ]);
  });

  test.each(Object.keys(before["starling-state"]?.Outputs ?? {}))(
    "the output %s is reported when it is no longer exported",
    (id) => {
      const findings = changed("starling-state", ({ Outputs }) => {
        delete Outputs[id];
      });
      expect(findings).toEqual([
        expect.stringMatching(/^starling-state exports starling-state-[a-z-]+ otherwise, or no more$/),
      ]);
    },
  );

  test("an export with another value is reported", () => {
    const findings = changed("starling-state", ({ Outputs }) => {
      Outputs.Exportstarlingstatetablename = { Value: "another", Export: { Name: "starling-state-table-name" } };
    });
    expect(findings).toEqual(["starling-state exports starling-state-table-name otherwise, or no more"]);
  });
});
