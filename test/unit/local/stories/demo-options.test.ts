import { describe, expect, test } from "vitest";
import { readDemoOptions } from "#local/stories/demo-options.ts";

const read = (line: string) => readDemoOptions(line === "" ? [] : line.split(" "), "/here");

describe("the options of the demo", () => {
  test.each([
    ["", { user: undefined, example: undefined, clusters: 12, keep: undefined }],
    ["--example platform --keep out", { example: "platform", user: undefined, keep: "/here/out" }],
    ["--clusters 300 --keep out", { clusters: 300, keep: "/here/out" }],
    ["--repo ../app", { user: { repo: "/app", path: ".", ref: undefined } }],
    ["--repo /srv/app.git --path deploy --ref v1", { user: { repo: "/srv/app.git", path: "deploy", ref: "v1" } }],
    ["--repo https://git.example.com/app.git", { user: { repo: "https://git.example.com/app.git" } }],
    ["--repo file:///srv/app", { user: { repo: "file:///srv/app" } }],
    ["--repo git@git.example.com:app", { user: { repo: "git@git.example.com:app" } }],
  ])("the options %j are accepted", (line, expected) => {
    expect(read(line)).toMatchObject(expected);
  });

  test.each([
    ["--clusters 0", "--clusters is 0; expected a whole number from 1 to 300"],
    ["--clusters 301", "--clusters is 301;"],
    ["--clusters many", "--clusters is many;"],
    ["--path deploy", "--path and --ref need --repo"],
    ["--ref main", "--path and --ref need --repo"],
    ["--repo app --path=", "--path is empty"],
    ["--example=", "--example is empty"],
    ["--example platform --clusters 3", "--repo and --clusters do not work with --example"],
    ["--example platform --repo app", "--repo and --clusters do not work with --example"],
    ["--cluster 3", "--cluster"],
    ["app", "app"],
  ])("the options %j are refused", (line, words) => {
    expect(() => read(line)).toThrow(words);
  });

  test("the option --help yields no options for a demo", () => {
    expect(read("--help")).toBeUndefined();
  });
});
