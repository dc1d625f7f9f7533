import type { OwnRole } from "#functions/resolve/aws-login.ts";

/** For tests whose Sources do not sign in as Starling's own role. */
export const noRole: OwnRole = {
  credentials: () => Promise.reject(new Error("nothing should sign as the role")),
  grants: [],
};
