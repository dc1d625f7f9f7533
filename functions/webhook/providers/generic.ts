import * as z from "zod";
import { address, type Provider, readBody, referenceName } from "#functions/webhook/providers/provider.ts";
import { isSigned } from "#functions/webhook/sender-proof.ts";
import { defined } from "#shared/base/defined.ts";

const change = z.object({ url: address.min(1), refs: z.array(referenceName).min(1).optional() });
const test = z.object({ ping: z.literal(true) });
const anything = z.object({ url: address.min(1).optional(), refs: change.shape.refs });

/** Any program that signs `{"url": ..., "refs": [...]}`. Without refs, every Source at the address is polled. */
export const generic: Provider = {
  isGenuine: ({ headers, body }, secrets) =>
    isSigned({ body, header: headers["x-signature"], prefix: "sha256=" }, secrets) ||
    isSigned({ body, header: headers["x-signature"], prefix: "sha512=", hash: "sha512" }, secrets),
  read(request) {
    const read = readBody(z.union([test, change]), request);
    if (read === undefined) return undefined;
    return "ping" in read ? "ping" : { urls: [read.url], ...defined({ refs: read.refs }) };
  },
};

/** The same for a Receiver, which names its Sources itself: a body without an address, or no body, wakes all of them. */
export const genericOfReceiver: Provider = {
  ...generic,
  read(request) {
    if (request.body.length === 0) return {};
    const read = readBody(z.union([test, anything]), request);
    if (read === undefined) return undefined;
    return "ping" in read
      ? "ping"
      : defined({ urls: read.url === undefined ? undefined : [read.url], refs: read.refs });
  },
};
