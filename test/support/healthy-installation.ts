import type { ApiPorts } from "#functions/api/request/api-ports.ts";

/** The API's ports to a healthy installation, for tests about something else. */
export const healthyInstallation: Pick<ApiPorts, "account" | "links" | "uploads" | "logs" | "own"> = {
  account: {
    hasValue: async () => true,
    queueLength: async (queueUrl) => ({ arn: queueUrl, messages: 0 }),
    concurrency: async () => 1000,
  },
  uploads: { place: async (key) => `https://blobs.example/${key}`, size: async () => undefined },
  links: { link: async (key) => `https://blobs.example/${key}` },
  logs: { read: async () => ({ lines: [], isMore: false }) },
  own: {
    webhookSecretArn: "arn:aws:secretsmanager:eu-west-1:111122223333:secret:starling/webhook-AbCdEf",
    tickFunction: "tick",
    deadLetters: { apply: "https://sqs.eu-west-1.amazonaws.com/111122223333/dead-apply" },
    concurrency: { clusters: 100, deployedFor: 1000, desired: 112 },
  },
};
