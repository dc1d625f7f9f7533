import type { AwsCall } from "#local/aws/wire/aws-call.ts";
import type { FaultContext } from "#local/aws/wire/fault-context.ts";

export interface Silences {
  /** Delays an SQS call while the region is silent. `"reset"` means that the call then fails. */
  before(call: AwsCall): Promise<"pass" | "reset">;
  /** Delays an answer in the same way, for a poll that was open when the silence began. */
  after(call: AwsCall): Promise<"pass" | "reset">;
  /** Ends the silence. */
  stop(): void;
}

interface Silence {
  /** `mute` answers no call. `deaf` accepts every call and delivers no message. */
  readonly kind: "mute" | "deaf";
  readonly over: Promise<void>;
  readonly end: () => void;
}

/** Makes SQS of the region silent for a random time. */
export function createSilences(context: FaultContext): Silences {
  let silence: Silence | undefined;

  function begin(maxSilenceMs: number): void {
    const kind = context.random.chance(0.5) ? "mute" : "deaf";
    const lastsMs = context.random.integer(Math.ceil(maxSilenceMs / 4), maxSilenceMs);
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(end, lastsMs);
    function end(): void {
      clearTimeout(timer);
      silence = undefined;
      resolve();
    }
    silence = { kind, over: promise, end };
    context.injected(`sqs:silence:${kind}`);
  }

  async function wait(call: AwsCall): Promise<"pass" | "reset"> {
    if (silence === undefined) return "pass";
    const { kind, over } = silence;
    if (kind === "deaf" && call.operation !== "ReceiveMessage") return "pass";
    await over;
    return kind === "mute" ? "reset" : "pass";
  }

  return {
    async before(call) {
      if (call.service !== "sqs") return "pass";
      const { silence: chance, maxSilenceMs } = context.faults().sqs;
      if (context.random.chance(chance) && silence === undefined) begin(maxSilenceMs);
      return wait(call);
    },
    after: (call) => (call.service === "sqs" ? wait(call) : Promise.resolve("pass")),
    stop: () => silence?.end(),
  };
}
