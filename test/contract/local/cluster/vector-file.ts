import { readFileSync } from "node:fs";
import { type Json, type JsonObject, parseJson } from "#shared/domain/json.ts";

/** One recorded exchange; see the README of the recording: a real kube-apiserver 1.36.2. */
export interface VectorStep {
  readonly name: string;
  readonly as?: string;
  readonly request?: VectorRequest;
  readonly response?: VectorResponse;
  readonly poll?: boolean;
  readonly during?: readonly VectorStep[];
  readonly note?: string;
  readonly loose?: readonly string[];
  readonly command?: string;
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
  return (parsed as JsonObject).steps as unknown as readonly VectorStep[];
}
