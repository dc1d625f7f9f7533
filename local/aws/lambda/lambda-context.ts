import { randomUUID } from "node:crypto";

/** What a function is to this machine: any function of an event and a context, whatever event it expects. */
export type LambdaHandler = (event: never, context: LambdaContext) => unknown;

/** The members of the Node.js runtime's context object that do not predate promises. */
export interface LambdaContext {
  readonly awsRequestId: string;
  readonly functionName: string;
  readonly functionVersion: string;
  readonly invokedFunctionArn: string;
  readonly memoryLimitInMB: string;
  readonly logGroupName: string;
  readonly logStreamName: string;
  callbackWaitsForEmptyEventLoop: boolean;
  /** Milliseconds until the function's timeout; never below 0. */
  getRemainingTimeInMillis(): number;
}

export interface FunctionIdentity {
  readonly functionName: string;
  readonly timeoutSeconds: number;
  readonly memoryMb?: number;
  readonly region?: string;
  readonly accountId?: string;
}

export const localAccountId = "000000000000";
export const localRegion = "us-east-1";

/**
 * A fresh context, whose time starts now.
 * @param nowMs - what its time is told by; by default the machine's monotonic clock.
 */
export function createLambdaContext(identity: FunctionIdentity, nowMs = () => performance.now()): LambdaContext {
  const { functionName, timeoutSeconds, memoryMb = 1024, region = localRegion, accountId = localAccountId } = identity;
  const deadline = nowMs() + timeoutSeconds * 1000;
  return {
    awsRequestId: randomUUID(),
    functionName,
    functionVersion: "$LATEST",
    invokedFunctionArn: `arn:aws:lambda:${region}:${accountId}:function:${functionName}`,
    memoryLimitInMB: `${memoryMb}`,
    logGroupName: `/aws/lambda/${functionName}`,
    logStreamName: `local/[$LATEST]${randomUUID().replaceAll("-", "")}`,
    callbackWaitsForEmptyEventLoop: true,
    getRemainingTimeInMillis: () => Math.max(0, Math.round(deadline - nowMs())),
  };
}
