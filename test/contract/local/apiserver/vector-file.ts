import { readFileSync } from "node:fs";
import { type Json, type JsonObject, parseJson } from "#shared/base/json.ts";

/** One recorded exchange with a real kube-apiserver 1.36.2. */
export interface VectorStep {
  readonly name: string;
  readonly as?: string;
  readonly request?: VectorRequest;
  readonly response?: VectorResponse;
  readonly poll?: boolean;
  readonly during?: readonly VectorStep[];
  readonly note?: string;
  readonly loose?: readonly string[];
  /** A command of kubectl; `requests` has the requests that it sent. */
  readonly command?: string;
  readonly requests?: readonly VectorStep[];
}

export interface VectorRequest {
  readonly method: string;
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Json;
}

export interface VectorResponse {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Json;
}

export function readVectorFile(file: string): readonly VectorStep[] {
  const parsed = parseJson(readFileSync(new URL(`../../../fixtures/apiserver/${file}`, import.meta.url), "utf8"));
  return ((parsed as JsonObject).steps as unknown as readonly VectorStep[]).flatMap(exchangesOf);
}

/** The exchanges of a command, except those without a recorded answer and those in protobuf, which is not supported. */
function exchangesOf(step: VectorStep): readonly VectorStep[] {
  if (step.requests === undefined) return [step];
  return step.requests.filter(isComparable).map((each) => {
    const { method, path } = each.request ?? { method: "", path: "" };
    return { ...each, name: `${step.name}: ${method} ${path.slice(0, 80)}` };
  });
}

function isComparable({ request, response }: VectorStep): boolean {
  const { accept = "", "content-type": contentType = "" } = request?.headers ?? {};
  const known = response?.body !== undefined && request?.body !== "<left out>";
  return known && ![accept.split(",")[0], contentType].some((type) => type?.includes("protobuf"));
}
