import type { ServerResponse } from "node:http";

/** Before anything was done, or in the middle of the answer, which then is no whole one whatever `as` says. */
export interface Cut {
  readonly when: "before" | "after";
  readonly as: "reset" | "serverError";
}

/** Answers nothing, or that there is nothing to be had now. */
export function refuse(response: ServerResponse, { as }: Pick<Cut, "as">): void {
  if (as === "reset") response.destroy();
  else response.writeHead(503, { "content-type": "text/plain" }).end("Service Unavailable\n");
}
