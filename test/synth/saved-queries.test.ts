/** Queries are saved for questions that are asked at night, over the logs of every function. */
import { expect, test } from "vitest";
import { ofType, synthesizeTemplates, textOf } from "#test/synth/synthesized.ts";

const { resources } = await synthesizeTemplates({ installation: "mine" });
const queries = ofType(resources, "AWS::Logs::QueryDefinition").map(({ Properties }) => Properties);

test("the stack has a saved query for each question, named after the installation", () => {
  expect(queries.map(({ Name }) => Name).sort()).toEqual([
    "mine/about one object",
    "mine/on one cluster",
    "mine/what one push caused",
    "mine/what went wrong",
  ]);
});

test("each saved query reads the logs of every function", () => {
  const groups = ofType(resources, "AWS::Lambda::Function").map(({ Properties }) =>
    textOf((Properties.LoggingConfig as { LogGroup: unknown }).LogGroup),
  );
  expect(groups).toHaveLength(new Set(groups).size);
  for (const { LogGroupNames } of queries) {
    expect((LogGroupNames as unknown[]).map(textOf).sort()).toEqual(groups.toSorted());
  }
});

test("each saved query shows the object and cluster of each line, in the order of time", () => {
  for (const { QueryString } of queries) {
    const text = String(QueryString);
    expect(text).toContain("fields @timestamp, service, level, message, kind, namespace, name, cluster, rollout");
    expect(text).toContain("sort @timestamp asc");
    expect(text).toMatch(/filter (correlationId = |namespace = "NAMESPACE"|cluster = |level in )/);
  }
});
