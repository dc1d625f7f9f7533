/** The JSON Schemas on the pages are those of the code; STARLING_UPDATE_DOCS=1 writes them. */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { expect, test } from "vitest";
import * as z from "zod";
import { sourceAvailabilityDetail, sourceRevisionDetail } from "#shared/fleet/api/event-details.ts";

test.each([
  ["docs/events/source-revision-changed.schema.json", "Source Revision Changed", sourceRevisionDetail],
  ["docs/events/source-availability-changed.schema.json", "Source Availability Changed", sourceAvailabilityDetail],
])("%s", (file, title, schema) => {
  // An open schema: readers must not mind what a later version adds.
  const { $schema, ...rest } = z.toJSONSchema(schema, { io: "input" });
  const text = `${JSON.stringify({ $schema, title, ...rest }, undefined, 2)}\n`;
  if (process.env.STARLING_UPDATE_DOCS === "1") {
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text);
  }
  expect(readFileSync(file, "utf8")).toBe(text);
  expect(text).not.toContain("additionalProperties");
});
