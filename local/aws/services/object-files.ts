import { createHash } from "node:crypto";
import { mkdir, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { buildApp } from "fauxqs";
import { takeTurns } from "#local/base/take-turns.ts";

type S3App = ReturnType<typeof buildApp>;

/** The first line of an object's file. The bytes of the object follow. */
interface StoredObject {
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
}

const keptHeaders = /^(content-(type|encoding|language|disposition)|cache-control|x-amz-meta-.+)$/;
const newline = 0x0a;

/**
 * Keeps S3 objects in files, one per object. It restores the objects of an earlier run, then writes each change before
 * the answer is sent. `LastModified` of a restored object is the time of the restart.
 */
export async function keepObjects(app: S3App, stateDir: string): Promise<void> {
  const folder = join(stateDir, "s3");
  await mkdir(folder, { recursive: true });
  /** Writes run in turn and store the state that they find, so the last write stores the last state. */
  const inTurn = takeTurns();
  let restored = false;

  async function writeThrough(path: string): Promise<void> {
    const file = join(folder, createHash("sha256").update(path).digest("hex"));
    const answer = await app.inject({ method: "GET", url: path });
    if (answer.statusCode === 404) {
      await rm(file, { force: true });
      return;
    }
    const headers = Object.fromEntries(
      Object.entries(answer.headers).flatMap(([name, value]) =>
        keptHeaders.test(name) ? [[name, String(value)]] : [],
      ),
    );
    const head = `${JSON.stringify({ path, headers } satisfies StoredObject)}\n`;
    await writeFile(`${file}.new`, Buffer.concat([Buffer.from(head), answer.rawPayload]));
    await rename(`${file}.new`, file);
  }

  app.addHook("onSend", async (request, reply) => {
    if (!restored || reply.statusCode >= 300 || !["PUT", "POST", "DELETE"].includes(request.method)) return;
    await Promise.all(objectsChangedBy(request).map((path) => inTurn(path, () => writeThrough(path))));
  });
  await restore(app, folder);
  restored = true;
}

interface ChangingRequest {
  readonly method: string;
  readonly url: string;
  readonly body: unknown;
}

/** The paths (`/bucket/key`, percent-encoded) of objects that a successful request may have changed. */
function objectsChangedBy({ method, url, body }: ChangingRequest): string[] {
  const { pathname, searchParams } = new URL(url, "http://127.0.0.1");
  const [, bucket = "", ...key] = pathname.split("/");
  if (method === "POST" && searchParams.has("delete")) {
    const keys = String(body).matchAll(/<Key>([\s\S]*?)<\/Key>/g);
    return [...keys].map(([, found = ""]) => objectPath(bucket, decodeXml(found)));
  }
  return key.join("") === "" ? [] : [objectPath(bucket, decodeURIComponent(key.join("/")))];
}

function objectPath(bucket: string, key: string): string {
  return `/${[bucket, ...key.split("/")].map(encodeURIComponent).join("/")}`;
}

const xmlEntities: Readonly<Record<string, string>> = { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'" };

function decodeXml(text: string): string {
  return text.replaceAll(/&(amp|lt|gt|quot|apos);/g, (whole, name: string) => xmlEntities[name] ?? whole);
}

async function restore(app: S3App, folder: string): Promise<void> {
  for (const name of await readdir(folder)) {
    if (name.endsWith(".new")) continue;
    const bytes = await readFile(join(folder, name));
    const headEnd = bytes.indexOf(newline);
    const { path, headers } = JSON.parse(bytes.subarray(0, headEnd).toString()) as StoredObject;
    await app.inject({ method: "PUT", url: path.split("/").slice(0, 2).join("/") });
    const answer = await app.inject({ method: "PUT", url: path, headers, payload: bytes.subarray(headEnd + 1) });
    if (answer.statusCode !== 200) {
      throw new Error(
        `cannot restore the object ${path} from ${join(folder, name)}: ${answer.statusCode} ${answer.body}`,
      );
    }
  }
}
