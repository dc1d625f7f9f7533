/**
 * Hostile answers of an API server to the worker's lists: the worker reports each as a problem of the cluster, and prunes
 * nothing.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import { gzipSync } from "node:zlib";
import { expect, test } from "vitest";
import { configMap } from "#test/support/cluster-fixture.ts";
import { forEachTest } from "#test/support/for-tests.ts";
import { type Attack, answerJson, pour } from "#test/support/hostile-api.ts";
import { startHostileWorker } from "#test/support/hostile-worker.ts";

const worker = forEachTest(startHostileWorker);
const objects = [configMap("default/a"), configMap("default/b")];
const names = ["a", "b"];

const malformed = (message: string) => ({
  phase: "Retrying",
  reason: "AnswerMalformed",
  message: expect.stringContaining(message),
});
const failed = (reason: string, message: string) => ({
  phase: "Failed",
  reason,
  message: expect.stringMatching(new RegExp(`^cluster c1: GET /api/v1/\\S+: .*${message}`)),
});
/** The health of objects was read one by one. */
const notCompared = (message: string) => ({
  phase: "Ready",
  conditions: expect.arrayContaining([
    expect.objectContaining({ type: "Drifted", status: "Unknown", message: expect.stringContaining(message) }),
  ]),
});

const isList = (request: IncomingMessage) => request.url?.includes("/configmaps?limit=") === true;
const json = { "content-type": "application/json" };

/** Answers every list with the text, or in turn with each of several texts. */
function lists(...texts: readonly string[]): Attack {
  let asked = 0;
  return (request, response) => isList(request) && answerJson(response, texts[asked++ % texts.length] ?? "");
}

function onList(answer: (response: ServerResponse) => void): Attack {
  return (request, response) => {
    if (!isList(request)) return false;
    answer(response);
    return true;
  };
}

function* endless(piece: string | Uint8Array): Iterable<string | Uint8Array> {
  for (;;) yield piece;
}

const item = (name: string, rest = "") =>
  `{"metadata":{"name":${JSON.stringify(name)},"namespace":"default","uid":"u","resourceVersion":"1"${rest}}}`;
const list = (items: string, token = "") => `{"metadata":{"continue":"${token}"},"items":[${items}]}`;
const deep = (depth: number) => "[".repeat(depth) + "]".repeat(depth);
const ofListItem = (index: number, message: string) => malformed(`items[${index}].${message}`);

interface Case {
  readonly attack: () => Attack;
  readonly finding: object;
  /** The most lists that the worker may request. */
  readonly requests?: number;
  /** The time that is left of the invocation. */
  readonly remainingMs?: number;
}

