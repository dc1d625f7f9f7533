import * as z from "zod";
import { changeOf } from "#functions/webhook/bus-event.ts";
import { receiveDelivery } from "#functions/webhook/receive-delivery.ts";
import { DeliveryRecords } from "#functions/webhook/record-delivery.ts";
import { IssuerKeys } from "#functions/webhook/tokens/issuer-keys.ts";
import { receiveEvent, wakeSources } from "#functions/webhook/webhook.ts";
import type { WebhookPorts } from "#functions/webhook/webhook-ports.ts";
import { newCorrelation, underCorrelation } from "#shared/adapters/correlation.ts";
import { errorCode, errorMessage } from "#shared/base/errors.ts";
import { receiverPath } from "#shared/fleet/receiver-id.ts";
import { type HttpHandler, httpHandler, jsonAnswer } from "#shared/lambda/http-handler.ts";

/** The part of an HTTP API event (payload format 2.0) that Starling reads. */
const httpEvent = z.object({
  /** `/hook/HOST`, or `/hook/r/ID` of a Receiver. The gateway passes no other path. */
  rawPath: z.string().default(""),
  rawQueryString: z.string().default(""),
  headers: z.record(z.string(), z.string().optional()).default({}),
  body: z.string().default(""),
  isBase64Encoded: z.boolean().default(false),
});

/**
 * The endpoint over any ports. A failure of Starling's own is a 503 without detail: the sender shows and repeats it. Events
 * of the account's bus come here, too: they have no path, and an error of theirs is thrown, because Lambda repeats them.
 */
export function webhookHandler(ports: WebhookPorts): HttpHandler {
  const http = httpOf(ports);
  return async (event, context) => {
    const change = changeOf(event);
    if (change === undefined) return http(event, context);
    const { statusCode, message } = await underCorrelation(newCorrelation("push", ports.clock.now()), () =>
      wakeSources(change, { ports, about: { host: "bus" } }),
    );
    return jsonAnswer(statusCode, { message });
  };
}

function httpOf(ports: WebhookPorts): HttpHandler {
  const issuers = new IssuerKeys(ports);
  const records = new DeliveryRecords(ports);
  return httpHandler({
    begins: "push",
    async work(event) {
      const { rawPath, rawQueryString, headers, body, isBase64Encoded } = httpEvent.parse(event);
      const named = Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value] as const);
      const bytes = Buffer.from(body, isBase64Encoded ? "base64" : "utf8");
      const last = rawPath.slice(rawPath.lastIndexOf("/") + 1);
      const token = new URLSearchParams(rawQueryString).get("token") ?? undefined;
      const request = { headers: Object.fromEntries(named), body: bytes, token };
      const { statusCode, message } = rawPath.startsWith(receiverPath(""))
        ? await receiveDelivery(last, request, { ports, issuers, records })
        : await receiveEvent(last, request, ports);
      return jsonAnswer(statusCode, { message });
    },
    answerTo(error) {
      ports.log.error("webhook failed", { code: errorCode(error), error: errorMessage(error) });
      return jsonAnswer(503, { message: "unavailable" });
    },
  });
}
