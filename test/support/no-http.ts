import type { HttpRemote } from "#shared/ports.ts";

/** For tests whose Sources are all in git. */
export const noHttp: HttpRemote = {
  ask: ({ url }) => Promise.reject(new Error(`nothing should ask ${url}`)),
};
