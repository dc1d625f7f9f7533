import { buildApp } from "fauxqs";
import { keepObjects } from "#local/aws/services/object-files.ts";
import { emulatorHost } from "#local/aws/services/queue-urls.ts";
import { withoutConnectionHeaders } from "#local/aws/wire/emulator-client.ts";
import type { Forward } from "#local/aws/wire/fault-context.ts";

export interface SqsAndS3Server {
  /** Sends a request to either service. */
  readonly send: Forward;
  stop(): Promise<void>;
}

export interface SqsAndS3Options {
  /** The folder that keeps S3 objects over restarts. The default keeps objects in memory. Messages are never kept. */
  readonly stateDir?: string;
  /** The region in ARNs when a request is not signed. The default is `us-east-1`. */
  readonly region?: string;
}

/** S3 accepts 5 GB in one PUT. The default of fauxqs is 11 MiB, less than the archive of a medium-sized repository. */
const maxObjectBytes = 5 * 1024 ** 3;

/**
 * SQS and S3 on this machine, in this process (fauxqs). It verifies no signatures and therefore has no port. Requests
 * reach it through the fault proxy, which verifies them.
 *
 * fauxqs ignores conditional writes (`If-None-Match: *` overwrites) and knows a queue only by the exact URL that it
 * returned. Messages do not survive a restart on purpose. Rows hold the state, and the watchdog sends lost messages
 * again.
 */
export async function startSqsAndS3(options: SqsAndS3Options = {}): Promise<SqsAndS3Server> {
  const app = buildApp({ logger: false, defaultRegion: options.region ?? "us-east-1" });
  app.removeContentTypeParser("*");
  app.addContentTypeParser("*", { parseAs: "buffer", bodyLimit: maxObjectBytes }, (_request, body, done) => {
    done(null, body);
  });
  if (options.stateDir !== undefined) await keepObjects(app, options.stateDir);
  await app.ready();
  return {
    async send({ method, path: url, headers, body }) {
      const reply = await app.inject({
        method: method as "GET",
        url,
        headers: { ...withoutConnectionHeaders(headers), host: emulatorHost, "content-length": `${body.length}` },
        payload: body,
      });
      const answered = withoutConnectionHeaders(reply.headers);
      const length = method === "HEAD" ? reply.headers["content-length"] : reply.rawPayload.length;
      if (length !== undefined) answered["content-length"] = `${length}`;
      return { status: reply.statusCode, headers: answered, body: reply.rawPayload };
    },
    async stop() {
      await app.close();
    },
  };
}
