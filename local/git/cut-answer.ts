import type { ServerResponse } from "node:http";

/**
 * A failure of a request: before any work, or in the middle of the answer. In the second case the answer is always
 * incomplete, whatever `as` is.
 */
export interface Cut {
  readonly when: "before" | "after";
  readonly as: "reset" | "serverError";
}

/** Fails a request: cuts its connection, or answers 503. */
export function refuse(response: ServerResponse, { as }: Pick<Cut, "as">): void {
  if (as === "reset") response.destroy();
  else response.writeHead(503, { "content-type": "text/plain" }).end("Service Unavailable\n");
}
