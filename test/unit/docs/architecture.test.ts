/** The map of the code in docs/architecture.md names the folders that exist, and its table the steps of the planner. */
import { readdirSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { plannerSteps } from "#functions/rollout/call/planner-steps.ts";

const page = readFileSync("docs/architecture.md", "utf8");
const map = /^## Layers\n\n```text\n(.*?)^```$/ms.exec(page)?.[1] ?? "";

function foldersOf(path: string): readonly string[] {
  return readdirSync(path, { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && !entry.name.startsWith(".") && entry.name !== "node_modules")
    .map(({ name }) => name);
}

/** The lines of the map below the line of a folder. */
function partOf(folder: string): string {
  const lines = map.split("\n");
  const start = lines.findIndex((line) => line.trimStart().startsWith(`${folder}/`));
  const depthOf = (line = "") => line.length - line.trimStart().length;
  const rest = lines.slice(start + 1);
  const end = rest.findIndex((line) => depthOf(line) <= depthOf(lines[start]));
  return rest.slice(0, end === -1 ? undefined : end).join("\n");
}

test.each([
  ["shared", "shared"],
  ["shared/fleet", "fleet"],
  ["local", "local"],
  ["cli", "cli"],
])("the map names every folder of %s", (path, name) => {
  const part = partOf(name) + map.split("\n").filter((line) => line.startsWith(`${name}/`));
  expect(foldersOf(path).filter((folder) => !part.includes(`${folder}/`))).toEqual([]);
});

test("the table of steps names every step of the planner, in order", () => {
  const [, table = ""] = /^\| step \| what it does \|\n(.*?)\n\n/ms.exec(page) ?? [];
  const named = [...table.matchAll(/^\| `(\w+)` \|/gm)].map(([, name]) => name);
  expect(named).toEqual([...plannerSteps.map(({ name }) => name), "goIdle"]);
});
