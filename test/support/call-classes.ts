/** Every call of a run by its kind, so that the n-th of each can be failed. */

import { accessKeyIdOf } from "#local/aws/iam/sessions.ts";
import type { AwsCall } from "#local/aws/wire/aws-call.ts";
import type { Machine } from "#local/machine/machine.ts";

/** E.g. `dynamodb:GetItem`. The calls of people and of the tests' own hands have none; queues are polled by Lambda. */
export function classOfCall(call: AwsCall, people: Machine["api"]["credentials"]): string | undefined {
  if (call.service !== "sqs" && accessKeyIdOf(call) === people.accessKeyId) return undefined;
  return `${call.service}:${call.operation}`;
}

/** E.g. `kube PATCH configmaps`, `kube GET /apis`. */
export function classOfRequest({ method, path }: { readonly method: string; readonly path: string }): string {
  const below = /^\/(?:api\/[^/]+|apis\/[^/]+\/[^/]+)\/(?:namespaces\/[^/]+\/(?=.))?([^/]+)/.exec(path);
  return `kube ${method} ${below?.[1] ?? path}`;
}

/** `git GET /info/refs`, `git POST /git-upload-pack`. */
export function classOfFetch({ method, path }: { readonly method: string; readonly path: string }): string {
  return `git ${method} ${/\.git(\/[^?]*)/.exec(path)?.[1] ?? path}`;
}
