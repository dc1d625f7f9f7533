import { Readable, Transform } from "node:stream";
import type { S3Client } from "@aws-sdk/client-s3";

/** An answer was longer than the client takes. */
export class AnswerTooLong extends Error {
  constructor() {
    super("the answer is too long");
    this.name = "AnswerTooLong";
  }
}

/**
 * Ends the connection of an answer after this many bytes, with an `AnswerTooLong`: the SDK reads an answer whole before
 * it parses it. The content of an object is not counted; its reader knows the length.
 */
export function boundAnswers(client: S3Client, mostBytes: number): void {
  client.middlewareStack.add(
    (next, context) => async (args) => {
      const result = await next(args);
      const response = result.response as { readonly statusCode: number; body: unknown };
      const isContent = context.commandName === "GetObjectCommand" && response.statusCode === 200;
      if (!isContent && response.body instanceof Readable) response.body = bounded(response.body, mostBytes);
      return result;
    },
    { step: "deserialize", priority: "low", name: "boundAnswers", override: true },
  );
}

function bounded(body: Readable, mostBytes: number): Readable {
  let bytes = 0;
  const counted = new Transform({
    transform(chunk: Uint8Array, _encoding, done) {
      bytes += chunk.length;
      if (bytes > mostBytes) done(new AnswerTooLong());
      else done(null, chunk);
    },
  });
  counted.on("close", () => body.destroy());
  body.on("error", (error) => counted.destroy(error));
  return body.pipe(counted);
}
