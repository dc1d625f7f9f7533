import type { ServerResponse } from "node:http";

/** Before anything was done, or once the first bytes of the answer are on their way. */
export interface Cut {
  readonly when: "before" | "after";
  readonly as: "reset" | "serverError";
}

/** Spoils the answer to one request; `"over"` when there is nothing left to be done about it. */
export function cutAnswer(response: ServerResponse, { when, as }: Cut): "over" | "goes on" {
  if (when === "after") {
    response.once("pipe", (source) => {
      source.once("data", () => setImmediate(() => response.destroy()));
    });
    return "goes on";
  }
  if (as === "reset") response.destroy();
  else response.writeHead(503, { "content-type": "text/plain" }).end("Service Unavailable\n");
  return "over";
}
