/** The apply function alone in a process, told by whoever started it what to do; see limited-sandbox.ts. */
import { randomUUID } from "node:crypto";
import { closeSync, openSync } from "node:fs";
import { applyEnv } from "#functions/apply/env.ts";
import { wireApply } from "#functions/apply/wire.ts";
import { createLambdaContext } from "#local/aws/lambda/lambda-context.ts";
import { type AwsClientOptions, awsClients } from "#shared/lambda/aws-clients.ts";
import type { SqsHandler } from "#shared/lambda/sqs-handler.ts";

export type ToSandbox =
  | { readonly kind: "wire"; readonly environment: Readonly<Record<string, string>>; readonly aws: AwsClientOptions }
  | { readonly kind: "invoke"; readonly cluster: string }
  /** Takes every descriptor that is left. */
  | { readonly kind: "hoard" }
  | { readonly kind: "release" };

export interface FromSandbox {
  /** Messages that went back to the queue. */
  readonly returned: number;
}

/** Of the control stack. */
const timeoutSeconds = 300;
const hoarded: number[] = [];
let handler: SqsHandler | undefined;

async function act(message: ToSandbox): Promise<number> {
  switch (message.kind) {
    case "wire":
      handler = wireApply(applyEnv.parse(message.environment), awsClients(message.aws));
      return 0;
    case "invoke":
      return invoke(message.cluster);
    case "hoard":
      hoard();
      return 0;
    case "release":
      for (const descriptor of hoarded.splice(0)) closeSync(descriptor);
      return 0;
  }
}

async function invoke(cluster: string): Promise<number> {
  if (handler === undefined) throw new Error("nothing is wired");
  const body = JSON.stringify({ to: "apply", cluster });
  // Too often to come back by itself: what is next is sent.
  const attributes = { ApproximateReceiveCount: "9" };
  const record = { messageId: randomUUID(), receiptHandle: randomUUID(), body, attributes };
  const context = createLambdaContext({ functionName: "apply", timeoutSeconds });
  return (await handler({ Records: [record] }, context)).batchItemFailures.length;
}

function hoard(): void {
  try {
    for (;;) hoarded.push(openSync("/dev/null", "r"));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EMFILE") throw error;
  }
}

process.on("message", (message: ToSandbox) => {
  void act(message).then((returned) => process.send?.({ returned } satisfies FromSandbox));
});
