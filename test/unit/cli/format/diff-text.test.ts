import { expect, test } from "vitest";
import { diffText, type ShownDiff } from "#cli/format/diff-text.ts";

const secret = { group: "", kind: "Secret", namespace: "shop", name: "key" };
const equal: ShownDiff = {
  sync: "shop.web",
  clusters: ["c1"],
  against: "live",
  revision: "main@sha1:9f2c1ab",
  differences: [],
  notes: [],
  refused: [],
  unread: [],
  kept: [],
  sides: [],
};

test.each<[string, Partial<ShownDiff>, string]>([
  ["a cluster", {}, "# shop.web on cluster c1, main@sha1:9f2c1ab compared with the cluster: no differences\n"],
  [
    "an assigned rendering",
    { against: "assigned" },
    "# shop.web on cluster c1, main@sha1:9f2c1ab compared with the assigned rendering: no differences\n",
  ],
  [
    "a cluster that keeps an object",
    { kept: [{ id: secret, why: "prune is false" }] },
    "# shop.web on cluster c1, main@sha1:9f2c1ab compared with the cluster: no differences\n# Secret shop/key is no longer in git, and stays: prune is false\n",
  ],
])("a comparison with %s says when nothing differs", (_what, given, text) => {
  expect(diffText({ ...equal, ...given })).toBe(text);
});

test.each<[string, Partial<ShownDiff>]>([
  ["an object differs", { sides: [{ id: secret }] }],
  ["only apply options differ", { notes: ["only the apply options change; the objects stay the same"] }],
  ["an object would be refused", { refused: [{ id: secret, reason: "Invalid", message: "no" }] }],
  ["a kind could not be read", { unread: [{ kind: "Secret", message: "forbidden" }] }],
])("a comparison does not say that nothing differs if %s", (_what, given) => {
  expect(diffText({ ...equal, ...given })).not.toContain("no differences");
});
