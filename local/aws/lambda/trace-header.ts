/**
 * X-Amzn-Trace-Id, by which Lambda detects chains of invocations. `Lineage` counts the invocations of each function in
 * the chain. After 16 invocations a function is not invoked again, unless its RecursiveLoop is Allow
 * (docs.aws.amazon.com/lambda/latest/dg/invocation-recursion.html). SQS stores the sender's header as the system
 * attribute `AWSTraceHeader` of the message.
 */
import { createHash, randomBytes } from "node:crypto";

/** The most invocations of one function in one chain. */
export const mostHops = 16;

/** The number of invocations of the function in the chain of a header. */
export function hopsOf(header: string | undefined, functionName: string): number {
  return lineageOf(header).get(nameOf(functionName)) ?? 0;
}

/** The header of an invocation with these headers as its cause. For a batch, the longest chain counts. */
export function nextTrace(functionName: string, headers: readonly (string | undefined)[]): string {
  const lineage = new Map<string, number>();
  for (const header of headers) {
    for (const [name, count] of lineageOf(header)) lineage.set(name, Math.max(count, lineage.get(name) ?? 0));
  }
  const own = nameOf(functionName);
  lineage.set(own, (lineage.get(own) ?? 0) + 1);
  const root = headers.map((header) => /Root=([^;]+)/.exec(header ?? "")?.[1]).find((found) => found !== undefined);
  const counts = [...lineage].map(([name, count]) => `${name}:${count}`);
  return `Root=${root ?? newRoot()};Parent=${randomBytes(8).toString("hex")};Sampled=0;Lineage=${counts.join("|")}`;
}

function lineageOf(header: string | undefined): ReadonlyMap<string, number> {
  const text = /Lineage=([^;]+)/.exec(header ?? "")?.[1] ?? "";
  return new Map(
    text.split("|").flatMap((part) => {
      const [name = "", count] = part.split(":");
      return count === undefined ? [] : [[name, Number(count)] as const];
    }),
  );
}

function nameOf(functionName: string): string {
  return createHash("sha256").update(functionName).digest("hex").slice(0, 8);
}

function newRoot(): string {
  return `1-${Math.floor(Date.now() / 1000).toString(16)}-${randomBytes(12).toString("hex")}`;
}
