import { buffer } from "node:stream/consumers";
import type { S3Client } from "@aws-sdk/client-s3";
import { startSqsAndS3 } from "#local/aws/services/sqs-s3-server.ts";
import type { HttpReply } from "#local/aws/wire/emulator-client.ts";
import { serveOnLoopback } from "#local/base/loopback-server.ts";
import { type RegionalClients, regionalClients } from "#shared/lambda/resolve-clients.ts";

export interface BucketRequest {
  /** `GET /bucket/key`. */
  readonly line: string;
  readonly query: URLSearchParams;
  readonly headers: Readonly<Record<string, string>>;
}

type Instead = HttpReply | undefined;

/** S3 on a port of this machine, with the requests that it got. */
export interface BucketServer extends RegionalClients {
  readonly requests: BucketRequest[];
  /** Runs before each answer; what it returns is the answer instead. */
  before: (request: BucketRequest) => Promise<Instead> | Instead;
  /** Stores objects, in a bucket that may be new. The requests do not count. */
  put(bucket: string, objects: Readonly<Record<string, string>>): Promise<void>;
  remove(bucket: string, key: string): Promise<void>;
  stop(): Promise<void>;
}

export async function startBucketServer(): Promise<BucketServer> {
  const emulator = await startSqsAndS3();
  const clients: S3Client[] = [];
  const requests: BucketRequest[] = [];
  const server = await serveOnLoopback(async (incoming, response) => {
    const { method = "GET", url = "/" } = incoming;
    const headers = Object.fromEntries(Object.entries(incoming.headers).map(([name, value]) => [name, `${value}`]));
    const { pathname, searchParams: query } = new URL(url, "http://127.0.0.1");
    const request = { line: `${method} ${decodeURIComponent(pathname)}`, query, headers };
    requests.push(request);
    const body = await buffer(incoming);
    const reply = (await made.before(request)) ?? (await emulator.send({ method, path: url, headers, body }));
    response.writeHead(reply.status, reply.headers).end(reply.body);
  });
  const { s3In } = regionalClients({
    region: "us-east-1",
    credentials: { accessKeyId: "local", secretAccessKey: "local" },
    endpoints: { s3: server.origin },
  });
  const write = async (method: string, path: string, text = "") => {
    const reply = await emulator.send({ method, path: encodeURI(path), headers: {}, body: Buffer.from(text) });
    if (reply.status >= 300 && reply.status !== 409)
      throw new Error(`${method} ${path}: ${reply.status} ${reply.body}`);
  };
  const made: BucketServer = {
    requests,
    before: () => undefined,
    s3In(region) {
      const client = s3In(region);
      clients.push(client);
      return client;
    },
    async put(bucket, objects) {
      await write("PUT", `/${bucket}`);
      for (const [key, text] of Object.entries(objects)) await write("PUT", `/${bucket}/${key}`, text);
    },
    remove: (bucket, key) => write("DELETE", `/${bucket}/${key}`),
    async stop() {
      for (const client of clients) client.destroy();
      await server.stop();
      await emulator.stop();
    },
  };
  return made;
}
