import { describe, expect, it } from "vitest";
import { pathOfField } from "#cli/read-documents.ts";

describe("steps of a field", () => {
  const value = {
    metadata: { labels: { "app.kubernetes.io/name": 1, app: 2 } },
    spec: { templates: [{ name: "a" }, { name: 3 }] },
  };

  it.each([
    ["", []],
    ["spec.templates[1].name", ["spec", "templates", 1, "name"]],
    ["metadata.labels.app.kubernetes.io/name", ["metadata", "labels", "app.kubernetes.io/name"]],
    ["metadata.labels.app", ["metadata", "labels", "app"]],
    ["spec.absent.below", ["spec", "absent", "below"]],
    ["spec.templates[7].absent", ["spec", "templates", 7, "absent"]],
  ])("%s", (field, path) => {
    expect(pathOfField(value, field)).toEqual(path);
  });
});
