import { randomUUID } from "node:crypto";

/** A function of an event and a context, whatever event it expects. */
export type LambdaHandler = (event: never, context: LambdaContext) => unknown;

/** The context object of the Node.js runtime, without the members from before promises. */
export interface LambdaContext {
  readonly awsRequestId: string;
  readonly functionName: string;
  readonly functionVersion: string;
  readonly invokedFunctionArn: string;
  readonly memoryLimitInMB: string;
  readonly logGroupName: string;
  readonly logStreamName: string;
  callbackWaitsForEmptyEventLoop: boolean;
  /** The milliseconds until the function's timeout, never below 0. */
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

/** A new context whose time starts now. @param nowMs - the clock. The default is the machine's monotonic clock. */
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
