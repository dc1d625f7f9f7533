import * as z from "zod";
import { receiveGithubEvent, type WebhookPorts } from "#functions/webhook/webhook.ts";
import { errorCode, errorMessage } from "#shared/base/errors.ts";
import { type HttpHandler, httpHandler, jsonAnswer } from "#shared/lambda/http-handler.ts";

/** The part of an HTTP API event (payload format 2.0) that Starling reads. */
const httpEvent = z.object({
  headers: z.record(z.string(), z.string().optional()).default({}),
  body: z.string().default(""),
  isBase64Encoded: z.boolean().default(false),
});

/** The endpoint over any ports. A failure of Starling's own is a 503 without detail: the sender shows and repeats it. */
export function webhookHandler(ports: WebhookPorts): HttpHandler {
  return httpHandler({
    begins: "push",
    async work(event) {
      const { headers, body, isBase64Encoded } = httpEvent.parse(event);
      const named = Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value] as const);
      const bytes = Buffer.from(body, isBase64Encoded ? "base64" : "utf8");
      const { statusCode, message } = await receiveGithubEvent(
        { headers: Object.fromEntries(named), body: bytes },
        ports,
      );
      return jsonAnswer(statusCode, { message });
    },
    answerTo(error) {
      ports.log.error("webhook failed", { code: errorCode(error), error: errorMessage(error) });
      return jsonAnswer(503, { message: "unavailable" });
    },
  });
}