const cases: Readonly<Record<string, Case>> = {
  "an HTML page of a proxy": {
    attack: () => onList((response) => response.writeHead(200, { "content-type": "text/html" }).end("<html></html>")),
    finding: malformed("it is not JSON (13 bytes, text/html)"),
  },
  "a compressed bomb that nobody asked for": {
    attack: () => {
      const bomb = gzipSync(Buffer.alloc(8_000_000, "{}"));
      return onList((response) => response.writeHead(200, { ...json, "content-encoding": "gzip" }).end(bomb));
    },
    finding: malformed("it is not JSON"),
  },
  "a body that does not end": {
    attack: () => onList((response) => void pour(response.writeHead(200, json), endless(Buffer.alloc(65_536, " ")))),
    finding: failed("AnswerTooLarge", "larger than 16 MiB.*check what answers"),
    requests: 5,
  },
  "a body of one byte now and then": {
    attack: () =>
      onList((response) => {
        response.writeHead(200, json);
        const drip = setInterval(() => response.write(" "), 20);
        response.once("close", () => clearInterval(drip));
      }),
    finding: { phase: "Verifying", reason: "OutOfTime" },
    remainingMs: 2_000,
    requests: 1,
  },
  "a list of watch events": {
    attack: () => lists(`{"type":"ADDED","object":${item("a")}}\n`.repeat(100)),
    finding: malformed("it is not JSON"),
  },
  "a redirect to itself": {
    attack: () => onList((response) => response.writeHead(302, { location: "/api/v1/configmaps?limit=1" }).end()),
    finding: notCompared("answered 302"),
    requests: 1,
  },
  "a continue token that repeats": {
    attack: () => lists(list(item("a"), "same")),
    finding: malformed("its continue token is repeated"),
    requests: 2,
  },
  "a list with continue tokens in a circle": {
    attack: () => lists(list(item("a"), "one"), list(item("b"), "two")),
    finding: malformed("its continue token is repeated"),
    requests: 3,
  },
  "a continue token of a megabyte": {
    attack: () => lists(list(item("a"), "t".repeat(1_000_000))),
    finding: malformed("its continue token has 1000000 characters"),
    requests: 1,
  },
  "a list with 100,000 levels": {
    attack: () => lists(list(deep(100_000))),
    finding: malformed("nested 100002 levels deep"),
  },
  "a number of a million digits": {
    attack: () => lists(list(item("a", `,"generation":${"9".repeat(1_000_000)}`))),
    finding: malformed("a number with 1000000 digits"),
  },
  "a list with members called __proto__": {
    attack: () => lists('{"__proto__":{"items":[],"polluted":1},"metadata":{"__proto__":{"polluted":1}}}'),
    finding: malformed("items is missing, expected a list"),
  },
  "a list with the same members twice, the second time with another type": {
    attack: () => lists(`{"metadata":{},"items":[],"items":7}`),
    finding: malformed("items is a number, expected a list"),
  },
  "a list whose items are a text": { attack: () => lists(`{"items":"none"}`), finding: malformed("items is a text") },
  "an item without metadata": { attack: () => lists(list("{}")), finding: ofListItem(0, "metadata is missing") },
  "an item that is null": { attack: () => lists(list("null")), finding: malformed("items[0] is null") },
  "a name that leads elsewhere": {
    attack: () => lists(list(`${item("a")},${item("../../secrets/x")}`)),
    finding: ofListItem(1, 'metadata.name must not contain \\"/\\"'.replaceAll("\\", "")),
  },
  "a resourceVersion that is a number": {
    attack: () => lists(list(`{"metadata":{"name":"a","uid":"u","resourceVersion":12}}`)),
    finding: ofListItem(0, "metadata.resourceVersion is a number, expected a text"),
  },
  "a uid of a megabyte": {
    attack: () => lists(list(`{"metadata":{"name":"a","uid":"${"u".repeat(1_000_000)}"}}`)),
    finding: ofListItem(0, "metadata.uid has 1000000 characters"),
  },
  "an object whose labels are a list": {
    attack: () => lists(list(item("a", ',"labels":["x"]'))),
    finding: ofListItem(0, "metadata.labels is a list"),
  },
  "an object whose finalizers are maps": {
    attack: () => lists(list(item("a", ',"deletionTimestamp":"x","finalizers":[{"toString":1}]'))),
    finding: ofListItem(0, "metadata.finalizers is not a list of strings"),
  },
  "an object whose managers are numbers": {
    attack: () => lists(list(item("a", ',"managedFields":[{"manager":1,"time":2}]'))),
    finding: ofListItem(0, "metadata.managedFields is not a list of entries"),
  },
  "an answer with too many headers": {
    attack: () =>
      onList((response) => void response.socket?.write(`HTTP/1.1 200 OK\r\n${"x-flood: yes\r\n".repeat(100_000)}\r\n`)),
    finding: notCompared("Header overflow"),
  },
  "an upgrade to another protocol": {
    attack: () =>
      onList(
        (response) =>
          void response.socket?.write("HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n"),
      ),
    finding: malformed("switched to another protocol (x)"),
    requests: 1,
  },
  "an endless series of 1xx answers": {
    attack: () =>
      onList((response) => {
        const hint = "HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n".repeat(100);
        const flood = setInterval(() => response.socket?.write(hint), 5);
        response.once("close", () => clearInterval(flood));
      }),
    finding: { phase: "Verifying", reason: "OutOfTime" },
    remainingMs: 2_000,
    requests: 1,
  },
  "a wait of thirty years": {
    attack: () => onList((response) => response.writeHead(429, { "retry-after": "1000000000" }).end()),
    finding: notCompared("answered 429"),
    remainingMs: 2_000,
    requests: 1,
  },
};

test.each(Object.entries(cases))(
  "%s is reported, no object is deleted, and the inventory stays",
  { timeout: 60_000 },
  async (_name, attacked) => {
    await worker.world.assign("web", objects);
    await worker.world.work();
    expect(await worker.observed()).toMatchObject({ phase: "Ready" });
    worker.api.clear();

    worker.api.attack(attacked.attack());
    const { remainingMs } = attacked;
    await worker.checkAgain(remainingMs === undefined ? {} : { remainingMs });
    expect(await worker.observed()).toMatchObject(attacked.finding);
    expect(await worker.observed()).not.toHaveProperty("drift");
    expect(worker.members()).toEqual(names);
    expect(await worker.recorded()).toEqual(names);
    expect(worker.api.requests().filter((request) => !request.startsWith("GET "))).toEqual([]);
    if (attacked.requests !== undefined) {
      expect(worker.api.requests().filter((request) => request.includes("limit=")).length).toBeLessThanOrEqual(
        attacked.requests,
      );
    }
    expect(Reflect.get({}, "polluted")).toBeUndefined();

    worker.api.attack(undefined);
    await worker.checkAgain();
    expect(await worker.observed()).toMatchObject({ phase: expect.stringMatching(/^(Ready|Reachable)$/) });
  },
);

test("a rendering with dangerous names from an older version is not applied", async () => {
  await worker.world.assign("web", [...objects, configMap("default/.."), configMap("../kube-system/x")]);
  await worker.world.work();
  expect(await worker.observed()).toMatchObject({
    phase: "Failed",
    reason: "ApplyFailed",
    problems: expect.arrayContaining([
      expect.objectContaining({ reason: "InvalidName", message: expect.stringContaining('must not be ".."') }),
    ]),
  });
  expect(worker.members()).toEqual([]);
  expect(worker.api.requests().filter((request) => request.includes(".."))).toEqual([]);
});
