import type * as z from "zod";
import type { HttpRequest } from "#functions/api/request/http-event.ts";
import { refusal } from "#functions/api/request/refusal.ts";
import { excerpt } from "#shared/base/excerpt.ts";
import { fieldText, issueWords, withoutFollowing } from "#shared/fleet/kinds/issue-words.ts";

/** The form of a cluster's or namespace's name. */
export const objectName = /^[a-z0-9][-a-z0-9]{0,62}$/;

/** Part of a key of the table, with the length limit of a key. */
export function stateOf(request: HttpRequest): { state?: string } {
  const { state } = request.query;
  if (state === undefined) return {};
  if (/^[A-Za-z]{1,63}$/.test(state)) return { state };
  throw refusal("BadRequest", `state is "${excerpt(state)}"; expected a word such as Ready or Failed`);
}

export function named<Parameter extends "cluster" | "namespace">(
  request: HttpRequest,
  parameter: Parameter,
): { readonly [name in Parameter]?: string } {
  const name = request.query[parameter];
  if (name === undefined) return {};
  if (objectName.test(name)) return { [parameter]: name } as { [name in Parameter]: string };
  throw refusal("BadRequest", `${parameter} is "${excerpt(name)}"; expected the name of one`);
}

/** @throws StarlingError `BadRequest` with the problem of each member. */
export function parseBody<T>(schema: z.ZodType<T>, body: unknown): T {
  const parsed = schema.safeParse(body);
  if (parsed.success) return parsed.data;
  const problems = withoutFollowing(parsed.error.issues, body).map((issue) =>
    issue.code === "unrecognized_keys"
      ? `${issue.keys.map((key) => excerpt(key)).join(", ")}: not known here; leave it out`
      : `${fieldText(issue.path) || "body"}: ${excerpt(issueWords(issue, body), 300)}`,
  );
  throw refusal("BadRequest", problems.join("; "));
}
