/** A function for threads that follows the message in its event. */
import type { LambdaHandler } from "#local/aws/lambda/lambda-context.ts";
import type { SqsLambdaEvent } from "#local/aws/lambda/sqs-event.ts";

/** Module state; each thread has its own. */
let invocations = 0;

export function createHandler(greeting: string): LambdaHandler {
  return async (event: SqsLambdaEvent) => {
    invocations += 1;
    const [record] = event.Records;
    if (record?.attributes.ApproximateReceiveCount !== "1") return { greeting, invocations };
    if (record.body === "eat") eat();
    if (record.body === "spin") for (;;);
    if (record.body === "throw") throw new RangeError("out of range");
    return { greeting, invocations };
  };
}

/** Allocates memory until none is left. */
function eat(): void {
  const eaten: number[][] = [];
  for (;;) eaten.push(new Array<number>(100_000).fill(1.5));
}
