import { expect, test } from "vitest";
import { answerPage } from "#shared/pages/answer-page.ts";
import { Refusal } from "#shared/pages/ask.ts";
import { html } from "#shared/pages/view.ts";

/** Parts of an address and parameters as a link from a stranger may have them. */
const strange = ["..", ".", "%2e%2e", "..%2F..", "x%3Fa=b", "x%23", "%5C..", ""];
const pages = [
  "/timeline?group=STRANGE/x",
  "/timeline?group=ns/STRANGE",
  "/clusters/STRANGE",
  "/clusters/STRANGE/objects?object=v1/ConfigMap/a/b",
  "/clusters/STRANGE/syncs/ns/app",
  "/clusters/a/syncs/STRANGE/app",
  "/clusters/a/syncs/ns/STRANGE",
  "/sources/STRANGE/app?path=STRANGE",
  "/sources/ns/STRANGE",
  "/receivers/STRANGE/app",
  "/receivers/ns/STRANGE",
  "/syncgroups/STRANGE/app",
  "/syncs/ns/STRANGE",
  "/syncgroups/STRANGE/app/history",
  "/syncgroups/ns/STRANGE/events?cluster=STRANGE",
  "/syncgroups/STRANGE/app/clusters?number=1",
  "/syncgroups/ns/app/clusters?number=STRANGE&stage=STRANGE",
];

const cases = pages.flatMap((page) => strange.map((text) => page.replaceAll("STRANGE", text)));

test.each(cases)("the page %s asks the API only for plain paths", async (address) => {
  const asked: string[] = [];
  const ask = (path: string) => {
    asked.push(path);
    return Promise.reject(new Refusal(404, "none"));
  };
  const at = address.indexOf("?");
  const [path, search] = at < 0 ? [address, ""] : [address.slice(0, at), address.slice(at + 1)];
  const query = Object.fromEntries(new URLSearchParams(search));
  const host = { now: new Date("2026-03-01T00:00:00Z"), link: () => html``, search: () => html`` };
  const { status } = await answerPage(ask, { path, query }, host);
  expect(status).toBe(404);
  for (const one of asked) {
    const { pathname, search: query, hash } = new URL(`https://api.example.com${one}`);
    expect({ pathname, query, hash }).toEqual({ pathname: one, query: "", hash: "" });
    expect(one.split("/").slice(1)).not.toContain("");
  }
});
