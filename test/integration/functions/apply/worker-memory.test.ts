/** The memory that a hostile cluster can make its worker use: measured from outside, with the heap that Lambda allows. */

import { startClusterHost } from "@starling/embedded-apiserver";
import { afterEach, expect, test } from "vitest";
import { configMap } from "#test/support/cluster-fixture.ts";
import { forEachTest } from "#test/support/for-tests.ts";
import { type Attack, pour, startHostileApi } from "#test/support/hostile-api.ts";
import { ranTo, startNode } from "#test/support/started-process.ts";

/** The memory of the function, and the share of it that Lambda's runtime gives to the heap. */
const functionMiB = 1_024;
const heapMiB = Math.floor(functionMiB * 0.9);

const api = forEachTest(async () => {
  const host = await startClusterHost({ controllers: "off" });
  host.addCluster("c1");
  const hostile = await startHostileApi(await host.openPort("c1"));
  return {
    hostile,
    async stop() {
      await hostile.stop();
      await host.stop();
    },
  };
});
afterEach(() => api.hostile.attack(undefined));

const program = new URL("../../../support/measured-worker.ts", import.meta.url).pathname;
/** Enough objects of one kind and namespace that the worker reads them with a LIST. */
const objects = Array.from({ length: 8 }, (_, index) => configMap(`default/c${index}`));

async function work(attack?: Attack) {
  const { server, caData, token } = api.hostile;
  api.hostile.attack(attack);
  const child = startNode([`--max-old-space-size=${heapMiB}`, program], {
    cwd: process.cwd(),
    env: process.env,
    input: JSON.stringify({ cluster: { server, caData, token }, objects }),
  });
  const { code, out, err } = await ranTo(child);
  expect(code, err.slice(0, 2_000)).toBe(0);
  return JSON.parse(out) as { peakMiB: number; observed: { phase: string; reason: string; message: string } };
}

const mebibyte = 1024 * 1024;
const isList = (url = "") => url.includes("/configmaps?") && url.includes("limit=");
const filler = (item: string) => item.repeat(Math.ceil(65_536 / item.length));
const named = (index: number) => `{"metadata":{"name":"n${index}","uid":"u","resourceVersion":"1"}}`;

function listOf(item: string, bytes: number): Attack {
  const piece = filler(`${item},`);
  return (request, response) => {
    if (!isList(request.url)) return false;
    response.writeHead(200, { "content-type": "application/json" });
    const pieces = Array.from({ length: Math.floor(bytes / piece.length) }, () => piece);
    void pour(response, ['{"metadata":{},"items":[', ...pieces, `${item}]}`]);
    return true;
  };
}

/** Sends each byte in a chunk of its own, which Node's server would not do by itself. */
function bytewise(bytes: number): Attack {
  const chunks = "1\r\n \r\n".repeat(10_000);
  return (request, response) => {
    const { socket } = response;
    if (!isList(request.url) || socket === null) return false;
    socket.write("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n");
    for (let sent = 0; sent < bytes; sent += 10_000) socket.write(chunks);
    socket.write("0\r\n\r\n");
    return true;
  };
}

function endlessPages(): Attack {
  let page = 0;
  return (request, response) => {
    if (!isList(request.url)) return false;
    page += 1;
    const items = Array.from({ length: 10_000 }, (_, index) => named(page * 10_000 + index));
    response.writeHead(200, { "content-type": "application/json" });
    response.end(`{"metadata":{"continue":"t${page}"},"items":[${items.join(",")}]}`);
    return true;
  };
}

const tooLarge = {
  phase: "Failed",
  reason: "AnswerTooLarge",
  message: expect.stringContaining("cluster c1: GET /api/v1"),
};
const tooLong = { phase: "Failed", reason: "ListTooLong", message: expect.stringContaining("100000 items") };

test.each<readonly [string, Attack, object]>([
  ["24 MB of empty objects", listOf("{}", 23.9 * mebibyte), tooLarge],
  ["12 MB of empty objects", listOf("{}", 12 * mebibyte), tooLarge],
  ["24 MB of small objects", listOf(named(1), 23.9 * mebibyte), tooLarge],
  ["8 MB of long integers", listOf("1234567890123456789", 8 * mebibyte), tooLarge],
  ["a body of one byte in each chunk", bytewise(150_000), tooLarge],
  ["pages without an end", endlessPages(), tooLong],
])("a worker that is sent %s uses at most half of its memory", { timeout: 120_000 }, async (_name, attack, finding) => {
  const { peakMiB, observed } = await work(attack);
  expect(observed).toMatchObject(finding);
  expect(peakMiB).toBeLessThan(functionMiB / 2);
});
