/** @param text - `fixed=https://sqs...,spoke=https://sqs...`; absent where `home` is the only zone. @returns URLs by zone. */
export function parseZoneQueues(text: string | undefined): ReadonlyMap<string, string> {
  return new Map(text?.split(",").map((pair) => pair.split("=") as [string, string]));
}
