import { buildApp } from "fauxqs";
import { keepObjects } from "#local/aws/services/object-files.ts";
import { emulatorHost } from "#local/aws/services/queue-urls.ts";
import { withoutConnectionHeaders } from "#local/aws/wire/emulator-client.ts";
import type { Forward } from "#local/aws/wire/fault-context.ts";

export interface SqsAndS3Server {
  /** Of both services. */
  readonly send: Forward;
  stop(): Promise<void>;
}

export interface SqsAndS3Options {
  /** Folder that S3 objects are kept in across restarts; left out, they live in memory. Messages are never kept. */
  readonly stateDir?: string;
  /** Region of ARNs when a request is not signed; default `us-east-1`. */
  readonly region?: string;
}

/** S3 takes 5 GB in one PUT; fauxqs stops at 11 MiB, less than the archive of a middling repository. */
const maxObjectBytes = 5 * 1024 ** 3;

/**
 * SQS and S3 on this machine, in this process (fauxqs). It has no port: it verifies no signature, and the way to it is the
 * fault proxy, which does.
 *
 * fauxqs also ignores conditional writes (`If-None-Match: *` overwrites) and knows a queue only by the exact URL it gave out. Messages do not survive a restart, by design: rows are the truth,
 * and the watchdog sends again what was lost.
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
