/** How each kind of sender makes a delivery to the webhook: its headers and its proof of the secret. */
import { createHmac } from "node:crypto";
import { readFileSync } from "node:fs";
import type { Delivered } from "#test/support/webhook-world.ts";

export interface Sender {
  /** The last segment of the URL. */
  readonly host: string;
  /** The file under `test/fixtures` without its ending. */
  fixture(event: string): string;
  /** The header with the kind of the event, by the name of the fixture. */
  event(event: string): Readonly<Record<string, string>>;
  prove(secret: string, body: string): Readonly<Record<string, string>>;
}

const hmac = (hash: string, secret: string, body: string) => createHmac(hash, secret).update(body).digest("hex");
const hubSignature = (secret: string, body: string) => ({
  "x-hub-signature": `sha256=${hmac("sha256", secret, body)}`,
});

const gitlabEvents: Readonly<Record<string, string>> = { tag: "Tag Push Hook", system: "System Hook" };

const gitlab: Sender = {
  host: "gitlab",
  fixture: (event) => `webhooks/gitlab-${event}`,
  event: (event) => ({ "x-gitlab-event": gitlabEvents[event] ?? "Push Hook" }),
  prove: (secret) => ({ "x-gitlab-token": secret }),
};

const gitea: Sender = {
  host: "gitea",
  fixture: (event) => `webhooks/gitea-${event}`,
  event: (event) => ({ "x-gitea-event": event === "create" || event === "delete" ? event : "push" }),
  prove: (secret, body) => ({ "x-gitea-signature": hmac("sha256", secret, body) }),
};

export const senders = {
  github: {
    host: "github",
    fixture: (event) => `github/${event === "push" ? "push-branch" : event === "ping" ? event : `push-${event}`}`,
    event: (event) => ({ "x-github-event": event === "ping" ? "ping" : "push" }),
    prove: (secret, body) => ({ "x-hub-signature-256": `sha256=${hmac("sha256", secret, body)}` }),
  },
  gitlab,
  gitlabSigned: {
    ...gitlab,
    prove: (secret, body) => {
      const [id, time] = ["f5e5f430-f57b-4e6e-9fac-d9128cd7232f", "1767229200"];
      const key = Buffer.from(secret.replace("whsec_", ""), "base64");
      const proof = createHmac("sha256", key).update(`${id}.${time}.${body}`).digest("base64");
      return { "webhook-id": id, "webhook-timestamp": time, "webhook-signature": `v1,${proof}` };
    },
  },
  gitea,
  forgejo: {
    ...gitea,
    event: (event) => ({ "x-forgejo-event": gitea.event(event)["x-gitea-event"] ?? "" }),
    prove: (secret, body) => ({ "x-forgejo-signature": hmac("sha256", secret, body) }),
  },
  bitbucket: {
    host: "bitbucket",
    fixture: (event) => `webhooks/bitbucket-${event}`,
    event: () => ({ "x-event-key": "repo:push" }),
    prove: hubSignature,
  },
  bitbucketServer: {
    host: "bitbucket-server",
    fixture: (event) => `webhooks/bitbucket-server-${event}`,
    event: (event) => ({ "x-event-key": event === "ping" ? "diagnostics:ping" : "repo:refs_changed" }),
    prove: hubSignature,
  },
  azureDevops: {
    host: "azuredevops",
    fixture: (event) => `webhooks/azuredevops-${event}`,
    event: () => ({}),
    prove: (secret) => ({ authorization: `Basic ${Buffer.from(`starling:${secret}`).toString("base64")}` }),
  },
  generic: {
    host: "generic",
    fixture: (event) => `webhooks/generic-${event}`,
    event: () => ({}),
    prove: (secret, body) => ({ "x-signature": `sha256=${hmac("sha256", secret, body)}` }),
  },
} as const satisfies Readonly<Record<string, Sender>>;
export type SenderName = keyof typeof senders;

/** The delivery of a recorded event. */
export function recorded(name: SenderName, event: string, secret = "s3cret"): Delivered {
  const sender: Sender = senders[name];
  const body = readFileSync(new URL(`../fixtures/${sender.fixture(event)}.json`, import.meta.url), "utf8");
  return signed(name, { event, body, secret });
}

/** The delivery of any body. */
export function signed(
  name: SenderName,
  { event = "push", body, secret = "s3cret" }: { event?: string; body: string; secret?: string },
): Delivered {
  const { host, event: headers, prove }: Sender = senders[name];
  return {
    host,
    headers: { "content-type": "application/json", ...headers(event), ...prove(secret, body) },
    body,
  };
}
