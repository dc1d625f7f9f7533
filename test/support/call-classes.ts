/** Classifies every call of a run, so that a test can make the n-th call of each class fail. */

import { accessKeyIdOf } from "#local/aws/iam/sessions.ts";
import type { AwsCall } from "#local/aws/wire/aws-call.ts";
import type { Machine } from "#local/machine/machine.ts";

/** For example `dynamodb:GetItem`. Undefined for calls of people and tests, and for polls of queues by Lambda. */
export function classOfCall(call: AwsCall, people: Machine["api"]["credentials"]): string | undefined {
  if (call.service !== "sqs" && accessKeyIdOf(call) === people.accessKeyId) return undefined;
  return `${call.service}:${call.operation}`;
}

/** For example `kube PATCH configmaps` or `kube GET /apis`. */
export function classOfRequest({ method, path }: { readonly method: string; readonly path: string }): string {
  const below = /^\/(?:api\/[^/]+|apis\/[^/]+\/[^/]+)\/(?:namespaces\/[^/]+\/(?=.))?([^/]+)/.exec(path);
  return `kube ${method} ${below?.[1] ?? path}`;
}

/** For example `git GET /info/refs` or `git POST /git-upload-pack`. */
export function classOfFetch({ method, path }: { readonly method: string; readonly path: string }): string {
  return `git ${method} ${/\.git(\/[^?]*)/.exec(path)?.[1] ?? path}`;
}
