import * as z from "zod";
import { address, type GitHost, readBody, referenceName } from "#functions/webhook/hosts/git-host.ts";
import { isSigned } from "#functions/webhook/sender-proof.ts";
import { defined } from "#shared/base/defined.ts";

const change = z.object({ url: address.min(1), refs: z.array(referenceName).min(1).optional() });
const test = z.object({ ping: z.literal(true) });

/** Any program that signs `{"url": ..., "refs": [...]}`. Without refs, every Source at the address is polled. */
export const generic: GitHost = {
  isGenuine: ({ headers, body }, secrets) =>
    isSigned({ body, header: headers["x-signature"], prefix: "sha256=" }, secrets) ||
    isSigned({ body, header: headers["x-signature"], prefix: "sha512=", hash: "sha512" }, secrets),
  read(request) {
    const read = readBody(z.union([test, change]), request);
    if (read === undefined) return undefined;
    return "ping" in read ? "ping" : { urls: [read.url], ...defined({ refs: read.refs }) };
  },
};
