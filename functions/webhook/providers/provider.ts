import type * as z from "zod";
import { boundedText } from "#shared/base/bounded.ts";
import { jsonOf } from "#shared/base/json-of.ts";

export interface WebhookRequest {
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string | undefined>>;
  /** The bytes as they were sent. */
  readonly body: Uint8Array;
  /** The id of the Receiver in the URL. */
  readonly receiver?: string;
  /** The parameter `token` of the URL. */
  readonly token?: string | undefined;
}

/** Something that has changed, if the sender is right. It holds no commit: the upstream is asked for that. */
export interface Push {
  /** Every address of the repository. Without them, any Source that the sender may wake can have changed. */
  readonly urls?: readonly string[];
  /** Names of repositories in a registry whose address the sender does not say: the ends of addresses. */
  readonly names?: readonly string[];
  /** Tags in a registry. Without them, any tag may have changed. */
  readonly tags?: readonly string[];
  /** Full names of references. Without them, anything at the addresses may have changed. */
  readonly refs?: readonly string[];
  readonly defaultBranch?: string;
}

/** A reader of the bodies of one kind of sender. */
export interface BodyReader {
  /** The name of the request's event, in lower case, for the kinds whose events have names. */
  eventOf?(request: WebhookRequest): string | undefined;
  /** @returns `ping` for a test event, `other` for events that are not followed, undefined for a body that is no push. */
  read(request: WebhookRequest): Push | "ping" | "other" | undefined;
}

/** How one kind of sender proves that it knows a secret, and its bodies. Its name is fixed by the URL. */
export interface Provider extends BodyReader {
  /** Whether the request proves that its sender knows one of the secrets. It is asked before the body is parsed. */
  isGenuine(request: WebhookRequest, secrets: readonly string[]): boolean;
  /** A test event that this host never signs. */
  isUnsignedPing?(request: WebhookRequest): boolean;
}

/** An address of a repository. A Source allows none that is longer. */
export const address = boundedText(2048);

/** The tag of an artifact in a registry. */
export const pushedTag = boundedText(128).min(1);

/** The name of a reference or of a branch. */
export const referenceName = boundedText(1000).min(1);

/** Reads the body as JSON of the given shape, of which names that the shape does not have are ignored. */
export function readBody<Shape extends z.ZodType>(
  shape: Shape,
  { headers, body }: WebhookRequest,
): z.output<Shape> | undefined {
  const text = new TextDecoder().decode(body);
  const isForm = headers["content-type"]?.toLowerCase().startsWith("application/x-www-form-urlencoded");
  const parsed = shape.safeParse(jsonOf(isForm ? (new URLSearchParams(text).get("payload") ?? text) : text));
  return parsed.success ? parsed.data : undefined;
}

/** The addresses that a body has. */
export function given(urls: readonly (string | null | undefined)[]): readonly string[] {
  return urls.filter((url) => typeof url === "string");
}

/** The name of an event of Bitbucket. */
export function eventKey({ headers }: WebhookRequest): string | undefined {
  return headers["x-event-key"]?.toLowerCase();
}
