/** What is asked at night is ready to be asked: over the logs of every function, by the fields that their lines have. */
import { expect, test } from "vitest";
import { ofType, synthesizeTemplates, textOf } from "#test/synth/synthesized.ts";

const { resources } = await synthesizeTemplates({ installation: "mine" });
const queries = ofType(resources, "AWS::Logs::QueryDefinition").map(({ Properties }) => Properties);

test("there is one for each question, named after the installation", () => {
  expect(queries.map(({ Name }) => Name).sort()).toEqual([
    "mine/about one object",
    "mine/on one cluster",
    "mine/what one push caused",
    "mine/what went wrong",
  ]);
});

test("each looks through the logs of every function", () => {
  const groups = ofType(resources, "AWS::Lambda::Function").map(({ Properties }) =>
    textOf((Properties.LoggingConfig as { LogGroup: unknown }).LogGroup),
  );
  expect(groups).toHaveLength(new Set(groups).size);
  for (const { LogGroupNames } of queries) {
    expect((LogGroupNames as unknown[]).map(textOf).sort()).toEqual(groups.toSorted());
  }
});

test("each shows what a line is about, in the order of time", () => {
  for (const { QueryString } of queries) {
    const text = String(QueryString);
    expect(text).toContain("fields @timestamp, service, level, message, kind, namespace, name, cluster, rollout");
    expect(text).toContain("sort @timestamp asc");
    expect(text).toMatch(/filter (correlationId = |namespace = "NAMESPACE"|cluster = |level in )/);
  }
});
