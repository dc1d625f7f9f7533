import { buildApp } from "fauxqs";
import { keepObjects } from "#local/aws/object-files.ts";

export interface SqsAndS3Server {
  /** One endpoint for both services, e.g. `http://127.0.0.1:4566`. */
  readonly endpoint: string;
  stop(): Promise<void>;
}

export interface SqsAndS3Options {
  /** Folder that S3 objects are kept in across restarts; left out, they live in memory. Messages are never kept. */
  readonly stateDir?: string;
  readonly port?: number;
  /** Region of ARNs when a request is not signed; default `us-east-1`. */
  readonly region?: string;
}

/** S3 takes 5 GB in one PUT; fauxqs stops at 11 MiB, less than the archive of a middling repository. */
const maxObjectBytes = 5 * 1024 ** 3;

/**
 * SQS and S3 on this machine, in this process (fauxqs), on 127.0.0.1 only.
 *
 * Clients belong behind the fault proxy, not here: fauxqs ignores conditional writes (`If-None-Match: *` overwrites) and
 * knows a queue only by the exact URL it gave out. Messages do not survive a restart, by design: rows are the truth,
 * and the watchdog sends again what was lost.
 */
export async function startSqsAndS3(options: SqsAndS3Options = {}): Promise<SqsAndS3Server> {
  const app = buildApp({ logger: false, defaultRegion: options.region ?? "us-east-1" });
  app.removeContentTypeParser("*");
  app.addContentTypeParser("*", { parseAs: "buffer", bodyLimit: maxObjectBytes }, (_request, body, done) => {
    done(null, body);
  });
  if (options.stateDir !== undefined) await keepObjects(app, options.stateDir);
  const endpoint = await app.listen({ port: options.port ?? 0, host: "127.0.0.1" });
  return {
    endpoint,
    async stop() {
      const closed = app.close();
      app.server.closeAllConnections();
      await closed;
    },
  };
}
