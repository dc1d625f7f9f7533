import { execFileSync } from "node:child_process";
import { expect, test } from "vitest";
import { type Ask, Refusal } from "#shared/pages/ask.ts";
import { pageHost } from "#shared/pages/html-document.ts";
import { originParts, planParts } from "#shared/pages/origin-parts.ts";
import { rolloutsPage } from "#shared/pages/rollouts-page.ts";
import { syncPage } from "#shared/pages/sync-page.ts";
import { textOf } from "#test/support/html-tables.ts";

const host = pageHost(new Date("2026-11-20T08:00:00.000Z"));
const hostile = [
  "a b; exit 3 #",
  "$(exit 3)`exit 3`",
  "it's $HOME * ~ \\",
  "|&>x",
  "",
  "<script>alert(1)</script>",
  `"></code><img src=x onerror=alert(1)>`,
  "&lt;b&gt;",
];

/** The commands: the texts in `<code>` that begin with `starling`. */
function commandsIn(html: string): readonly string[] {
  const codes = [...html.matchAll(/<code>(.*?)<\/code>/gs)].map(([, code = ""]) => textOf(code));
  return codes.filter((code) => code.startsWith("starling "));
}

/** The arguments that a shell passes to the command. */
function argumentsOf(command: string): readonly string[] {
  const script = `starling() { for each in "$@"; do printf '%s\\0' "$each"; done; }\n${command}`;
  return execFileSync("sh", ["-c", script], { encoding: "utf8" }).split("\0").slice(0, -1);
}

/** An installation with this group and its Sync, and without rollouts. */
const ask: Ask = async <T>(path: string) => {
  const [, , , namespace, kind, name, ...more] = path.split("/");
  if (more.length > 0 && more[0] !== "events" && kind === "syncgroups") throw new Refusal(404, "there is none");
  const metadata = { namespace, name, generation: 1 };
  const spec = { cluster: "c1", source: "", path: "." };
  const status = { state: "Ready", conditions: [], group: "web", template: "app" };
  const object = { kind: kind === "syncs" ? "Sync" : "SyncGroup", metadata, spec, status };
  const answer = more.length > 0 || path === "/v1/windows" ? { items: [], metadata: {} } : object;
  return answer as T;
};

test("a group's page names the command that plans its next rollout", async () => {
  const { main } = await rolloutsPage(ask, { kind: "SyncGroup", namespace: "shop", name: "web" }, host);
  const html = main.toString();
  expect(html).toContain("<h2>What a plan would change</h2>");
  expect(commandsIn(html)).toEqual(["starling plan web -n shop"]);
});

test("a Sync's page names the commands to plan its group on its cluster, and to compare the Sync", async () => {
  const asked = { cluster: "c1", namespace: "shop", name: "web.app", query: {} };
  const html = (await syncPage(ask, asked, host)).main.toString();
  expect(html).toContain("<h2>What a plan would change</h2>");
  expect(commandsIn(html)).toEqual([
    "starling plan web --cluster c1 -n shop",
    "starling diff sync/web.app --cluster c1 -n shop --against assigned",
  ]);
});

test("the page of a Sync without a group names the command that plans the Sync itself", () => {
  const html = planParts({ kind: "Sync", namespace: "shop", name: "own" }).toString();
  expect(commandsIn(html)).toEqual(["starling plan sync/own -n shop"]);
});

test.each(hostile)("a shell passes the name %j to the commands unchanged, and the page escapes it", (text) => {
  const sync = { namespace: text, name: text, cluster: text };
  const owner = { kind: "SyncGroup", namespace: text, name: text } as const;
  const origins = Array.from({ length: 61 }, (_, at) => ({ field: `f${at}`, value: text, from: [text] }));
  const plan = planParts(owner, sync).toString();
  const commands = [...commandsIn(plan), ...commandsIn(originParts(origins, sync).toString())];
  const current = ["--cluster", text, "-n", text];
  expect(commands.map(argumentsOf)).toEqual([
    ["plan", text, ...current],
    ["diff", `sync/${text}`, ...current, "--against", "assigned"],
    ["render", `sync/${text}`, ...current, "--show-origin"],
  ]);
  expect(plan.replaceAll(/<\/?(?:h2|p|code|span)>|<span class="flag">/g, "")).not.toMatch(/[<>"]/);
});
