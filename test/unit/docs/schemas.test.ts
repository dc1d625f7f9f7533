/** The JSON Schemas on the pages are those of the code; STARLING_UPDATE_DOCS=1 writes them. */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { expect, test } from "vitest";
import * as z from "zod";
import { artifactAnswer, artifactListAnswer } from "#shared/fleet/api/artifact-answers.ts";
import { sourceAvailabilityDetail, sourceRevisionDetail } from "#shared/fleet/api/event-details.ts";

test.each([
  ["docs/events/source-revision-changed.schema.json", "Source Revision Changed", sourceRevisionDetail],
  ["docs/events/source-availability-changed.schema.json", "Source Availability Changed", sourceAvailabilityDetail],
  ["docs/api/artifact.schema.json", "Artifact", artifactAnswer],
  ["docs/api/artifact-list.schema.json", "Artifact List", artifactListAnswer],
])("%s is the schema of the code [source.events.schema]", (file, title, schema) => {
  // An open schema: readers must not mind what a later version adds.
  const { $schema, ...rest } = z.toJSONSchema(schema, { io: "input" });
  const made = { $schema, title, ...rest };
  if (process.env.STARLING_UPDATE_DOCS === "1") {
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, `${JSON.stringify(made, undefined, 2)}\n`);
  }
  expect(JSON.parse(readFileSync(file, "utf8"))).toEqual(made);
  expect(JSON.stringify(made)).not.toContain("additionalProperties");
});
