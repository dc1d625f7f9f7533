import type { InvocationOutcome, LambdaFunction } from "#local/aws/lambda/lambda-function.ts";

/** The payload that a caller gets for an invocation that failed. */
export interface FunctionError {
  readonly errorType: string;
  readonly errorMessage: string;
}

export function functionError(
  outcome: Exclude<InvocationOutcome, { readonly outcome: "returned" | "throttled" }>,
  { timeoutSeconds }: Pick<LambdaFunction, "timeoutSeconds">,
): FunctionError {
  switch (outcome.outcome) {
    case "failed": {
      const { name, message } = outcome.error instanceof Error ? outcome.error : new Error(`${outcome.error}`);
      return { errorType: name, errorMessage: message };
    }
    case "timeout":
      return { errorType: "Sandbox.Timedout", errorMessage: `Error: Task timed out after ${timeoutSeconds} seconds` };
    case "killed":
      return { errorType: "Runtime.ExitError", errorMessage: "Error: Runtime exited with error: signal: killed" };
  }
}
