import type { BodyReader, Provider, Push, WebhookRequest } from "#functions/webhook/providers/provider.ts";

export interface WebhookAnswer {
  readonly statusCode: 200 | 202 | 400 | 401 | 404 | 413 | 503;
  readonly message: string;
  /** Number of Sources that are polled. */
  readonly polled?: number;
}

/** Hosts send up to 25 MB, but Starling reads only a few names; the next regular poll makes up for a refused push. */
const maxBodyBytes = 3 * 1024 * 1024;

/** @returns the refusal of a body that is too large. It is asked before any row or secret is read. */
export function tooLarge({ body }: WebhookRequest): WebhookAnswer | undefined {
  if (body.length <= maxBodyBytes) return undefined;
  return { statusCode: 413, message: `the body has more than ${maxBodyBytes} bytes` };
}

/** An answer without a poll. */
export interface Answered {
  readonly answer: WebhookAnswer;
  /** Why the sender is refused, for people who read the Receiver. */
  readonly reason?: string;
  /** Nobody proved anything, and nothing is refused. */
  readonly isUnproven?: true;
}

export type Proven = { readonly push: Push } | Answered;

/** The push of a request whose sender knows one of the secrets, or the answer to any other request. */
export function proveDelivery(provider: Provider, request: WebhookRequest, secrets: readonly string[]): Proven {
  if (!provider.isGenuine(request, secrets)) {
    if (secrets.length > 0 && provider.isUnsignedPing?.(request) === true)
      return { ...answered(200, "pong; this host does not sign tests, so the secret is not tested"), isUnproven: true };
    return unauthorized("the request does not prove that its sender knows a secret");
  }
  return readDelivery(provider, request);
}

/** The push of a request whose sender is proven. */
export function readDelivery(reader: BodyReader, request: WebhookRequest): Proven {
  const push = reader.read(request);
  if (push === "ping") return answered(200, "pong");
  if (push === "other") return notFollowed;
  return push === undefined ? answered(400, "the body is no push event") : { push };
}

export function answered(statusCode: WebhookAnswer["statusCode"], message: string): Answered {
  return { answer: { statusCode, message } };
}

/** @param reason - is not for the sender. */
export function unauthorized(reason: string): Answered {
  return { ...answered(401, "unauthorized"), reason };
}

export const notFollowed = answered(202, "only push events are followed");
