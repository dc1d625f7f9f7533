import { describe, expect, test } from "vitest";
import { duplicateText, movesAmong } from "#shared/fleet/forecast/moved-objects.ts";
import type { ManifestObject } from "#shared/kube/kube-object.ts";
import { objectDifferences } from "#shared/kube/object-differences.ts";

const config = (name: string, k = "1"): ManifestObject => ({
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: { name, namespace: "shop" },
  data: { k },
});

const shown = (objects: ReturnType<ReturnType<typeof movesAmong>["named"]>) =>
  objects.map(({ id, how, movedFrom, movedTo }) => `${how} ${id.name} ${movedFrom ?? ""}>${movedTo ?? ""}`);

describe("an object that moves from one template to another", () => {
  const web = { sync: "shop.web", before: [config("data"), config("old")], after: [config("own")] };
  const jobs = { sync: "shop.jobs", before: [config("x")], after: [config("x"), config("data", "2"), config("new")] };
  const moves = movesAmong([web, jobs]);

  test("a moved object names the other template on both sides, and is not deleted", () => {
    expect(shown(moves.named(web.sync, objectDifferences(web.before, web.after)))).toEqual([
      "deleted data >shop.jobs",
      "deleted old >",
      "created own >",
    ]);
    expect(shown(moves.named(jobs.sync, objectDifferences(jobs.before, jobs.after)))).toEqual([
      "created data shop.web>",
      "created new >",
    ]);
    expect(moves.leaving(web)).toEqual([config("old")]);
    expect(moves.duplicates).toEqual([]);
  });

  test("an object moves with a template that is renamed", () => {
    const gone = { sync: "shop.web", before: [config("data"), config("old")], after: [] };
    const renamed = { sync: "shop.site", before: [], after: [config("data")] };
    const { leaving } = movesAmong([gone, renamed]);
    expect(leaving(gone)).toEqual([config("old")]);
  });
});

test("an object that two templates have is reported with both templates", () => {
  const [duplicate, ...others] = movesAmong([
    { sync: "shop.web", before: [], after: [config("data")] },
    { sync: "shop.jobs", before: [config("data")], after: [config("data")] },
  ]).duplicates;
  expect(others).toEqual([]);
  expect(duplicate && duplicateText(duplicate, 3)).toBe(
    "DuplicateObject: several templates have the same object on 3 clusters: ConfigMap shop/data in shop.web and shop.jobs; remove it from all but one",
  );
});
