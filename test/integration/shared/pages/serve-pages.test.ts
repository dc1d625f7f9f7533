/** The pages over HTTP, in front of an API with objects whose texts are hostile. */
import { request } from "node:http";
import { afterEach, describe, expect, test } from "vitest";
import { queryString } from "#shared/base/percent-encoding.ts";
import { type Ask, Refusal } from "#shared/pages/ask.ts";
import { type PageServer, servePages } from "#shared/pages/serve-pages.ts";
import { apiFixture, cluster, receiver, source, syncGroup } from "#test/unit/functions/api/api-fixture.ts";
import { shop, storeRollout } from "#test/unit/functions/api/row-fixture.ts";

let pages: PageServer | undefined;
let word: string;
let faults: string[] = [];
afterEach(() => {
  faults = [];
  return pages?.close();
});

async function serve(ask: Ask): Promise<string> {
  pages = await servePages({
    ask,
    clock: { now: () => new Date("2026-11-20T09:00:00Z") },
    where: "<b>here</b>",
    port: 0,
    onFault: (line) => faults.push(line),
  });
  const { origin, pathname } = new URL(pages.url);
  word = pathname.slice(1, -1);
  return origin;
}

function askOf(api: ReturnType<typeof apiFixture>): Ask {
  return async (path, query = {}) => {
    const text = queryString(query);
    const { status, body } = await api.call("GET", text === "" ? path : `${path}?${text}`);
    if (status !== 200) throw new Refusal(status, body.message);
    return body;
  };
}

const none: Ask = () => Promise.reject(new Error("connect ECONNREFUSED"));

interface Asked {
  readonly headers?: Readonly<Record<string, string>>;
  readonly method?: string;
}

function get(origin: string, path: string, { headers = {}, method = "GET" }: Asked = {}) {
  return new Promise<{ status: number; text: string; headers: NodeJS.Dict<string | string[]> }>((resolve, reject) => {
    const sent = request(`${origin}${path}`, { method, headers }, (answer) => {
      let text = "";
      answer.setEncoding("utf8");
      answer.on("data", (part) => {
        text += part;
      });
      answer.on("end", () => resolve({ status: answer.statusCode ?? 0, text, headers: answer.headers }));
    });
    sent.on("error", reject);
    sent.end();
  });
}

describe("access to the pages", () => {
  test("the secret word is only in the path, so that a browser does not send it to another port", async () => {
    const origin = await serve(none);
    const first = await get(origin, `/${word}/clusters`);
    expect(first.status).toBe(502);
    expect(first.headers["set-cookie"]).toBeUndefined();
    expect(first.headers["referrer-policy"]).toBe("no-referrer");
    for (const [, address] of first.text.matchAll(/ (?:href|src)="(\/[^"]*)"/g)) expect(address).toMatch(`/${word}/`);
  });

  test.each([
    ["no word", () => ""],
    ["another word of the same length", () => `${word.slice(0, -1)}X`],
    ["a longer word", () => `${word}0`],
    ["a path to the parent folder", () => "..%2f"],
  ])("a request with %s is refused without a request to the API", async (_, wordOf) => {
    const asked: string[] = [];
    const origin = await serve((path) => {
      asked.push(path);
      return Promise.reject(new Error("never"));
    });
    const given = wordOf();
    for (const path of ["/", "/clusters", "/style.css", `/clusters/${word}`]) {
      expect((await get(origin, given === "" ? path : `/${given}${path}`)).status).toBe(401);
    }
    expect(asked).toEqual([]);
  });

  test("a request with another host name is refused, even with the word", async () => {
    const origin = await serve(none);
    for (const host of ["evil.example", `evil.example:${new URL(origin).port}`, "127.0.0.1.evil.example:80"]) {
      const { status } = await get(origin, `/${word}/`, { headers: { host } });
      expect(status).toBe(421);
    }
  });

  test.each(["POST", "PUT", "DELETE", "PATCH", "OPTIONS"])("a %s request is refused", async (method) => {
    const origin = await serve(none);
    expect((await get(origin, `/${word}/`, { method })).status).toBe(405);
  });
});

describe("a page that cannot be shown", () => {
  const refusing =
    (status: number): Ask =>
    () =>
      Promise.reject(new Refusal(status, `<i>no</i>`));
  test.each([
    ["for a missing right", refusing(403), "/", 403, "You are not allowed to see this"],
    ["for a missing object", refusing(404), "/clusters/c1", 404, "This object does not exist"],
    ["for an API that does not answer", none, "/versions", 502, "The API did not answer"],
    ["for an unknown path", none, "/nothing/of/the/kind", 404, "This page does not exist"],
    ["for an invalid encoding in the path", none, "/clusters/%E0%A4%A", 502, "The API did not answer"],
  ])("the page %s has its status and title", async (_what, ask, path, status, title) => {
    const origin = await serve(ask);
    const answer = await get(origin, `/${word}${path}`);
    expect(answer.status).toBe(status);
    expect(answer.text).toContain(`<h1>${title}</h1>`);
    expect(answer.text).not.toContain("<i>");
    // The log of the command has the error, but never the word.
    expect(faults).toHaveLength(status >= 500 ? 1 : 0);
    expect(faults.join()).not.toContain(word);
  });

  test("the page without the right to see it names the missing right, and shows no data", async () => {
    const answer = await get(await serve(refusing(403)), `/${word}/clusters`);
    expect(answer.text).toContain(
      "execute-api:Invoke is missing for GET /v1/clusters; the stack&#39;s ViewerPolicy allows it",
    );
    expect(answer.text).not.toContain("<table");
  });

  test("the page for a failed request has the status, the code and the correlation id", async () => {
    const details = { code: "Internal", correlationId: "api-20261120T090000Z-1f8a90c2" };
    const origin = await serve(() => Promise.reject(new Refusal(500, "an error in Starling", details)));
    const answer = await get(origin, `/${word}/clusters`);
    const words = "status 500, Internal, id api-20261120T090000Z-1f8a90c2";
    expect(answer.text).toContain(`an error in Starling (${words})`);
    expect(faults).toEqual([`/clusters: ${words}: an error in Starling`]);
  });

  test("a page that cannot be rendered reports that, and does not blame the API", async () => {
    const origin = await serve((() => Promise.resolve({ items: 7, metadata: {} })) as unknown as Ask);
    const answer = await get(origin, `/${word}/clusters`);
    expect(answer.text).toContain("<h1>This page could not be rendered</h1>");
    expect(faults).toHaveLength(1);
  });
});

describe("hostile texts in objects", () => {
  const label = `x"><script>alert(1)</script>`;

  async function world() {
    const api = apiFixture();
    const applied = await api.call("POST", "/v1/apply", {
      documents: [
        source("app"),
        receiver("ci", `acme/${label}`),
        cluster("c1", { env: "prod" }),
        syncGroup("shop", [{ name: "web", source: "app", path: "web" }]),
      ],
    });
    expect(applied.status).toBe(200);
    await storeRollout(api, {
      number: 3,
      states: { canary: ["Failed"] },
      owner: shop,
      stageRuns: { canary: { message: label, phase: "Halted" } },
    });
    return serve(askOf(api));
  }

  const paths = [
    "/",
    "/versions",
    "/clusters",
    "/clusters/c1",
    "/sources",
    "/sources/payments/app",
    "/receivers",
    "/receivers/payments/ci",
    "/timeline",
    "/events",
    "/events?namespace=payments",
    "/clusters/c1/objects",
    "/clusters/c1/objects?object=Deployment",
    "/syncgroups/payments/shop",
    "/syncgroups/payments/shop/history",
    "/syncgroups/payments/shop/events",
    "/syncgroups/payments/shop/clusters?number=3",
    "/clusters?labelSelector=env%3Dprod",
    `/syncgroups/payments/shop/clusters?stage=${encodeURIComponent(label)}`,
  ];
  test.each(paths)("the page %s has only its own script, and no style or address from an object", async (path) => {
    const origin = await world();
    const { text, headers } = await get(origin, `/${word}${path}`);
    expect(text).not.toContain("could not be rendered");
    expect(text.match(/<script/g)).toEqual(["<script"]);
    expect(text).toContain(`<script src="/${word}/live.js" defer></script>`);
    expect(text).not.toContain("<b>here</b>");
    expect(text).not.toMatch(/ (?:style|on\w+)=/);
    for (const [, address] of text.matchAll(/ (?:href|src)="([^"]*)"/g))
      expect(address).toMatch(/^(?:\/(?!\/)|data:,$)/);
    expect(headers["content-security-policy"]).toContain("default-src 'none'; script-src 'self'; style-src 'self'");
  });

  test("the page of the fleet reads all groups, and shows a halted one on the last page of the list", async () => {
    const asked: (string | undefined)[] = [];
    const group = (name: string, state: string) => ({
      kind: "SyncGroup",
      metadata: { namespace: "shop", name, generation: 1 },
      status: { state, observedGeneration: 1, conditions: [] },
      versions: [],
      bare: 0,
    });
    const origin = await serve(async <T>(path: string, query: Readonly<Record<string, string | undefined>> = {}) => {
      if (path !== "/v1/fleet") return { items: [], metadata: {} } as T;
      asked.push(query.continue);
      const items = Array.from({ length: 100 }, (_, at) => group(`g${asked.length}-${at}`, "Complete"));
      if (asked.length < 3) return { items, metadata: { continue: `c${asked.length}` } } as T;
      return { items: [group("last", "Halted")], metadata: {} } as T;
    });
    const { text } = await get(origin, `/${word}/`);
    expect(asked).toEqual([undefined, "c1", "c2"]);
    expect(text).toContain("<b>201</b> groups");
    expect(text).not.toContain("Nothing has failed");
  });

  test("the page of a halted rollout shows its message, escaped", async () => {
    const origin = await world();
    const { text } = await get(origin, `/${word}/syncgroups/payments/shop`);
    expect(text).toContain("x&quot;&gt;&lt;script&gt;alert(1)&lt;/script&gt;");
    expect(text).toContain(`<span class="state bad">halted</span>`);
    const part = await get(origin, `/${word}/`, { headers: { "x-starling-part": "main" } });
    expect(part.text).toMatch(/^<h1>Fleet<\/h1>/);
  });
});
